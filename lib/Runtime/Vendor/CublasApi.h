//===- CublasApi.h - The part of cuBLAS in use ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_RUNTIME_VENDOR_CUBLASAPI_H
#define NM_SPARSE_LIB_RUNTIME_VENDOR_CUBLASAPI_H

#include "../Driver/Context.h"

namespace nms::cublas {

using Status = int;
using Handle = struct HandleTag *;

enum : int {
  opN = 0,
  opT = 1,
  dataF32 = 0,
  dataF16 = 2,
  dataI8 = 3,
  dataI32 = 10,
  dataBF16 = 14,
  dataE4M3 = 28,
  dataE5M2 = 29,
  compute32F = 68,
  compute32I = 72,
  gemmDefault = -1,
  notSupported = 15, // a status
};

#define NMS_CUBLAS_REQUIRED(X)                                                 \
  X(create, "cublasCreate_v2", (Handle *))                                     \
  X(destroy, "cublasDestroy_v2", (Handle))                                     \
  X(getVersion, "cublasGetVersion_v2", (Handle, int *))                        \
  X(setStream, "cublasSetStream_v2", (Handle, cuda::Stream))                   \
  X(setWorkspace, "cublasSetWorkspace_v2", (Handle, void *, size_t))           \
  X(dgemm, "cublasDgemm_v2",                                                   \
    (Handle, int, int, int, int, int, const double *, const double *, int,     \
     const double *, int, const double *, double *, int))                      \
  X(gemmEx, "cublasGemmEx",                                                    \
    (Handle, int, int, int, int, int, const void *, const void *, int, int,    \
     const void *, int, int, const void *, void *, int, int, int, int))        \
  X(gemmBatched, "cublasGemmStridedBatchedEx",                                 \
    (Handle, int, int, int, int, int, const void *, const void *, int, int,    \
     long long, const void *, int, int, long long, const void *, void *, int,  \
     int, long long, int, int, int))

struct Api {
// A declarator, which parentheses would change.
// NOLINTNEXTLINE(bugprone-macro-parentheses)
#define NMS_MEMBER(NAME, SYMBOL, PARAMS) Status(*NAME) PARAMS = nullptr;
  NMS_CUBLAS_REQUIRED(NMS_MEMBER)
#undef NMS_MEMBER
};

/// Opens cuBLAS on the first call, where `openLibrary` finds it; null with the
/// reason recorded.
const Api *api();

/// True on success, else records "<what> failed: CUBLAS_STATUS_...".
bool check(Status status, const char *what);

} // namespace nms::cublas

#endif // NM_SPARSE_LIB_RUNTIME_VENDOR_CUBLASAPI_H
