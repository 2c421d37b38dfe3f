//===- FakeCublas.cpp - cuBLAS and cuBLASLt without a GPU -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A product of cuBLAS takes 30 us with the weight as k x n and 20 us with n x
// k; those in float64 are computed. One of cuBLASLt takes 15 us, and is refused
// as the library does it: where both operands are e5m2, or are not transposed
// and plain.
//
//===----------------------------------------------------------------------===//

#include "FakeCuda.h"

#include "Vendor/CublasLtApi.h"

#include <cstring>

using namespace nms;
using cublas::Handle;

#define FAKE extern "C" __attribute__((visibility("default")))

namespace nms::cublaslt {
struct OperationTag {
  int compute, transposed[2] = {0, 0};
  const void *scales[2] = {nullptr, nullptr};
  int8_t fastSums = 0;
};
struct LayoutTag {
  int type;
  uint64_t rows, columns;
  int32_t batch = 1;
  int64_t stride = 0;
};
} // namespace nms::cublaslt

namespace {

void noteProduct(int weight, int x, int result, int compute, bool weightTurned,
                 bool xTurned, int batch) {
  FakeState &state = *fakeState();
  state.productTypes[0] = weight;
  state.productTypes[1] = x;
  state.productTypes[2] = result;
  state.computeType = compute;
  state.transposed[0] = weightTurned;
  state.transposed[1] = xTurned;
  state.batch = batch;
}

template <typename T>
T *make(T *object) {
  ++fakeState()->liveLtObjects;
  return object;
}
template <typename T>
int destroy(T *object) {
  --fakeState()->liveLtObjects;
  delete object;
  return 0;
}

} // namespace

FAKE int cublasCreate_v2(Handle *handle) {
  *handle = reinterpret_cast<Handle>(new int(0));
  return 0;
}
FAKE int cublasDestroy_v2(Handle handle) {
  delete reinterpret_cast<int *>(handle);
  return 0;
}
FAKE int cublasGetVersion_v2(Handle, int *version) {
  *version = 130000;
  return 0;
}
FAKE int cublasSetStream_v2(Handle, cuda::Stream) { return 0; }
FAKE int cublasSetWorkspace_v2(Handle, void *, size_t) { return 0; }
FAKE int cublasGemmEx(Handle, int opA, int opB, int, int, int, const void *,
                      const void *, int typeA, int, const void *, int typeB,
                      int, const void *, void *, int typeC, int, int compute,
                      int) {
  noteProduct(typeA, typeB, typeC, compute, opA, opB, 1);
  spendFakeTime(opA == 0 ? 30 : 20);
  return 0;
}
FAKE int cublasGemmStridedBatchedEx(Handle, int opA, int opB, int, int, int,
                                    const void *, const void *, int typeA, int,
                                    long long, const void *, int typeB, int,
                                    long long, const void *, void *, int typeC,
                                    int, long long, int batch, int compute,
                                    int) {
  noteProduct(typeA, typeB, typeC, compute, opA, opB, batch);
  spendFakeTime((opA == 0 ? 30 : 20) * batch);
  return 0;
}
FAKE int cublasDgemm_v2(Handle, int opA, int opB, int m, int n, int k,
                        const double *alpha, const double *a, int lda,
                        const double *b, int ldb, const double *beta, double *c,
                        int ldc) {
  for (int j = 0; j < n; ++j)
    for (int i = 0; i < m; ++i) {
      double sum = 0;
      for (int l = 0; l < k; ++l)
        sum += (opA ? a[l + int64_t(i) * lda] : a[i + int64_t(l) * lda]) *
               (opB ? b[j + int64_t(l) * ldb] : b[l + int64_t(j) * ldb]);
      double &out = c[i + int64_t(j) * ldc];
      out = *alpha * sum + *beta * out;
    }
  ++fakeState()->graphLaunches; // seen by the test as "the device was used"
  return 0;
}

using cublaslt::FoundAlgorithm;
using cublaslt::Layout;
using cublaslt::Operation;
using cublaslt::Preference;
using LtHandle = cublaslt::Handle;

