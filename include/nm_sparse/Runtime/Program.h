//===- Program.h - launching what a manifest describes ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernels of `nm-compile -o PTX --manifest JSON`, called on arrays that the
// caller owns, on the caller's stream. Nothing is allocated on the device but
// tensor maps: results and buffers lie in arguments and in a workspace that the
// caller provides, so that calls can be captured in a CUDA graph.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_RUNTIME_PROGRAM_H
#define NM_SPARSE_RUNTIME_PROGRAM_H

#include "nm_sparse/Base/Kind.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Kernels and how to launch them, on any device of the process. Calls may come
/// from several threads.
typedef struct NmsProgram NmsProgram;

enum { NMS_MAX_RANK = 8 };

/// An array in device memory, or a number.
typedef struct NmsArray {
  void *data;             // its first element; of a number: its bits
  int32_t rank;           // -1: a number
  const int64_t *sizes;   // in elements
  const int64_t *strides; // in elements; null: row by row without gaps
} NmsArray;

/// Reads `manifest`, JSON of docs/Manifest.md. `image` is the PTX text that
/// belongs to it, or a cubin, or the text that the emulator takes; it is loaded
/// on a device when a function is first launched there. Returns null with
/// nmsLastError() set if the manifest is malformed. Needs no device.
NMS_API NmsProgram *nmsProgramCreate(const char *manifest, size_t manifestBytes,
                                     const char *image, size_t imageBytes);

/// Frees the program. Its modules stay in the cache (Driver.h).
NMS_API void nmsProgramDestroy(NmsProgram *program);

/// The number of the function `name` (null or "": the first), or -1 with
/// nmsLastError() set.
NMS_API int32_t nmsProgramFunction(const NmsProgram *program, const char *name);

/// Returns the number of arguments or results of a function, or -1 if there is
/// no such function.
NMS_API int32_t nmsProgramArguments(const NmsProgram *program,
                                    int32_t function);
NMS_API int32_t nmsProgramResults(const NmsProgram *program, int32_t function);

/// Returns the largest number of checks that nmsProgramCheck makes after a
/// launch of a function, often 0, or -1 if there is no such function.
NMS_API int32_t nmsProgramChecks(const NmsProgram *program, int32_t function);

/// Checks rank, sizes and strides of `arguments` against the function, and
/// gives the bytes of workspace that a call with them needs (often 0), or -1
/// with nmsLastError() set. No pointer in `arguments` is read.
NMS_API int64_t nmsProgramWorkspace(NmsProgram *program, int32_t function,
                                    const NmsArray *arguments, int32_t count);

/// The place of a result of such a call.
typedef struct NmsResult {
  int32_t argument; // number of the argument that holds it; -1: the workspace
  int32_t kind;     // NmsKind of its elements, -1: none of them
  int64_t offset;   // of its first element: bytes in the workspace, or elements
                    // in the argument
  int32_t rank;
  int64_t sizes[NMS_MAX_RANK], strides[NMS_MAX_RANK]; // in elements
} NmsResult;

/// Fills `result` with the one of this `number`. Returns 0, or nonzero with
/// nmsLastError() set.
NMS_API int nmsProgramResult(NmsProgram *program, int32_t function,
                             const NmsArray *arguments, int32_t count,
                             int32_t number, NmsResult *result);

/// Launches the function's kernels on `stream` (a CUstream or cudaStream_t;
/// null is the legacy default stream) of the calling thread's device and
/// returns without waiting. Arrays begin at a multiple of 16 bytes, unless they
/// are empty, and `workspace` at one of 256; the kernels use them until the
/// stream has passed them. Returns 0, or nonzero with nmsLastError() set.
/// Whatever depends on sizes alone is cached, so the next call with the same
/// sizes is fast.
NMS_API int nmsProgramLaunch(NmsProgram *program, int32_t function,
                             const NmsArray *arguments, int32_t count,
                             void *workspace, void *stream);

/// Gives `bytes` of workspace, or null, which ends the call.
typedef void *(*NmsAllocate)(void *context, int64_t bytes);

enum { NMS_CALL_REFUSED = -1, NMS_CALL_WITHOUT_MEMORY = -2 };

/// Does the work of nmsProgramWorkspace and nmsProgramLaunch at once, for
/// frequent callers. If there is a workspace, it calls `allocate` with
/// `context`. Returns 0; NMS_CALL_REFUSED, with nmsLastError() set, for
/// arguments that the function does not take; NMS_CALL_WITHOUT_MEMORY if
/// `allocate` returned null; or another nonzero value with nmsLastError() set.
NMS_API int nmsProgramCall(NmsProgram *program, int32_t function,
                           const NmsArray *arguments, int32_t count,
                           NmsAllocate allocate, void *context, void *stream);

enum { NMS_CHECK_FAILED = 2 };

/// Checks the weights that kernels packed. Kernels cannot fail, so they record
/// errors in the workspace. This function waits for `stream`, on which the
/// function was launched with these arguments and this workspace, and then
/// reads the record; if the function has no checks, it does not wait. Returns
/// 0; NMS_CHECK_FAILED, with the sentence of nmsPack in nmsLastError(), if a
/// weight breaks its pattern, so the results must not be used; or another
/// nonzero value with nmsLastError() set. It fails while `stream` is being
/// captured, because nothing has run yet: check after each launch of the graph.
NMS_API int nmsProgramCheck(NmsProgram *program, int32_t function,
                            const NmsArray *arguments, int32_t count,
                            const void *workspace, void *stream);

#ifdef __cplusplus
}
#endif

#endif // NM_SPARSE_RUNTIME_PROGRAM_H
