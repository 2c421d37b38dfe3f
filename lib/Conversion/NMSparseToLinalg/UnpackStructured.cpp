//===- UnpackStructured.cpp - dense weights without loops -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The loops of the oracle write elements wherever their positions say, which no
// compiler can tile or fuse. Here each row of the weight looks for its element
// among those that its window keeps: a linalg.generic for each level, from the
// values outwards. Reshapes are between it and the matrices that the levels
// pack.
//
//===----------------------------------------------------------------------===//

#include "UnpackStructured.h"
#include "NamedLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// The matrix that `level` packs, of whole windows and panels; its transpose if
/// `isTransposed`:
///   dense[w, m, i, p, j] = values[w, s, i, p, j] where positions[w, s, p] == m
/// At most one slot s of a window has that position, so the sum over s is a
/// choice, and keeps all bits of the element.
static Value unpackLevel(OpBuilder &b, Location loc, const SparsityLevel &level,
                         Value values, Value positions, bool isTransposed) {
  auto type = cast<RankedTensorType>(positions.getType());
  int64_t rank = type.getRank();
  NamedLoops loops(b, loc);
  if (rank == 3)
    loops.set('b', type.getDimSize(0));
  loops.set('w', type.getDimSize(rank - 2) / level.n);
  loops.set('s', level.n);
  loops.set('m', level.m);
  loops.set('p', type.getDimSize(rank - 1));
  if (level.blockK > 1)
    loops.set('i', level.blockK);
  if (level.blockN > 1)
    loops.set('j', level.blockN);
  Value dense = loops.build(
      isTransposed ? "bpjwmis" : "bwmipjs",
      {{loops.split(values, {"b", "wsi", "pj"}), "bwsipj"},
       {loops.split(positions, {"b", "ws", "p"}), "bwsp"}},
      isTransposed ? "bpjwmi" : "bwmipj", getElementTypeOrSelf(values),
      [](ImplicitLocOpBuilder &b, ValueRange elements,
         function_ref<Value(char)> at) -> Value {
        Value position =
            arith::IndexCastUIOp::create(b, b.getIndexType(), elements[1]);
        Value isHere = arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                             position, at('m'));
        return arith::SelectOp::create(b, isHere, elements[0], elements[2]);
      });
  if (isTransposed)
    return loops.join(dense, {"b", "pj", "wmi"});
  return loops.join(dense, {"b", "wmi", "pj"});
}

/// `dense` with its last two dimensions exchanged.
static Value transpose(OpBuilder &b, Location loc, Value dense) {
  auto type = cast<RankedTensorType>(dense.getType());
  int64_t rank = type.getRank();
  NamedLoops loops(b, loc);
  if (rank == 3)
    loops.set('b', type.getDimSize(0));
  loops.set('k', type.getDimSize(rank - 2));
  loops.set('n', type.getDimSize(rank - 1));
  return loops.build("bnk", {{dense, "bkn"}}, "bnk", type.getElementType(),
                     [](ImplicitLocOpBuilder &, ValueRange elements,
                        function_ref<Value(char)>) { return elements[0]; });
}

Value nm_sparse::unpackStructured(OpBuilder &b, Location loc,
                                  WeightStorageInterface form,
                                  RankedTensorType weight,
                                  ValueRange components) {
  auto encoding = cast<EncodingAttr>(form.getPattern());
  int64_t rank = weight.getRank();
  bool isTransposed = encoding.getDim() == rank - 1;
  ArrayRef<SparsityLevel> levels = encoding.getLevels();
  Value dense = components.front();
  Type element = weight.getElementType();
  if (form.getListedPanels()) {
    dense = unpackPanels(b, loc, form, getPackedShape(weight, encoding).k,
                         components);
    levels = {};
  } else if (std::optional<BitmapTile> tile = form.getStoredTile(element)) {
    dense = unpackBits(b, loc, *tile, dense, components[levels.size()]);
    levels = levels.drop_back();
  }
  if (form.isKMajor() || (isTransposed && levels.empty()))
    dense = transpose(b, loc, dense);
  for (int64_t i = int64_t(levels.size()) - 1; i >= 0; --i) {
    const SparsityLevel &level = levels[i];
    Value positions = components[1 + i];
    // Tiles of a bitmap reach past what the outer level keeps.
    SmallVector<int64_t> kept(
        cast<RankedTensorType>(positions.getType()).getShape());
    kept[rank - 2] *= level.blockK;
    kept[rank - 1] *= level.blockN;
    dense = unpackLevel(b, loc, level, takeLeading(b, loc, dense, kept),
                        positions, isTransposed && i == 0);
  }
  // Fillers of the last window may lie past the end of the weight.
  dense = takeLeading(b, loc, dense, weight.getShape());
  if (encoding.getOrder() == OutputOrder::Identity)
    return dense;
  return PermuteOp::create(
      b, loc, dense.getType(), dense, components.back(),
      b.getI64IntegerAttr(2 * rank - 3 - encoding.getDim()),
      rank == 3 ? b.getI64IntegerAttr(0) : IntegerAttr(), UnitAttr());
}

/// Products that kernels are made of have no weight of their own.
static bool isTile(MatmulOp op) {
  auto isStatic = [](Value component) {
    return cast<ShapedType>(component.getType()).hasStaticShape();
  };
  if (!op.getPlaces().empty())
    return true;
  if (op.getListedPanels())
    return !isStatic(op.getComponent(kPanelsComponent)) ||
           ShapedType::isDynamic(op.getContractionSize());
  if (!llvm::all_of(op.getComponents().drop_front(), isStatic))
    return true;
  if (op.getEncoding().isFree())
    return false;
  auto columns = [](Value component) {
    return cast<ShapedType>(component.getType()).getShape().back();
  };
  return !isStatic(op.getValues()) ||
         (!op.getStorageAttr() &&
          columns(op.getIndex()) * op.getEncoding().getBlockN() !=
              columns(op.getValues()));
}

/// Why `op` has no structured form, or nothing.
static StringRef getReason(Operation *op) {
  auto isEncoded = [](Type type) { return bool(getEncoding(type)); };
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (llvm::any_of(op->getOperandTypes(), isEncoded) ||
      llvm::any_of(op->getResultTypes(), isEncoded) ||
      (function && (llvm::any_of(function.getArgumentTypes(), isEncoded) ||
                    llvm::any_of(function.getResultTypes(), isEncoded))))
    return "has a weight with an encoding: run --convert-linalg-to-nm-sparse "
           "and --nm-sparse-materialize-encodings first";
  StringRef dialect = op->getName().getDialectNamespace();
  if ((dialect != "nm_sparse" && dialect != "nm_tile") ||
      isa<UnpackOp, PatchesOp, PermuteOp>(op))
    return {};
  if (auto matmul = dyn_cast<MatmulOp>(op)) {
    if (!isTile(matmul))
      return {};
    return "is a tile of a product, which has no structured form: run "
           "--convert-nm-sparse-to-linalg before products are tiled";
  }
  if (isa<PackOp, PruneOp>(op))
    return "has no structured form: prune and pack the weight beforehand, so "
           "that its components are arguments or constants "
           "(--nm-sparse-materialize-encodings)";
  return "has no structured form: run --convert-nm-sparse-to-linalg before "
         "the pass that makes it";
}

LogicalResult nm_sparse::checkStructured(Operation *root) {
  bool isLegal = true;
  root->walk([&](Operation *op) {
    StringRef reason = getReason(op);
    if (reason.empty())
      return;
    op->emitOpError(reason);
    isLegal = false;
  });
  return success(isLegal);
}
