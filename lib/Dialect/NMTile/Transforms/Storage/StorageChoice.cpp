//===- StorageChoice.cpp - canonical form or bitmaps ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Storage/StorageChoice.h"

#include "mlir/AsmParser/AsmParser.h"
#include "nm_sparse/Dialect/NMTile/IR/ElementFormat.h"
#include "nm_sparse/Dialect/NMTile/IR/Schedule.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// The storage that kernels of single elements read.
static constexpr StringLiteral kBitmaps = "bitmap";

/// Tokens up to which a product reads its weight in one pass, as it is stored.
static constexpr int64_t kFewTokens = 8;

/// Rows of a tile of bitmaps of which a ring of shared memory holds several.
static constexpr int64_t kMostRows = 256;

/// Rows of a tile, whole windows, whose bits kernels of few tokens find values
/// by: each has code of its own. Windows with odd numbers of rows are joined
/// until their values fill whole pieces of 16 bytes.
static constexpr int64_t kMostTileRows = 1024;

/// Kept rows of a line of 128 bytes, and outputs of a product, of 8 bits.
static constexpr int64_t kLineRows = 128, kProductOutputs = 64;

/// The most tokens of `op`; as many as there may be where that is not known.
static int64_t getMostTokens(MatmulOp op, const StorageChoice &choice) {
  int64_t most =
      cast<ShapedType>(op.getX().getType()).getDimSize(op.getXTokenDim());
  if (!ShapedType::isDynamic(most))
    return most;
  return choice.tokens > 0 ? choice.tokens
                           : std::numeric_limits<int64_t>::max();
}

/// Tokens of 8 bits up to which lanes that expand bitmaps read the weight as
/// fast as products of warpgroups, without a transposition of tokens before.
static constexpr int64_t kFewBytes = 2;

bool nm_sparse::hasManyTokens(MatmulOp op, const StorageChoice &choice) {
  return getMostTokens(op, choice) > kFewBytes;
}

/// Products of warpgroups gather rows for panels of 64 outputs and more, if
/// steps of whole lines begin with blocks.
bool nm_sparse::prefersKMajor(MatmulOp op, EncodingAttr encoding,
                              const StorageChoice &choice) {
  Type element = getElementTypeOrSelf(op.getX());
  int64_t windows = op.getNumWindows();
  if (choice.storage != "auto" || encoding.isFree() ||
      encoding.hasInnerLevel() || encoding.getOrder() != OutputOrder::Identity)
    return false;
  if (ScheduleAttr schedule = getSchedule(op))
    return schedule.getOperandTiles().valuesKMajor;
  return choice.chip && choice.chip->wgmma > 0 &&
         element.getIntOrFloatBitWidth() == 8 &&
         encoding.getBlockN() % kProductOutputs == 0 &&
         kLineRows % encoding.getBlockK() == 0 &&
         !ShapedType::isDynamic(windows) &&
         windows * encoding.getKeptRows() >= kLineRows;
}

/// Products of tensor cores gather rows for panels of 8 outputs and more. Those
/// of warpgroups expand bitmaps for any.
bool nm_sparse::prefersBitmaps(MatmulOp op, EncodingAttr encoding,
                               const StorageChoice &choice) {
  if (choice.storage == "canonical")
    return false;
  // Two levels have no other kernels, and those have tiles inside of panels.
  if (encoding.hasInnerLevel())
    return encoding.getBlockN() % BitmapTile::kOutputs == 0;
  Type element = getElementTypeOrSelf(op.getX());
  if (ScheduleAttr schedule = getSchedule(op);
      choice.storage == "auto" && schedule)
    return schedule.getOperandTiles().isBitmap();
  // Elements of 8 bits have no other kernels.
  if (element.getIntOrFloatBitWidth() == 8)
    return true;
  int64_t tileRows =
      BitmapTile::get(encoding, element.getIntOrFloatBitWidth() / 8).rows;
  if (tileRows > kMostTileRows)
    return false;
  if (choice.storage == kBitmaps)
    return true;
  // Tensor cores have no kernel at all for panels that no fragment fits.
  int64_t panel = encoding.getBlockN();
  if (!element.isF32() && panel % 8 != 0 && 8 % panel != 0)
    return true;
  int64_t most = getMostTokens(op, choice);
  const Chip *target = choice.chip;
  bool expands = target && target->wgmma > 0 && tileRows <= kMostRows;
  // Lanes read 16 bytes of a panel, where there are as many.
  int64_t run = 128 / int64_t(element.getIntOrFloatBitWidth());
  // Those that are sparse read bits alone.
  const ElementFormat *format = findElementFormat(element);
  bool isSparse = target && encoding.isTwoOfFour() && format &&
                  format->sparseMma &&
                  format->sparseMma->existsOn(target->name);
  return (most <= kFewTokens || isSparse || (expands && !element.isF32())) &&
         panel % run != 0;
}

bool nm_sparse::prefersStorage(MatmulOp op, EncodingAttr encoding,
                               const StorageChoice &choice) {
  bool isOther = choice.storage != "auto" && choice.storage != "canonical" &&
                 choice.storage != kBitmaps;
  return isOther || prefersBitmaps(op, encoding, choice);
}

WeightStorageInterface nm_sparse::getStorage(const StorageChoice &choice,
                                             EncodingAttr encoding) {
  MLIRContext *context = encoding.getContext();
  StringRef name = choice.storage == "auto" ? kBitmaps : choice.storage;
  if (!name.contains('.'))
    return context->getLoadedDialect<NMSparseDialect>()->getStorage(name,
                                                                    encoding);
  std::string text;
  llvm::raw_string_ostream(text) << '#' << name << '<' << encoding << '>';
  return dyn_cast_or_null<WeightStorageInterface>(
      parseAttribute(text, context));
}
