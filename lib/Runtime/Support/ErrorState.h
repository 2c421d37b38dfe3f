//===- ErrorState.h - Recording and raising of failures ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Used by every source file of the runtime: `return fail("...")` records the
// sentence and gives the nonzero status; `raise()` applies the error policy to
// what was recorded.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_RUNTIME_SUPPORT_ERRORSTATE_H
#define NM_SPARSE_LIB_RUNTIME_SUPPORT_ERRORSTATE_H

#include "nm_sparse/Base/Fail.h"
#include "nm_sparse/Runtime/Error.h"

namespace nms {

/// Hands the last failure to the error policy. Returns when a handler does.
void raise();

} // namespace nms

#endif // NM_SPARSE_LIB_RUNTIME_SUPPORT_ERRORSTATE_H
