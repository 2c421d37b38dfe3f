//===- CublasProduct.cpp - Dense products of cuBLAS -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Vendor/CublasApi.h"
#include "DenseLibrary.h"

using namespace nms;

namespace {

class CublasProduct : public DenseLibrary {
public:
  explicit CublasProduct(const DenseProblem &problem) : p(problem) {}
  ~CublasProduct() override {
    if (handle)
      (void)api->destroy(handle);
  }

  bool prepare(cuda::Stream stream, void *workspace) override {
    api = cublas::api();
    return api &&
           cublas::check(api->create(&handle), "creating a cuBLAS handle") &&
           cublas::check(api->getVersion(handle, &version),
                         "reading the version of cuBLAS") &&
           cublas::check(api->setStream(handle, stream),
                         "giving cuBLAS its stream") &&
           cublas::check(api->setWorkspace(handle, workspace, workspaceBytes),
                         "giving cuBLAS its workspace");
  }

  bool multiply(bool weightTransposed, const DenseOperands &operands) override;
  int getVersion() const override { return version; }

private:
  const DenseProblem &p;
  const cublas::Api *api = nullptr;
  cublas::Handle handle = nullptr;
  int version = 0;
};

} // namespace

/// Row-major y = x * w is column-major y' = w' * x'.
bool CublasProduct::multiply(bool weightTransposed,
                             const DenseOperands &operands) {
  const DenseForm &form = *p.form;
  // Factors have the type of the sums.
  const float ones[] = {1.0f, 0.0f};
  const int32_t integers[] = {1, 0};
  bool isInteger = form.compute == cublas::compute32I;
  const void *one = isInteger ? static_cast<const void *>(&integers[0]) : ones;
  const void *zero =
      isInteger ? static_cast<const void *>(&integers[1]) : &ones[1];
  bool transposed = weightTransposed || !form.readsBothLayouts;
  int op = transposed ? cublas::opT : cublas::opN;
  int ldw = transposed ? p.k : p.n;
  int x = getCublasType(form.kind), w = getCublasType(form.weightKind),
      y = getCublasType(form.resultKind);
  cublas::Status status;
  if (p.batch == 1) {
    status = api->gemmEx(handle, op, cublas::opN, p.n, p.m, p.k, one,
                         operands.w, w, ldw, operands.x, x, p.k, zero,
                         operands.y, y, p.n, form.compute, cublas::gemmDefault);
  } else {
    auto area = [](int a, int b) {
      return static_cast<long long>(a) * static_cast<long long>(b);
    };
    status = api->gemmBatched(
        handle, op, cublas::opN, p.n, p.m, p.k, one, operands.w, w, ldw,
        area(p.k, p.n), operands.x, x, p.k, area(p.m, p.k), zero, operands.y, y,
        p.n, area(p.m, p.n), p.batch, form.compute, cublas::gemmDefault);
  }
  return cublas::check(status, "running the cuBLAS product");
}

std::unique_ptr<DenseLibrary>
nms::makeCublasProduct(const DenseProblem &problem) {
  return std::make_unique<CublasProduct>(problem);
}
