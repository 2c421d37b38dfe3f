//===- DenseLibrary.h - Libraries with dense products -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_RUNTIME_MEASURE_DENSELIBRARY_H
#define NM_SPARSE_LIB_RUNTIME_MEASURE_DENSELIBRARY_H

#include "DenseProblem.h"
#include "Replay.h"

#include <memory>

namespace nms {

/// The size that cuBLAS recommends for Hopper and newer.
constexpr size_t workspaceBytes = size_t(64) << 20;

/// Memory of the device: row-major matrices, of which y is written.
struct DenseOperands {
  void *x, *w, *y;
};

/// A library that is ready to compute one problem on one stream.
class DenseLibrary {
public:
  DenseLibrary() = default;
  virtual ~DenseLibrary() = default;
  DenseLibrary(const DenseLibrary &) = delete;
  DenseLibrary &operator=(const DenseLibrary &) = delete;

  /// False with the reason recorded. The workspace has `workspaceBytes`.
  virtual bool prepare(cuda::Stream stream, void *workspace) = 0;
  /// y = x * w, where w is stored n x k with `weightTransposed`.
  virtual bool multiply(bool weightTransposed,
                        const DenseOperands &operands) = 0;
  /// The library's own number, once prepared.
  virtual int getVersion() const = 0;
};

/// The library is opened when it is prepared. `problem` must outlive it.
std::unique_ptr<DenseLibrary> makeCublasProduct(const DenseProblem &problem);
std::unique_ptr<DenseLibrary> makeCublasLtProduct(const Context &cu,
                                                  const DenseProblem &problem);

} // namespace nms

#endif // NM_SPARSE_LIB_RUNTIME_MEASURE_DENSELIBRARY_H
