//===- ReferenceCalls.cpp - the reference's products by the runtime -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loops of scalar code would take minutes on a real layer; the runtime has a
// float64 product that uses a GPU or all CPU cores.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "nm_sparse/Conversion/RuntimeCall.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "nm_sparse/Dialect/NMSparse/Utils/Contraction.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSEREFERENCECALLSPASS
#include "nm_sparse/Conversion/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

/// The loops that nmsReferenceMatmul calls batch, m, n and k.
using ProductLoops = std::array<std::optional<unsigned>, 4>;

/// The loops of `op` when it is a product that the runtime can do.
static std::optional<ProductLoops> getProductLoops(linalg::LinalgOp op) {
  std::string reason;
  FailureOr<Contraction> contraction = matchContraction(op, reason);
  if (failed(contraction) || !op.hasPureBufferSemantics() ||
      !llvm::all_of(op->getOperandTypes(), [](Type type) {
        return getElementTypeOrSelf(type).isF64();
      }))
    return std::nullopt;
  SmallVector<unsigned> &batch = contraction->batch, &left = contraction->left,
                        &right = contraction->right;
  // An operand that is used for all entries of a batch has a batch stride of 0.
  for (SmallVector<unsigned> *free : {&left, &right})
    if (free->size() == 2 && batch.empty()) {
      batch.push_back(free->front());
      free->erase(free->begin());
    }
  ProductLoops loops;
  for (auto [loop, list] :
       llvm::zip(loops, std::array<ArrayRef<unsigned>, 4>{
                            batch, left, right, contraction->reduction})) {
    if (list.size() > 1)
      return std::nullopt;
    if (!list.empty())
      loop = list.front();
  }
  return loops;
}

/// Emits the call for `op` and erases it.
static void replaceByCall(IRRewriter &rewriter, ModuleOp module,
                          linalg::LinalgOp op, const ProductLoops &loops) {
  Location loc = op.getLoc();
  rewriter.setInsertionPoint(op);
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(rewriter, loc, value, 64);
  };
  // The runtime takes a pruned weight as its second operand. If it is the first
  // one, the product of the transposed operands is computed instead.
  auto pruned = op->getAttrOfType<IntegerAttr>(kPrunedOperand);
  bool exchanged = pruned && pruned.getInt() == 0;
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  std::array<Value, 4> sizes;
  sizes.fill(constant(1));
  SmallVector<Value> pointersAndStrides;
  // Loops that each operand has in the signature: x(b, m, k), w(b, k, n),
  // y(b, m, n).
  std::array<std::array<unsigned, 3>, 3> order = {
      {{0, 1, 3}, {0, 3, 2}, {0, 1, 2}}};
  std::array<unsigned, 3> positions = {0, 1, 2};
  if (exchanged) {
    order = {{{0, 2, 3}, {0, 3, 1}, {0, 2, 1}}};
    std::swap(positions[0], positions[1]);
  }
  for (unsigned number = 0; number < 3; ++number) {
    unsigned operand = positions[number];
    Value buffer = op->getOperand(operand);
    auto metadata =
        memref::ExtractStridedMetadataOp::create(rewriter, loc, buffer);
    pointersAndStrides.push_back(
        getElementPointer(rewriter, loc, buffer, metadata));
    for (unsigned role : order[number]) {
      std::optional<int64_t> position;
      if (loops[role])
        position = getLoopPosition(maps[operand], *loops[role]);
      if (!position) {
        pointersAndStrides.push_back(constant(0));
        continue;
      }
      sizes[role] = toI64(rewriter, loc, metadata.getSizes()[*position]);
      pointersAndStrides.push_back(
          toI64(rewriter, loc, metadata.getStrides()[*position]));
    }
  }
  if (exchanged)
    std::swap(sizes[1], sizes[2]);
  SmallVector<Value> operands(sizes.begin(), sizes.end());
  llvm::append_range(operands, pointersAndStrides);
  callRuntime(rewriter, loc, module,
              pruned ? "nmsReferenceSparseMatmul" : "nmsReferenceMatmul",
              rewriter.getI32Type(), operands);
  rewriter.eraseOp(op);
}

namespace {
struct ReferenceCalls
    : public nm_sparse::impl::NMSparseReferenceCallsPassBase<ReferenceCalls> {
  void runOnOperation() override {
    SmallVector<std::pair<linalg::LinalgOp, ProductLoops>> products;
    getOperation().walk([&](linalg::LinalgOp op) {
      if (std::optional<ProductLoops> loops = getProductLoops(op))
        products.push_back({op, *loops});
    });
    IRRewriter rewriter(&getContext());
    for (auto &[op, loops] : products)
      replaceByCall(rewriter, getOperation(), op, loops);
  }
};
} // namespace
