//===- DenseProduct.h - cuBLAS on random operands ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_RUNTIME_MEASURE_DENSEPRODUCT_H
#define NM_SPARSE_LIB_RUNTIME_MEASURE_DENSEPRODUCT_H

#include "DenseLibrary.h"

#include <memory>
#include <vector>

namespace nms {

/// A library, its workspace and sets of operands: normal random numbers, for
/// zeros draw less power.
class DenseProduct {
public:
  DenseProduct(const Context &cu, const DenseProblem &problem, int sets);

  bool prepare(cuda::Stream stream);
  /// Row-major y = x * w of one set; w is stored n x k with `weightTransposed`,
  /// and in any case where the library reads no other layout.
  bool multiply(bool weightTransposed, int set);
  /// The library's version, once prepared.
  int getVersion() const { return library->getVersion(); }

private:
  struct Operands {
    Operands(const Context &cu, size_t xBytes, size_t wBytes, size_t yBytes)
        : x(cu, xBytes), w(cu, wBytes), y(cu, yBytes) {}
    OwnedBuffer x, w, y;
  };

  size_t size(int rows, int columns, int32_t kind) const;
  bool fill(OwnedBuffer Operands::*operand, int32_t kind, size_t bytes,
            uint64_t stream);

  const Context &cu;
  const DenseProblem &p;
  std::vector<std::unique_ptr<Operands>> sets;
  OwnedBuffer workspace;
  std::unique_ptr<DenseLibrary> library;
};

} // namespace nms

#endif // NM_SPARSE_LIB_RUNTIME_MEASURE_DENSEPRODUCT_H
