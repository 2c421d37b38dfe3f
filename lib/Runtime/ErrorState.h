//===- ErrorState.h - Recording of failures ---------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Used by every source file of the runtime: `return fail("...")` records the
// sentence and gives the nonzero status; `raise()` applies the error policy to
// what was recorded.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_RUNTIME_ERRORSTATE_H
#define NM_SPARSE_LIB_RUNTIME_ERRORSTATE_H

#include "nm_sparse/Runtime/Error.h"

#include <cstdarg>

namespace nms {

/// Records a failure of the calling thread. Always returns 1.
int fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/// Hands the last failure to the error policy. Returns when a handler does.
void raise();

} // namespace nms

#endif // NM_SPARSE_LIB_RUNTIME_ERRORSTATE_H
