//===- PatchLoader.h - rows of patches at known places ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_PRODUCTS_IMMEDIATE_PATCHLOADER_H
#define NM_SPARSE_LIB_PRODUCTS_IMMEDIATE_PATCHLOADER_H

#include "RowLoader.h"
#include "nm_sparse/Dialect/NMTile/Utils/PatchSource.h"

namespace mlir::nm_sparse {

/// Reads the rows of a convolution's matrix where they lie in the image.
class PatchLoader : public RowLoader {
public:
  PatchLoader(OpBuilder &b, TileMatmulOp op, const ThreadLayout &layout);

  SmallVector<int64_t> getOrder(int64_t rows) const override;
  void startSection() override { inside.clear(); }
  SmallVector<Value> load(int64_t row) override;

private:
  struct Token {
    PatchSource::Part part;
    Value place; ///< An index, which may lie in front of the image.
  };

  PatchesAttr patches;
  int64_t channels;
  PatchSource source;
  bool isFast;
  Value flat; ///< The image as elements one behind the other.
  SmallVector<Token> tokens;
  /// By place in the kernel, whether each token has it, in this section.
  DenseMap<std::pair<int64_t, int64_t>, SmallVector<Value>> inside;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_PRODUCTS_IMMEDIATE_PATCHLOADER_H