FAKE size_t cublasLtGetVersion() { return 130001; }
FAKE int cublasLtCreate(LtHandle *handle) {
  *handle = reinterpret_cast<LtHandle>(make(new int(0)));
  return 0;
}
FAKE int cublasLtDestroy(LtHandle handle) {
  return destroy(reinterpret_cast<int *>(handle));
}
FAKE int cublasLtMatmulDescCreate(Operation *operation, int compute, int) {
  *operation = make(new cublaslt::OperationTag{compute});
  return 0;
}
FAKE int cublasLtMatmulDescDestroy(Operation operation) {
  return destroy(operation);
}
FAKE int cublasLtMatmulDescSetAttribute(Operation operation, int attribute,
                                        const void *value, size_t bytes) {
  switch (attribute) {
  case cublaslt::operationTransA:
  case cublaslt::operationTransB:
    memcpy(&operation->transposed[attribute - cublaslt::operationTransA], value,
           bytes);
    return 0;
  case cublaslt::operationScaleA:
  case cublaslt::operationScaleB:
    memcpy(static_cast<void *>(
               &operation->scales[attribute - cublaslt::operationScaleA]),
           value, bytes);
    return 0;
  case cublaslt::operationFastSums:
    memcpy(&operation->fastSums, value, bytes);
    return 0;
  default:
    return 7;
  }
}
FAKE int cublasLtMatrixLayoutCreate(Layout *layout, int type, uint64_t rows,
                                    uint64_t columns, int64_t) {
  *layout = make(new cublaslt::LayoutTag{type, rows, columns});
  return 0;
}
FAKE int cublasLtMatrixLayoutDestroy(Layout layout) { return destroy(layout); }
FAKE int cublasLtMatrixLayoutSetAttribute(Layout layout, int attribute,
                                          const void *value, size_t bytes) {
  if (attribute == cublaslt::layoutBatchCount)
    memcpy(&layout->batch, value, bytes);
  else
    memcpy(&layout->stride, value, bytes);
  return 0;
}
FAKE int cublasLtMatmulPreferenceCreate(Preference *preference) {
  *preference = reinterpret_cast<Preference>(make(new int(0)));
  return 0;
}
FAKE int cublasLtMatmulPreferenceDestroy(Preference preference) {
  return destroy(reinterpret_cast<int *>(preference));
}
FAKE int cublasLtMatmulPreferenceSetAttribute(Preference, int, const void *,
                                              size_t) {
  return 0;
}
FAKE int cublasLtMatmulAlgoGetHeuristic(LtHandle, Operation operation, Layout a,
                                        Layout b, Layout, Layout, Preference,
                                        int, FoundAlgorithm *found,
                                        int *count) {
  bool areE5M2 = a->type == cublas::dataE5M2 && b->type == cublas::dataE5M2;
  bool isLegal = operation->transposed[0] && !operation->transposed[1] &&
                 a->rows % 16 == 0 && a->columns % 16 == 0 && !areE5M2;
  // A recommendation that cannot run comes first; m tells a device that is old.
  *count = isLegal && b->columns != 13 ? 2 : 0;
  found[0].state = cublas::notSupported;
  found[1].algorithm.data[0] = 42;
  return 0;
}
FAKE int cublasLtMatmul(LtHandle, Operation operation, const void *,
                        const void *, Layout a, const void *, Layout b,
                        const void *, const void *, Layout, void *, Layout d,
                        const cublaslt::Algorithm *algorithm, void *, size_t,
                        cuda::Stream) {
  bool isStrided =
      d->batch == 1 || d->stride == static_cast<int64_t>(d->rows * d->columns);
  if (algorithm->data[0] != 42 || !isStrided || a->batch != d->batch)
    return 7;
  noteProduct(a->type, b->type, d->type, operation->compute,
              operation->transposed[0] != 0, operation->transposed[1] != 0,
              d->batch);
  FakeState &state = *fakeState();
  state.hasScales = true;
  for (const void *scale : operation->scales)
    state.hasScales &= scale && *static_cast<const float *>(scale) == 1.0f;
  state.hasFastSums = operation->fastSums != 0;
  spendFakeTime(15 * d->batch);
  return 0;
}
