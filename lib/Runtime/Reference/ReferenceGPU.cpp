//===- ReferenceGPU.cpp - float64 product through cuBLAS ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ReferenceGPU.h"
#include "../Measure/Replay.h"
#include "../Vendor/CublasApi.h"
#include "nm_sparse/Runtime/Error.h"

#include <climits>
#include <vector>

using namespace nms;

namespace {

/// A matrix as the host has it, and as cuBLAS shall read it.
struct Operand {
  int64_t rows, cols, rowStride, colStride;
  bool rowMajor() const { return colStride == 1 && rowStride == cols; }
  bool colMajor() const { return rowStride == 1 && colStride == rows; }
  size_t bytes() const {
    return static_cast<size_t>(rows) * static_cast<size_t>(cols) *
           sizeof(double);
  }
};

/// To contiguous row-major order, and back.
void gather(const Operand &shape, const double *strided, double *dense) {
  for (int64_t i = 0; i < shape.rows; ++i)
    for (int64_t j = 0; j < shape.cols; ++j)
      *dense++ = strided[i * shape.rowStride + j * shape.colStride];
}

void scatter(const Operand &shape, const double *dense, double *strided) {
  for (int64_t i = 0; i < shape.rows; ++i)
    for (int64_t j = 0; j < shape.cols; ++j)
      strided[i * shape.rowStride + j * shape.colStride] = *dense++;
}

class Multiplier {
public:
  Multiplier(const Context &cu, const Product &product)
      : cu(cu), p(product), xShape{p.m, p.k, p.xsm, p.xsk},
        wShape{p.k, p.n, p.wsk, p.wsn}, yShape{p.m, p.n, p.ysm, p.ysn},
        x(cu, xShape.bytes()), w(cu, wShape.bytes()), y(cu, yShape.bytes()) {}
  ~Multiplier() {
    if (handle)
      (void)api->destroy(handle);
  }
  Multiplier(const Multiplier &) = delete;
  Multiplier &operator=(const Multiplier &) = delete;

  bool prepare() {
    api = cublas::api();
    return api && x && w && y &&
           cublas::check(api->create(&handle), "creating a cuBLAS handle");
  }

  bool multiply(int64_t batch) {
    // Weights and activations that all batches share are sent once.
    if ((batch == 0 || p.xsb != 0) && !send(xShape, p.x + batch * p.xsb, x))
      return false;
    if ((batch == 0 || p.wsb != 0) && !send(wShape, p.w + batch * p.wsb, w))
      return false;
    double *target = p.y + batch * p.ysb;
    std::vector<double> dense(static_cast<size_t>(p.m * p.n));
    gather(yShape, target, dense.data());
    if (!cu.check(cu->memcpyHtoD(y.device(), dense.data(), yShape.bytes()),
                  "copying the reference's output to the device"))
      return false;
    // Row-major y = x * w is column-major y' = w' * x'.
    const double one = 1;
    bool wRow = !wShape.colMajor(), xRow = !xShape.colMajor();
    auto size = [](int64_t value) { return static_cast<int>(value); };
    if (!cublas::check(api->dgemm(handle, wRow ? cublas::opN : cublas::opT,
                                  xRow ? cublas::opN : cublas::opT, size(p.n),
                                  size(p.m), size(p.k), &one,
                                  static_cast<const double *>(w.get()),
                                  size(wRow ? p.n : p.k),
                                  static_cast<const double *>(x.get()),
                                  size(xRow ? p.k : p.m), &one,
                                  static_cast<double *>(y.get()), size(p.n)),
                       "running cublasDgemm") ||
        !cu.check(cu->ctxSynchronize(), "waiting for cublasDgemm") ||
        !cu.check(cu->memcpyDtoH(dense.data(), y.device(), yShape.bytes()),
                  "copying the reference's output to the host"))
      return false;
    scatter(yShape, dense.data(), target);
    return true;
  }

private:
  bool send(const Operand &shape, const double *from,
            const OwnedBuffer &buffer) {
    std::vector<double> copy;
    if (!shape.rowMajor() && !shape.colMajor()) {
      copy.resize(shape.bytes() / sizeof(double));
      gather(shape, from, copy.data());
      from = copy.data();
    }
    return cu.check(cu->memcpyHtoD(buffer.device(), from, shape.bytes()),
                    "copying a reference operand to the device");
  }

  const Context &cu;
  const Product &p;
  Operand xShape, wShape, yShape;
  const cublas::Api *api = nullptr;
  cublas::Handle handle = nullptr;
  OwnedBuffer x, w, y;
};

} // namespace

int64_t nms::multiplyOnGPU(const Product &product) {
  int64_t done = 0;
  bool fits =
      product.m <= INT_MAX && product.n <= INT_MAX && product.k <= INT_MAX;
  if (Context cu; fits && cu && cublas::api()) {
    Multiplier multiplier(cu, product);
    if (multiplier.prepare())
      while (done < product.batch && multiplier.multiply(done))
        ++done;
  }
  // The CPU takes over: what went wrong here is no failure of the call.
  nmsClearError();
  return done;
}
