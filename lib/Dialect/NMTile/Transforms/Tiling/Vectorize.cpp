//===- Vectorize.cpp - the epilogue of a CTA tile as vectors --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Promotion leaves the product of a CTA tile as a vector<tokens x outputs>,
// written to a tensor that elementwise ops read. Here those ops work on the
// vector itself. Every vector keeps the canonical order (tokens, outputs); the
// order of the tensors that are read or written is in the permutation maps.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "nm_sparse/Analysis/Epilogue.h"
#include "nm_sparse/Dialect/NMSparse/Utils/Elementwise.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h"
#include "nm_sparse/Dialect/NMTile/Transforms/Transforms.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSEVECTORIZEPASS
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

/// `value` for every element of a vector of `shape`.
static Value splat(OpBuilder &b, Location loc, Value value,
                   ArrayRef<int64_t> shape) {
  if (isa<VectorType>(value.getType()))
    return value;
  return b.createOrFold<vector::BroadcastOp>(
      loc, VectorType::get(shape, value.getType()), value);
}

/// The write that left `tensor` whole, when it is one of ours.
static vector::TransferWriteOp getTileWrite(Value tensor) {
  auto write = tensor.getDefiningOp<vector::TransferWriteOp>();
  return write && write.getVectorType().getRank() == 2
             ? write
             : vector::TransferWriteOp();
}

/// The tensor that `tensor` overwrites in whole: a write to it needs no other.
static Value getOverwritten(Value tensor) {
  while (true) {
    if (auto fill = tensor.getDefiningOp<linalg::FillOp>())
      tensor = fill.getOutputs()[0];
    else if (vector::TransferWriteOp write = getTileWrite(tensor))
      tensor = write.getBase();
    else
      return tensor;
  }
}

//===----------------------------------------------------------------------===//
// Elementwise ops
//===----------------------------------------------------------------------===//

/// The operand of `op` that holds a tile in vector form, or null.
static OpOperand *getVectorOperand(linalg::LinalgOp op) {
  for (OpOperand *operand : op.getDpsInputOperands())
    if (getTileWrite(operand->get()) &&
        op.getMatchingIndexingMap(operand).isPermutation())
      return operand;
  return nullptr;
}

namespace {
/// Rewrites one elementwise op of a CTA tile.
class EpilogueOp {
public:
  /// `value`, an operand or the result of `op`, has the indexing map `map`
  /// there and is transferred to or from a vector through `transfer`.
  EpilogueOp(RewriterBase &b, linalg::LinalgOp op, AffineMap map,
             AffineMap transfer, ArrayRef<int64_t> shape)
      : b(b), op(op), loc(op.getLoc()), shape(shape) {
    for (unsigned i = 0; i < 2; ++i)
      loops[i] = map.getDimPosition(transfer.getDimPosition(i));
  }

  /// Returns the write of the result.
  vector::TransferWriteOp run();

private:
  AffineMap getTransferMap(AffineMap operandMap);
  Value readOperand(OpOperand &operand);

  RewriterBase &b;
  linalg::LinalgOp op;
  Location loc;
  SmallVector<int64_t> shape;
  /// The op's loops over tokens and outputs.
  unsigned loops[2];
};
} // namespace

/// Map from the dimensions of an operand to (tokens, outputs); 0 where the
/// operand does not depend on one of them.
AffineMap EpilogueOp::getTransferMap(AffineMap operandMap) {
  SmallVector<AffineExpr> exprs;
  for (unsigned loop : loops) {
    std::optional<unsigned> dim =
        operandMap.getResultPosition(b.getAffineDimExpr(loop));
    exprs.push_back(dim ? b.getAffineDimExpr(*dim)
                        : b.getAffineConstantExpr(0));
  }
  return AffineMap::get(operandMap.getNumResults(), 0, exprs, b.getContext());
}

