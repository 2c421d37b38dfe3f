//===- CublasLtProduct.cpp - Dense products of cuBLASLt -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Vendor/CublasLtApi.h"
#include "DenseLibrary.h"

#include <algorithm>

using namespace nms;

namespace {

/// Products of floats of 8 bits, with one scale for each operand. They are what
/// `torch._scaled_mm` asks for with `use_fast_accum`: sums stay in the tensor
/// core's accumulators, as those of sparse products do.
class CublasLtProduct : public DenseLibrary {
public:
  CublasLtProduct(const Context &cu, const DenseProblem &problem)
      : cu(cu), p(problem), scale(cu, sizeof(float)) {}
  ~CublasLtProduct() override;

  bool prepare(cuda::Stream given, void *givenWorkspace) override;
  bool multiply(bool weightTransposed, const DenseOperands &operands) override;
  int getVersion() const override { return version; }

private:
  bool describe();
  bool makeLayout(cublaslt::Layout &layout, int32_t kind, int rows, int columns,
                  const char *what);
  bool chooseAlgorithm();
  template <typename T>
  bool setOperation(int attribute, const T &value) {
    return cublas::check(api->setOperation(operation, attribute,
                                           static_cast<const void *>(&value),
                                           sizeof(value)),
                         "describing a product to cuBLASLt");
  }

  const Context &cu;
  const DenseProblem &p;
  const cublaslt::Api *api = nullptr;
  cublaslt::Handle handle = nullptr;
  cublaslt::Operation operation = nullptr;
  cublaslt::Layout w = nullptr, x = nullptr, y = nullptr;
  cublaslt::Preference preference = nullptr;
  cublaslt::Algorithm algorithm = {};
  OwnedBuffer scale; // 1, for both operands
  cuda::Stream stream = nullptr;
  void *workspace = nullptr;
  int version = 0;
};

} // namespace

CublasLtProduct::~CublasLtProduct() {
  if (preference)
    (void)api->destroyPreference(preference);
  for (cublaslt::Layout layout : {w, x, y})
    if (layout)
      (void)api->destroyLayout(layout);
  if (operation)
    (void)api->destroyOperation(operation);
  if (handle)
    (void)api->destroy(handle);
}

bool CublasLtProduct::prepare(cuda::Stream given, void *givenWorkspace) {
  stream = given;
  workspace = givenWorkspace;
  const float one = 1.0f;
  api = cublaslt::api();
  if (!api || !scale ||
      !cu.check(cu->memcpyHtoD(scale.device(), &one, sizeof(one)),
                "copying a scale to the device") ||
      !cublas::check(api->create(&handle), "creating a cuBLASLt handle"))
    return false;
  version = static_cast<int>(api->getVersion());
  return describe() && chooseAlgorithm();
}

/// A column-major matrix, with one row behind the other in each batch.
bool CublasLtProduct::makeLayout(cublaslt::Layout &layout, int32_t kind,
                                 int rows, int columns, const char *what) {
  if (!cublas::check(api->createLayout(&layout, getCublasType(kind),
                                       static_cast<uint64_t>(rows),
                                       static_cast<uint64_t>(columns), rows),
                     what))
    return false;
  int32_t count = p.batch;
  int64_t stride = static_cast<int64_t>(rows) * columns;
  return count == 1 ||
         (cublas::check(api->setLayout(layout, cublaslt::layoutBatchCount,
                                       &count, sizeof(count)),
                        what) &&
          cublas::check(api->setLayout(layout, cublaslt::layoutBatchStride,
                                       &stride, sizeof(stride)),
                        what));
}

/// Row-major y = x * w is column-major y' = w' * x', with w stored n x k.
bool CublasLtProduct::describe() {
  const DenseForm &form = *p.form;
  const void *one = scale.get();
  return cublas::check(
             api->createOperation(&operation, form.compute, cublas::dataF32),
             "describing a product to cuBLASLt") &&
         setOperation(cublaslt::operationTransA, int32_t(cublas::opT)) &&
         setOperation(cublaslt::operationTransB, int32_t(cublas::opN)) &&
         setOperation(cublaslt::operationScaleA, one) &&
         setOperation(cublaslt::operationScaleB, one) &&
         setOperation(cublaslt::operationFastSums, int8_t(1)) &&
         makeLayout(w, form.weightKind, p.k, p.n,
                    "describing a weight to cuBLASLt") &&
         makeLayout(x, form.kind, p.k, p.m,
                    "describing activations to cuBLASLt") &&
         makeLayout(y, form.resultKind, p.n, p.m,
                    "describing a result to cuBLASLt");
}

/// Takes the first of the algorithms that the library recommends and can run.
/// Others may be faster, but nobody measures them where a layer is deployed.
bool CublasLtProduct::chooseAlgorithm() {
  constexpr int most = 8;
  uint64_t bytes = workspaceBytes;
  cublaslt::FoundAlgorithm found[most] = {};
  int count = 0;
  if (!cublas::check(api->createPreference(&preference),
                     "asking cuBLASLt for algorithms") ||
      !cublas::check(api->setPreference(preference,
                                        cublaslt::preferenceMostWorkspace,
                                        &bytes, sizeof(bytes)),
                     "asking cuBLASLt for algorithms") ||
      !cublas::check(api->findAlgorithms(handle, operation, w, x, y, y,
                                         preference, most, found, &count),
                     "asking cuBLASLt for algorithms"))
    return false;
  cublaslt::FoundAlgorithm *end = found + std::clamp(count, 0, most);
  cublaslt::FoundAlgorithm *first =
      std::find_if(found, end, [](const cublaslt::FoundAlgorithm &one) {
        return one.state == 0 && one.workspaceBytes <= workspaceBytes;
      });
  if (first == end)
    return !fail("cuBLASLt has no algorithm for the dense product of %s and %s "
                 "with m=%d n=%d k=%d batch=%d: products of 8 bits need a GPU "
                 "of compute capability 8.9 or newer",
                 nmsKindName(p.form->kind), nmsKindName(p.form->weightKind),
                 p.m, p.n, p.k, p.batch);
  algorithm = first->algorithm;
  return true;
}

bool CublasLtProduct::multiply(bool /*weightTransposed*/,
                               const DenseOperands &operands) {
  const float one = 1.0f, zero = 0.0f;
  return cublas::check(api->multiply(handle, operation, &one, operands.w, w,
                                     operands.x, x, &zero, operands.y, y,
                                     operands.y, y, &algorithm, workspace,
                                     workspaceBytes, stream),
                       "running the cuBLASLt product");
}

std::unique_ptr<DenseLibrary>
nms::makeCublasLtProduct(const Context &cu, const DenseProblem &problem) {
  return std::make_unique<CublasLtProduct>(cu, problem);
}
