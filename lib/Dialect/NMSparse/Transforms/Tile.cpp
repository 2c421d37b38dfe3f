//===- Tile.cpp - tile matmuls over CTAs and K steps ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSETILEPASS
#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {
struct Tile : public nm_sparse::impl::NMSparseTilePassBase<Tile> {
  void runOnOperation() override {}
};
} // namespace
