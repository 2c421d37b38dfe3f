//===- PermuteWeights.cpp - activations in the order of a product ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Between two layers nobody sees the order of the outputs: where a weight is
// packed here, its rows are put into the order that the product before it
// leaves, and what is between them stays as it is. A `free` weight of blocks of
// one row may have its rows in any order. The windows of an n:m weight would be
// others.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "nm_sparse/Dialect/NMSparse/Utils/Packing.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSEPERMUTEWEIGHTSPASS
#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

/// The data of `value`, whatever its type says of the pattern.
static DenseElementsAttr getData(Value value) {
  while (auto cast = value.getDefiningOp<tensor::CastOp>())
    value = cast.getSource();
  auto constant = value.getDefiningOp<arith::ConstantOp>();
  return constant ? dyn_cast<DenseElementsAttr>(constant.getValue())
                  : DenseElementsAttr();
}

namespace {
/// A product of activations that `permute` puts into order, and its weight.
struct Reader {
  MatmulOp matmul;
  PackOp pack;
};
} // namespace

/// The products that read the result of `permute`; none where something else
/// does, too.
static SmallVector<MatmulOp> findReaders(PermuteOp permute) {
  SmallVector<MatmulOp> readers;
  for (OpOperand &use : permute->getUses()) {
    auto matmul = dyn_cast<MatmulOp>(use.getOwner());
    if (isa<tensor::DimOp>(use.getOwner()))
      continue;
    if (!matmul || use.getOperandNumber() != 0 ||
        matmul.getXReductionDim() != static_cast<int64_t>(permute.getDim()))
      return {};
    readers.push_back(matmul);
  }
  return readers;
}

/// Why the weight of `reader` cannot have its rows in the order of `permute`;
/// null if it can.
static const char *findObstacle(Reader reader, PermuteOp permute,
                                ArrayRef<MatmulOp> readers) {
  EncodingAttr encoding = reader.matmul.getEncoding();
  if (!encoding.isFree())
    return "the windows of its weight are rows in their order; legal is a "
           "`free` weight";
  if (encoding.getBlockK() != 1)
    return "the blocks of its weight are neighbouring rows; legal are blocks "
           "of "
           "one row";
  if (permute.getBatch())
    return "each entry of the batch has an order of its own";
  if (!reader.pack)
    return "its weight comes packed; legal is one that the program packs";
  for (Operation *user : reader.pack->getUsers())
    if (auto other = dyn_cast<MatmulOp>(user);
        !other || !llvm::is_contained(readers, other))
      return "something else reads its weight";
  Value weight = reader.pack.getWeight();
  bool isKnown = getData(weight) != nullptr;
  auto first = permute.getPerm().getDefiningOp<PackOp>();
  if (isKnown && (!first || !getData(first.getWeight())))
    return "its weight is a constant, and the order is known when the program "
           "runs alone";
  if (!isKnown && !weight.getDefiningOp<PruneOp>() &&
      !weight.getDefiningOp<tensor::CastOp>())
    return "its weight comes packed; legal is one that the program packs";
  return nullptr;
}

/// The order that a constant weight is packed in.
static FailureOr<SmallVector<int64_t>> computeOrder(PackOp pack) {
  FailureOr<PackedConstant> packed =
      packConstant(getData(pack.getWeight()), pack.getForm(),
                   [&] { return pack.emitError(); });
  if (failed(packed))
    return failure();
  return llvm::map_to_vector(
      packed->back().getValues<APInt>(),
      [](const APInt &place) -> int64_t { return place.getZExtValue(); });
}

