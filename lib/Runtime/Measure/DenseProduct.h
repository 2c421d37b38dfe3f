//===- DenseProduct.h - cuBLAS on random operands ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_RUNTIME_MEASURE_DENSEPRODUCT_H
#define NM_SPARSE_LIB_RUNTIME_MEASURE_DENSEPRODUCT_H

#include "../Vendor/CublasApi.h"
#include "Replay.h"

#include <memory>
#include <vector>

namespace nms {

/// `batch` products of m x k and k x n matrices.
struct DenseProblem {
  int32_t kind;
  int m, n, k, batch;
  int type;      // cuBLAS data type
  int64_t bytes; // of an element
};

/// False with the reason recorded when cuBLAS is not timed on such a problem.
bool makeDenseProblem(int32_t kind, int64_t m, int64_t n, int64_t k,
                      int64_t batch, DenseProblem &problem);

/// Handle, workspace and sets of operands: normal random numbers, for zeros
/// draw less power.
class DenseProduct {
public:
  DenseProduct(const Context &cu, const DenseProblem &problem, int sets);
  ~DenseProduct();
  DenseProduct(const DenseProduct &) = delete;
  DenseProduct &operator=(const DenseProduct &) = delete;

  bool prepare(cuda::Stream stream);
  /// Row-major y = x * w of one set; w is stored n x k with `weightTransposed`.
  bool multiply(bool weightTransposed, int set);
  /// The handle of cuBLAS, once prepared.
  int getVersion() const { return version; }

private:
  struct Operands {
    Operands(const Context &cu, size_t xBytes, size_t wBytes, size_t yBytes)
        : x(cu, xBytes), w(cu, wBytes), y(cu, yBytes) {}
    OwnedBuffer x, w, y;
  };

  size_t size(int rows, int columns) const;
  bool fill(OwnedBuffer Operands::*operand, size_t bytes, uint64_t stream);

  const Context &cu;
  const DenseProblem &p;
  const cublas::Api *api = nullptr;
  cublas::Handle handle = nullptr;
  int version = 0;
  std::vector<std::unique_ptr<Operands>> sets;
  OwnedBuffer workspace;
};

} // namespace nms

#endif // NM_SPARSE_LIB_RUNTIME_MEASURE_DENSEPRODUCT_H
