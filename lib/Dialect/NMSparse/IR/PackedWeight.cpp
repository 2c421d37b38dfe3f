//===- PackedWeight.cpp - the weight of nm_sparse.matmul ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PackedWeight.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// Dimension of the result that the loop over outputs indexes.
static unsigned getOutputDim(MatmulOp op) {
  return *op.getResultMap().getResultPosition(
      getAffineDimExpr(op.getOutputLoop(), op.getContext()));
}

LogicalResult nm_sparse::verifyInnerIndex(MatmulOp op) {
  EncodingAttr encoding = op.getEncoding();
  if (encoding.hasInnerLevel() != (op.getInnerIndex() != nullptr))
    return op.emitOpError("on ")
           << encoding
           << (encoding.hasInnerLevel() ? " needs an inner_index"
                                        : " has one level and no inner_index");
  if (!op.getInnerIndex() || op.getStorageAttr())
    return success();
  const SparsityLevel &level = encoding.getInnermost();
  auto type = cast<RankedTensorType>(op.getInnerIndex().getType());
  int64_t rank = op.getWeightMap().getNumResults();
  if (type.getRank() != rank ||
      !type.getElementType().isSignlessInteger(level.getIndexBitWidth()))
    return op.emitOpError("inner_index must have rank ")
           << rank << " and element type i" << level.getIndexBitWidth()
           << ", got " << type;
  int64_t rows = type.getDimSize(rank - 2), windows = op.getNumWindows();
  if (ShapedType::isDynamic(rows) || ShapedType::isDynamic(windows) ||
      rows == windows * level.n)
    return success();
  return op.emitOpError("index has ")
         << windows << " windows, whose inner_index has " << windows * level.n
         << " rows, got " << type;
}

/// Checks that the index has the panels that the columns of values lie in, and
/// no others: one more where a tile starts inside a panel.
static LogicalResult verifyPanels(MatmulOp op) {
  int64_t panels = cast<ShapedType>(op.getIndex().getType()).getShape().back();
  ArrayRef<int64_t> values =
      cast<ShapedType>(op.getValues().getType()).getShape();
  int64_t columns = values.back();
  // Bitmaps lie in blocks of outputs, which fill panels.
  if (op.getStorageAttr())
    columns = ShapedType::isDynamic(values[values.size() - 3])
                  ? ShapedType::kDynamic
                  : values[values.size() - 3] * BitmapTile::kOutputs;
  if (ShapedType::isDynamic(panels) || ShapedType::isDynamic(columns))
    return success();
  int64_t width = op.getEncoding().getBlockN();
  int64_t least = llvm::divideCeil(columns, width);
  int64_t most =
      op.getPanelOffset() ? llvm::divideCeil(columns - 1, width) + 1 : least;
  if (panels >= least && panels <= most)
    return success();
  InFlightDiagnostic diagnostic = op.emitOpError("values has ")
                                  << columns << " columns, which lie in "
                                  << least;
  if (most != least)
    diagnostic << " or " << most;
  return diagnostic << (most == 1 ? " panel" : " panels") << " of " << width
                    << " outputs, the index has " << panels;
}

