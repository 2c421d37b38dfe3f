//===- Error.h - Error policy of the runtime --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every failure of the runtime becomes one sentence: what was asked, the name
// that CUDA gives to the error, and what to do. `nms*` functions return nonzero
// and leave the sentence in nmsLastError(). The `mgpu*` entry points and the
// `nmsRuntime*` wrappers have no status to return, since compiled host code
// calls them: they hand the sentence to the error policy.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_RUNTIME_ERROR_H
#define NM_SPARSE_RUNTIME_ERROR_H

#include "nm_sparse/Base/Error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef void (*NmsErrorHandler)(const char *message, void *userData);

/// Sets what happens when an entry point that cannot return a status fails.
/// Without a handler (the default, or after a null one) the sentence goes to
/// stderr and the process ends with status 1. A handler that returns lets the
/// entry point return null or do nothing; it may also throw or longjmp.
NMS_API void nmsSetErrorHandler(NmsErrorHandler handler, void *userData);

/// The same for failures on the calling thread, in place of the handler of the
/// process; null ends that.
NMS_API void nmsSetThreadErrorHandler(NmsErrorHandler handler, void *userData);

#ifdef __cplusplus
}
#endif

#endif // NM_SPARSE_RUNTIME_ERROR_H
