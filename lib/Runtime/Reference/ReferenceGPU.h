//===- ReferenceGPU.h - float64 product through cuBLAS ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_RUNTIME_REFERENCE_REFERENCEGPU_H
#define NM_SPARSE_LIB_RUNTIME_REFERENCE_REFERENCEGPU_H

#include <cstdint>

namespace nms {

/// The arguments of nmsReferenceMatmul.
struct Product {
  int64_t batch, m, n, k;
  const double *x;
  int64_t xsb, xsm, xsk;
  const double *w;
  int64_t wsb, wsk, wsn;
  double *y;
  int64_t ysb, ysm, ysn;

  double flops() const {
    return 2.0 * static_cast<double>(batch) * static_cast<double>(m) *
           static_cast<double>(n) * static_cast<double>(k);
  }
};

/// Adds the products of the first batches to y, and returns how many it did: 0
/// without a device, fewer than all when the device failed. The rest of y is
/// untouched, and no error is left behind.
int64_t multiplyOnGPU(const Product &product);

} // namespace nms

#endif // NM_SPARSE_LIB_RUNTIME_REFERENCE_REFERENCEGPU_H