/// Checks the components of a weight that is stored as ragged panels: of a tile
/// those of one panel, of a K step a part of its rows.
static LogicalResult verifyRagged(MatmulOp op) {
  EncodingAttr encoding = op.getEncoding();
  if (op.getPanelOffset() || op.getInnerIndex())
    return op.emitOpError("with ragged panels has no panel_offset or "
                          "inner_index");
  if ((op.getPanels() != nullptr) == (op.getFirstRow() != nullptr))
    return op.emitOpError("with ragged panels has either panels, or first_row "
                          "and a part of one panel");
  auto values = cast<RankedTensorType>(op.getValues().getType());
  auto index = cast<RankedTensorType>(op.getIndex().getType());
  if (values.getRank() != 2 ||
      (!values.isDynamicDim(1) && values.getDimSize(1) > encoding.getBlockN()))
    return op.emitOpError("values must have rank 2 and the ")
           << encoding.getBlockN() << " outputs of a panel, got " << values;
  if (index.getRank() != 2 || index.getDimSize(1) != 1 ||
      !index.getElementType().isSignlessInteger(32))
    return op.emitOpError("index must have rank 2, one column and element type "
                          "i32, got ")
           << index;
  int64_t rows = values.getDimSize(0), blocks = index.getDimSize(0);
  int64_t blockRows = op.getListedPanels()->blockRows;
  if (!ShapedType::isDynamic(rows) && !ShapedType::isDynamic(blocks) &&
      rows != blocks * blockRows)
    return op.emitOpError("values has ")
           << rows << " rows, the index names " << blocks * blockRows;
  if (!op.getPanels())
    return success();
  auto panels = cast<RankedTensorType>(op.getPanels().getType());
  int64_t rank = op.getWeightMap().getNumResults();
  if (panels.getRank() != rank || panels.getShape().back() != kPanelWords ||
      !panels.getElementType().isSignlessInteger(32))
    return op.emitOpError("panels must have rank ")
           << rank << ", " << int64_t(kPanelWords)
           << " words of i32 for each panel, got " << panels;
  int64_t outputs =
      cast<ShapedType>(op.getInit().getType()).getDimSize(getOutputDim(op));
  int64_t count = panels.getDimSize(rank - 2);
  if (!ShapedType::isDynamic(outputs) && !ShapedType::isDynamic(count) &&
      count != int64_t(llvm::divideCeil(outputs, encoding.getBlockN())))
    return op.emitOpError("result has ")
           << outputs << " outputs, which lie in "
           << llvm::divideCeil(outputs, encoding.getBlockN())
           << " panels, panels has " << count;
  return success();
}

/// Checks the components of a weight that is not stored in the canonical form.
static LogicalResult verifyStorage(MatmulOp op) {
  WeightStorageInterface storage = op.getStorageAttr();
  bool isOfPattern = storage.getPattern() == op.getEncoding();
  if (storage.getListedPanels() && isOfPattern)
    return verifyRagged(op);
  if (op.getPanels())
    return op.emitOpError("has panels, which belong to storage = "
                          "#nm_sparse.ragged");
  if (!op.getStoredTile() || !isOfPattern)
    return op.emitOpError("has storage = ")
           << op.getStorageAttr() << ", legal is #nm_sparse."
           << (op.getEncoding().isFree() ? "bitmap or #nm_sparse.ragged"
                                         : "bitmap")
           << " of " << op.getEncoding();
  if (op.getPanelOffset() || (op.getFirstRow() && !op.getEncoding().isFree()))
    return op.emitOpError("with bitmaps has no panel_offset or first_row");
  auto values = cast<RankedTensorType>(op.getValues().getType());
  auto bits = cast<RankedTensorType>(op.getInnermostIndex().getType());
  StringRef bitsName = op.getInnerIndex() ? "inner_index" : "index";
  BitmapTile tile = *op.getStoredTile();
  int64_t rank = op.getWeightMap().getNumResults() + 1;
  auto verifyComponent = [&](StringRef name, RankedTensorType type,
                             int64_t elements, bool isElement) {
    if (type.getRank() == rank && type.getShape().back() == elements &&
        isElement)
      return success();
    return LogicalResult(op.emitOpError()
                         << name << " must have rank " << rank << " and "
                         << elements
                         << " elements in each tile of its storage, got "
                         << type);
  };
  if (tile.isFree && values.getRank() != 1)
    return op.emitOpError("values of free elements must have rank 1, got ")
           << values;
  if ((!tile.isFree &&
       failed(verifyComponent("values", values,
                              tile.values * BitmapTile::kOutputs, true))) ||
      failed(verifyComponent(bitsName, bits, tile.getBitsWords(),
                             bits.getElementType().isSignlessInteger(32))))
    return failure();
  if (!tile.isFree &&
      values.getShape().drop_back() != bits.getShape().drop_back())
    return op.emitOpError("values and ")
           << bitsName << " must have the same tiles, got " << values << " and "
           << bits;
  int64_t k = op.getContractionSize(), tiles = bits.getDimSize(rank - 2);
  // The rows that the outer level keeps.
  if (op.getInnerIndex() && !ShapedType::isDynamic(op.getNumWindows()))
    k = op.getNumWindows() * op.getEncoding().getKeptRows();
  if (!ShapedType::isDynamic(k) && !ShapedType::isDynamic(tiles) &&
      static_cast<int64_t>(llvm::divideCeil(k, tile.rows)) != tiles)
    return op.emitOpError("contraction size ")
           << k << " has " << llvm::divideCeil(k, tile.rows) << " tiles of "
           << tile.rows << " rows, the " << bitsName << " holds " << tiles;
  auto init = cast<RankedTensorType>(op.getInit().getType());
  int64_t outputs = init.getDimSize(getOutputDim(op));
  int64_t blocks = bits.getDimSize(rank - 3);
  if (!ShapedType::isDynamic(outputs) && !ShapedType::isDynamic(blocks) &&
      outputs > blocks * BitmapTile::kOutputs)
    return op.emitOpError("result has ") << outputs << " outputs, values holds "
                                         << blocks * BitmapTile::kOutputs;
  return success();
}