/// True for each vector dimension that is broadcast or that the tile is known
/// to have in full.
static SmallVector<bool> getInBounds(RankedTensorType tile, AffineMap map,
                                     ArrayRef<int64_t> shape) {
  SmallVector<bool> inBounds;
  for (auto [expr, extent] : llvm::zip_equal(map.getResults(), shape)) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    inBounds.push_back(!dim || tile.getDimSize(dim.getPosition()) == extent);
  }
  return inBounds;
}

/// The operand as a scalar, or as a vector over the tile.
Value EpilogueOp::readOperand(OpOperand &operand) {
  auto type = dyn_cast<RankedTensorType>(operand.get().getType());
  if (!type)
    return operand.get();
  AffineMap map = getTransferMap(op.getMatchingIndexingMap(&operand));
  if (vector::TransferWriteOp write = getTileWrite(operand.get()))
    if (write.getPermutationMap() == map)
      return write.getVector();
  if (auto fill = operand.get().getDefiningOp<linalg::FillOp>())
    return fill.getInputs()[0];
  if (llvm::all_of(map.getResults(), llvm::IsaPred<AffineConstantExpr>) &&
      type.getRank() == 0)
    return tensor::ExtractOp::create(b, loc, operand.get(), ValueRange{});
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  SmallVector<Value> origin(type.getRank(), zero);
  Value padding =
      arith::ConstantOp::create(b, loc, b.getZeroAttr(type.getElementType()));
  SmallVector<bool> inBounds = getInBounds(type, map, shape);
  return vector::TransferReadOp::create(
      b, loc, VectorType::get(shape, type.getElementType()), operand.get(),
      origin, padding, map, ArrayRef<bool>(inBounds));
}

vector::TransferWriteOp EpilogueOp::run() {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(op);
  IRMapping mapping;
  Block *body = op.getBlock();
  for (BlockArgument arg : body->getArguments())
    if (!arg.use_empty())
      mapping.map(arg, readOperand(op->getOpOperand(arg.getArgNumber())));

  for (Operation &inner : body->without_terminator()) {
    bool scalar = llvm::none_of(inner.getOperands(), [&](Value operand) {
      return isa<VectorType>(mapping.lookupOrDefault(operand).getType());
    });
    if (!scalar)
      for (Value operand : inner.getOperands())
        mapping.map(operand,
                    splat(b, loc, mapping.lookupOrDefault(operand), shape));
    Operation *copy = b.clone(inner, mapping);
    if (!scalar)
      for (OpResult result : copy->getResults())
        result.setType(VectorType::get(shape, result.getType()));
  }
  Value result = splat(
      b, loc, mapping.lookupOrDefault(body->getTerminator()->getOperand(0)),
      shape);

  Value dest = getOverwritten(op.getDpsInits()[0]);
  auto type = cast<RankedTensorType>(dest.getType());
  AffineMap map =
      getTransferMap(op.getIndexingMapMatchingResult(op->getResult(0)));
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  SmallVector<Value> origin(type.getRank(), zero);
  SmallVector<bool> inBounds = getInBounds(type, map, shape);
  return b.replaceOpWithNewOp<vector::TransferWriteOp>(
      op, result, dest, origin, map, ArrayRef<bool>(inBounds));
}

//===----------------------------------------------------------------------===//
// Initial accumulator
//===----------------------------------------------------------------------===//

/// A read of a filled tile is a splat, as is its conversion to f32; a read of
/// what an elementwise op (a broadcast bias, say) made of it is that vector.
static void forwardInit(RewriterBase &b, vector::TransferReadOp read) {
  auto op = read.getBase().getDefiningOp<linalg::LinalgOp>();
  if (!op)
    return;
  b.setInsertionPoint(read);
  ArrayRef<int64_t> shape = read.getVectorType().getShape();
  Value value;
  if (auto fill = dyn_cast<linalg::FillOp>(op.getOperation()))
    value = splat(b, read.getLoc(), fill.getInputs()[0], shape);
  else
    value = EpilogueOp(b, op, op.getIndexingMapMatchingResult(op->getResult(0)),
                       read.getPermutationMap(), shape)
                .run()
                .getVector();
  b.replaceOp(read, value);
  for (Operation *user : llvm::make_early_inc_range(value.getUsers())) {
    SmallVector<Value> folded;
    if (!isa<arith::ExtFOp, arith::ExtSIOp>(user))
      continue;
    b.setInsertionPoint(user);
    if (succeeded(b.tryFold(user, folded)))
      b.replaceOp(user, folded);
  }
}