/// `data` with entry `order[j]` of dimension `dim` at place j.
static DenseElementsAttr reorder(DenseElementsAttr data, int64_t dim,
                                 ArrayRef<int64_t> order) {
  if (data.isSplat())
    return data;
  ShapedType type = data.getType();
  int64_t size = type.getDimSize(dim);
  int64_t inner = type.getElementTypeBitWidth() / 8, outer = 1;
  for (int64_t before : type.getShape().take_front(dim))
    outer *= before;
  for (int64_t behind : type.getShape().drop_front(dim + 1))
    inner *= behind;
  ArrayRef<char> raw = data.getRawData();
  SmallVector<char, 0> bytes;
  bytes.reserve(raw.size());
  for (int64_t i = 0; i < outer; ++i)
    for (int64_t from : order)
      llvm::append_range(bytes, raw.slice((i * size + from) * inner, inner));
  return DenseElementsAttr::getFromRawBuffer(type, bytes);
}

/// Puts the rows of the weight of `reader` into the order of `permute`.
static LogicalResult reorderWeight(RewriterBase &rewriter, Reader reader,
                                   PermuteOp permute) {
  PackOp pack = reader.pack;
  Location loc = pack.getLoc();
  Value weight = pack.getWeight();
  auto type = cast<RankedTensorType>(weight.getType());
  int64_t dim = pack.getEncoding().getDim();
  // Where both are known: the order comes before the weight in the program.
  rewriter.setInsertionPoint(reader.matmul);
  if (DenseElementsAttr data = getData(weight)) {
    FailureOr<SmallVector<int64_t>> order =
        computeOrder(permute.getPerm().getDefiningOp<PackOp>());
    if (failed(order))
      return failure();
    auto plain = RankedTensorType::get(type.getShape(), type.getElementType());
    auto raw = DenseElementsAttr::getFromRawBuffer(
        plain, reorder(data, dim, *order).getRawData());
    weight = arith::ConstantOp::create(rewriter, loc, raw);
  } else {
    if (auto prune = weight.getDefiningOp<PruneOp>())
      weight =
          PruneOp::create(rewriter, loc, stripEncoding(type), prune.getWeight(),
                          prune.getEncoding(), prune.getDensityAttr());
    else
      weight = weight.getDefiningOp<tensor::CastOp>().getSource();
    weight =
        PermuteOp::create(rewriter, loc, weight.getType(), weight,
                          permute.getPerm(), rewriter.getI64IntegerAttr(dim),
                          /*batch=*/IntegerAttr(), rewriter.getUnitAttr());
  }
  weight = tensor::CastOp::create(rewriter, loc, type, weight);
  auto ordered = PackOp::create(rewriter, loc, weight, pack.getEncoding());
  Operation *before = pack.getWeight().getDefiningOp();
  rewriter.replaceOp(pack, ordered.getResults());
  if (isOpTriviallyDead(before))
    rewriter.eraseOp(before);
  return success();
}

static LogicalResult fold(RewriterBase &rewriter, PermuteOp permute) {
  SmallVector<MatmulOp> readers = findReaders(permute);
  llvm::SetVector<PackOp> packs;
  SmallVector<Reader> all;
  for (MatmulOp matmul : readers) {
    Reader reader{matmul, matmul.getValues().getDefiningOp<PackOp>()};
    if (const char *why = findObstacle(reader, permute, readers)) {
      matmul.emitRemark("reads activations that are put into order before: ")
          << why;
      return success();
    }
    if (packs.insert(reader.pack))
      all.push_back(reader);
  }
  if (readers.empty())
    return success();
  for (Reader reader : all)
    if (failed(reorderWeight(rewriter, reader, permute)))
      return failure();
  rewriter.replaceOp(permute, permute.getSource());
  return success();
}

namespace {
struct PermuteWeights
    : public nm_sparse::impl::NMSparsePermuteWeightsPassBase<PermuteWeights> {
  void runOnOperation() override {
    SmallVector<PermuteOp> permutes;
    getOperation().walk([&](PermuteOp op) {
      if (!op.getInverse())
        permutes.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (PermuteOp op : permutes)
      if (failed(fold(rewriter, op)))
        return signalPassFailure();
  }
};
} // namespace
