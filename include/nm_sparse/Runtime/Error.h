//===- Error.h - Error state and policy of the runtime ----------*- C++ -*-===//
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

#include "nm_sparse/Runtime/Base.h"

#ifdef __cplusplus
extern "C" {
#endif

/// The last failure on the calling thread, "" when there was none. The text
/// stays valid until the next failing call on the same thread.
NMS_API const char *nmsLastError(void);

/// Makes `message` the last failure of the calling thread: for libraries that
/// add to what the runtime does.
NMS_API void nmsSetLastError(const char *message);

/// Forgets the last failure of the calling thread.
NMS_API void nmsClearError(void);

typedef void (*NmsErrorHandler)(const char *message, void *userData);

/// Sets what happens when an entry point that cannot return a status fails.
/// Without a handler (the default, or after a null one) the sentence goes to
/// stderr and the process ends with status 1. A handler that returns lets the
/// entry point return null or do nothing; it may also throw or longjmp.
NMS_API void nmsSetErrorHandler(NmsErrorHandler handler, void *userData);

#ifdef __cplusplus
}
#endif

#endif // NM_SPARSE_RUNTIME_ERROR_H