//===----------------------------------------------------------------------===//
// The tile
//===----------------------------------------------------------------------===//

/// Erases what the forwarding of vectors left without a use.
static void eraseDeadOps(RewriterBase &b, Block *block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*block)))
    if (op.use_empty() && (isOpTriviallyDead(&op) ||
                           isa<linalg::FillOp, vector::TransferWriteOp>(op)))
      b.eraseOp(&op);
}

/// Returns true if warps can transpose the tile, as they write it, to any
/// order.
static bool isTransposable(Block *body) {
  auto writes = llvm::to_vector(body->getOps<vector::TransferWriteOp>());
  bool reads = llvm::any_of(
      body->getOps<vector::TransferReadOp>(), [](vector::TransferReadOp read) {
        return read.getPermutationMap().isProjectedPermutation();
      });
  return !writes.empty() &&
         canBeTransposed(
             writes.size(),
             writes.front().getVectorType().getElementTypeBitWidth(), reads);
}

/// Chooses the accumulator layout whose elements lie beside each other in the
/// result: the last write of the tile says which. Where the other layout makes
/// for fewer products and the tile can be transposed, it is the other.
static void setTokensContiguous(scf::ForallOp forall) {
  bool tokens = false;
  for (auto write : forall.getBody()->getOps<vector::TransferWriteOp>())
    tokens = write.getPermutationMap().getDimPosition(0) ==
             write.getPermutationMap().getNumDims() - 1;
  bool transposable = isTransposable(forall.getBody());
  forall.walk([&](TileMatmulOp op) {
    op.setTokensContiguous(
        tokens &&
        !(transposable &&
          op.getSchedule().getSumOwners(op.getEncoding()).tokensByPanel));
  });
}

LogicalResult nm_sparse::vectorizeTile(RewriterBase &rewriter,
                                       scf::ForallOp forall) {
  Block *body = forall.getBody();
  for (auto op : body->getOps<linalg::LinalgOp>())
    if (!isa<linalg::FillOp>(op) && !isFusableElementwise(op))
      return op->emitOpError("in the CTA tile of a sparse matmul cannot become "
                             "vector code; legal are elementwise ops whose "
                             "maps are projected permutations, without "
                             "linalg.index");
  OpBuilder::InsertionGuard guard(rewriter);
  for (auto read :
       llvm::make_early_inc_range(body->getOps<vector::TransferReadOp>()))
    forwardInit(rewriter, read);
  for (auto op : llvm::make_early_inc_range(body->getOps<linalg::LinalgOp>()))
    if (OpOperand *product = getVectorOperand(op)) {
      vector::TransferWriteOp write = getTileWrite(product->get());
      EpilogueOp(rewriter, op, op.getMatchingIndexingMap(product),
                 write.getPermutationMap(), write.getVectorType().getShape())
          .run();
    }
  for (auto write : body->getOps<vector::TransferWriteOp>())
    rewriter.modifyOpInPlace(write, [&] {
      write.getBaseMutable().assign(getOverwritten(write.getBase()));
    });
  eraseDeadOps(rewriter, body);
  setTokensContiguous(forall);
  return success();
}

namespace {
struct Vectorize
    : public nm_sparse::impl::NMSparseVectorizePassBase<Vectorize> {
  void runOnOperation() override {
    SmallVector<scf::ForallOp> tiles;
    getOperation().walk([&](TileMatmulOp op) {
      if (auto forall = op->getParentOfType<scf::ForallOp>())
        tiles.push_back(forall);
    });
    IRRewriter rewriter(&getContext());
    for (scf::ForallOp forall : tiles)
      if (failed(vectorizeTile(rewriter, forall)))
        return signalPassFailure();
  }
};
} // namespace
