//===- CublasLtApi.h - The part of cuBLASLt in use --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_RUNTIME_VENDOR_CUBLASLTAPI_H
#define NM_SPARSE_LIB_RUNTIME_VENDOR_CUBLASLTAPI_H

#include "CublasApi.h"

namespace nms::cublaslt {

using cublas::Status;
using Handle = struct LtHandleTag *;
using Operation = struct OperationTag *;
using Layout = struct LayoutTag *;
using Preference = struct PreferenceTag *;

// Attributes, each with the type of its value.
enum : int {
  operationTransA = 3,        // int32_t
  operationTransB = 4,        // int32_t
  operationScaleA = 17,       // pointer to a float of the device
  operationScaleB = 18,       // pointer to a float of the device
  operationFastSums = 25,     // int8_t
  layoutBatchCount = 5,       // int32_t
  layoutBatchStride = 6,      // int64_t, in elements
  preferenceMostWorkspace = 1 // uint64_t, in bytes
};

struct Algorithm {
  uint64_t data[8];
};

/// An algorithm for an operation, if `state` is 0.
struct FoundAlgorithm {
  Algorithm algorithm;
  size_t workspaceBytes;
  Status state;
  float waves;
  int reserved[4];
};
static_assert(sizeof(FoundAlgorithm) == 96, "not as in cublasLt.h");

#define NMS_CUBLASLT_REQUIRED(X)                                               \
  X(create, "cublasLtCreate", (Handle *))                                      \
  X(destroy, "cublasLtDestroy", (Handle))                                      \
  X(createOperation, "cublasLtMatmulDescCreate", (Operation *, int, int))      \
  X(destroyOperation, "cublasLtMatmulDescDestroy", (Operation))                \
  X(setOperation, "cublasLtMatmulDescSetAttribute",                            \
    (Operation, int, const void *, size_t))                                    \
  X(createLayout, "cublasLtMatrixLayoutCreate",                                \
    (Layout *, int, uint64_t, uint64_t, int64_t))                              \
  X(destroyLayout, "cublasLtMatrixLayoutDestroy", (Layout))                    \
  X(setLayout, "cublasLtMatrixLayoutSetAttribute",                             \
    (Layout, int, const void *, size_t))                                       \
  X(createPreference, "cublasLtMatmulPreferenceCreate", (Preference *))        \
  X(destroyPreference, "cublasLtMatmulPreferenceDestroy", (Preference))        \
  X(setPreference, "cublasLtMatmulPreferenceSetAttribute",                     \
    (Preference, int, const void *, size_t))                                   \
  X(findAlgorithms, "cublasLtMatmulAlgoGetHeuristic",                          \
    (Handle, Operation, Layout, Layout, Layout, Layout, Preference, int,       \
     FoundAlgorithm *, int *))                                                 \
  X(multiply, "cublasLtMatmul",                                                \
    (Handle, Operation, const void *, const void *, Layout, const void *,      \
     Layout, const void *, const void *, Layout, void *, Layout,               \
     const Algorithm *, void *, size_t, cuda::Stream))

struct Api {
// A declarator, which parentheses would change.
// NOLINTNEXTLINE(bugprone-macro-parentheses)
#define NMS_MEMBER(NAME, SYMBOL, PARAMS) Status(*NAME) PARAMS = nullptr;
  NMS_CUBLASLT_REQUIRED(NMS_MEMBER)
#undef NMS_MEMBER
  size_t (*getVersion)() = nullptr;
};

/// Opens cuBLASLt on the first call, where `cublas::openLibrary` finds it; null
/// with the reason recorded.
const Api *api();

} // namespace nms::cublaslt

#endif // NM_SPARSE_LIB_RUNTIME_VENDOR_CUBLASLTAPI_H
