//===- Fail.h - Recording of failures ---------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For the libraries behind the C functions: `return fail("...")` records the
// sentence and gives the nonzero status.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_BASE_FAIL_H
#define NM_SPARSE_BASE_FAIL_H

#include "nm_sparse/Base/Error.h"

namespace nms {

/// Records a failure of the calling thread. Always returns 1.
int fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/// A number as printf takes it.
inline long long ll(int64_t value) { return static_cast<long long>(value); }

} // namespace nms

#endif // NM_SPARSE_BASE_FAIL_H