/// Checks the rows of the index against those of x and, in the canonical form,
/// of the values.
static LogicalResult verifyRows(MatmulOp op) {
  EncodingAttr encoding = op.getEncoding();
  auto rowsOf = [](Value operand) {
    auto type = cast<RankedTensorType>(operand.getType());
    return type.getDimSize(type.getRank() - 2);
  };
  int64_t indexRows = rowsOf(op.getIndex());
  if (ShapedType::isDynamic(indexRows))
    return success();
  if (indexRows % encoding.getN() != 0)
    return op.emitOpError("index has ")
           << indexRows << " rows, not a multiple of " << encoding.getN()
           << " per window";
  int64_t windows = indexRows / encoding.getN();
  int64_t valueRows = rowsOf(op.getValues());
  int64_t named = windows * encoding.getInnermost().getKeptRows();
  if (!op.getStorageAttr() && !ShapedType::isDynamic(valueRows) &&
      (op.getFirstRow() ? valueRows > named : valueRows != named))
    return op.emitOpError("values has ")
           << valueRows << " rows, index names "
           << (op.getFirstRow() ? "no more than " : "") << named;
  int64_t k = op.getContractionSize();
  auto needed =
      static_cast<int64_t>(llvm::divideCeil(k, encoding.getWindowRows()));
  if (!ShapedType::isDynamic(k) && needed != windows)
    return op.emitOpError("contraction size ")
           << k << " has " << needed << " windows, the index holds " << windows;
  return success();
}

LogicalResult nm_sparse::verifyPackedWeight(MatmulOp op) {
  if (op.getPanels() && !op.getStorageAttr())
    return op.emitOpError("has panels, which belong to storage = "
                          "#nm_sparse.ragged");
  if (op.getStorageAttr() && failed(verifyStorage(op)))
    return failure();
  if (op.getStorageAttr() && !op.getInnerIndex())
    return success();
  if (failed(verifyRows(op)) || failed(verifyPanels(op)))
    return failure();
  if (op.getStorageAttr())
    return success();
  int64_t columns =
      cast<ShapedType>(op.getValues().getType()).getShape().back();
  int64_t outputs =
      cast<ShapedType>(op.getInit().getType()).getDimSize(getOutputDim(op));
  if (!ShapedType::isDynamic(outputs) && !ShapedType::isDynamic(columns) &&
      outputs > columns)
    return op.emitOpError("result has ")
           << outputs << " outputs, values holds " << columns;
  return success();
}
