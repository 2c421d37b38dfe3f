//===- Error.h - The last failure of a thread -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every failure becomes one sentence: what was asked, what was found, what is
// legal, and what to do. `nms*` functions return nonzero and leave the sentence
// in nmsLastError().
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_BASE_ERROR_H
#define NM_SPARSE_BASE_ERROR_H

#include "nm_sparse/Base/Kind.h"

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

#ifdef __cplusplus
}
#endif

#endif // NM_SPARSE_BASE_ERROR_H
