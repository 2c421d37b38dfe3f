//===- WeightStorage.h - levels of a pattern, components of a weight ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The plain data behind #nm_sparse.encoding and WeightStorageInterface.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMSPARSE_IR_WEIGHTSTORAGE_H
#define NM_SPARSE_DIALECT_NMSPARSE_IR_WEIGHTSTORAGE_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OpDefinition.h"
#include "llvm/ADT/Hashing.h"

#include "nm_sparse/Dialect/NMSparse/IR/NMSparseEnums.h.inc"

namespace mlir::nm_sparse {

/// At most n of every m blocks of bk x bn elements are kept, along the
/// contraction and separately for each panel of bn outputs.
struct SparsityLevel {
  int64_t n, m; ///< 0:0 stands for a `free` distribution.
  int64_t blockK = 1, blockN = 1;

  bool isFree() const { return n == 0; }
  /// 2:4 of single rows, which sparse tensor cores multiply.
  bool isTwoOfFour() const { return n == 2 && m == 4 && blockK == 1; }
  /// Rows that one window spans. A free row of blocks is a window of one block,
  /// which may be kept.
  int64_t getWindowRows() const { return isFree() ? blockK : m * blockK; }
  /// Rows of one window that are kept.
  int64_t getKeptRows() const { return isFree() ? blockK : n * blockK; }
  /// Width in bits of a position: the smallest of 8, 16, 32 that holds m - 1
  /// unsigned.
  unsigned getIndexBitWidth() const {
    return m <= (1 << 8) ? 8 : m <= (1 << 16) ? 16 : 32;
  }

  bool operator==(const SparsityLevel &other) const {
    return n == other.n && m == other.m && blockK == other.blockK &&
           blockN == other.blockN;
  }
  // NOLINTNEXTLINE(readability-identifier-naming): found by this name.
  friend llvm::hash_code hash_value(const SparsityLevel &level) {
    return llvm::hash_combine(level.n, level.m, level.blockK, level.blockN);
  }
};

class EncodingAttr;

/// A tile of a weight that is stored as bitmaps: rows of 32 outputs, one for
/// each lane of a warp (docs/Encoding.md).
struct BitmapTile {
  static constexpr int64_t kOutputs = 32;
  /// An output's values come in pieces of so many bytes, which one access
  /// reads.
  static constexpr int64_t kPieceBytes = 16;
  /// Rows that a tensor core multiplies at once.
  static constexpr int64_t kFragmentRows = 16;

  /// Rows of a tile of free elements. Values and bits are stored by block of
  /// outputs. The words of a block begin with the bits of all tiles. A header
  /// follows: the first piece of the block, the number of pieces in which every
  /// output has a row for each value, and the number of pieces. Then follows
  /// the start of each segment of values: a row, and a byte to add for each
  /// output.
  static constexpr int64_t kFreeRows = 256, kHeaderWords = 4,
                           kSegmentValues = 64,
                           kSegmentWords = 1 + kOutputs / 4;
  /// The number of values of an output in a group, which lies within 32 rows
  /// from its start.
  static constexpr int64_t kGroupValues = 4;

  int64_t rows;        ///< Rows that its level chooses from.
  int64_t values;      ///< Kept elements of an output; at most, where free.
  int64_t words;       ///< 32-bit words: a bit for each row of an output.
  bool isFree = false; ///< Outputs keep any number of elements.

  /// The smallest tile of whole windows of `encoding`, of two levels of the
  /// inner one, in which values of `elementBytes` fill whole pieces, at most an
  /// eighth of the bits is padding, and fragments do not reach into the next
  /// tile.
  static BitmapTile get(EncodingAttr encoding, int64_t elementBytes);

  /// Words of the component `bits` that belong to a tile.
  int64_t getBitsWords() const {
    return words * kOutputs +
           (isFree ? kHeaderWords + kFreeRows / kSegmentValues * kSegmentWords
                   : 0);
  }
};

/// Panels that each list the rows that they keep.
struct ListedPanels {
  int64_t rows;      ///< Panels are filled up to multiples of so many rows.
  int64_t blockRows; ///< Rows that are stored, and listed, together.
  double density;    ///< The share of the rows that is expected to be kept.
};

/// The name of the component that holds the kept elements, and of those that
/// hold the positions of the outer and of the inner level.
inline constexpr llvm::StringLiteral kValuesComponent = "values";
inline constexpr llvm::StringLiteral kIndexComponent = "index";
inline constexpr llvm::StringLiteral kInnerIndexComponent = "inner_index";
/// A bit for each element that says if it is kept.
inline constexpr llvm::StringLiteral kBitsComponent = "bits";
/// The place of the rows of each panel, and the order in which panels are
/// multiplied.
inline constexpr llvm::StringLiteral kPanelsComponent = "panels";

/// The words in row i of the component `panels`, which has a row for each
/// panel. The first three are of the panel that is multiplied as number i.
enum PanelWord : int64_t {
  kPanelFirst,  ///< Its first row in `values`.
  kPanelRows,   ///< How many it has there.
  kPanelNumber, ///< Which panel of outputs it is.
  kPanelPlace,  ///< As which number panel i is multiplied.
  kPanelWords
};
/// The output of the weight that each column of the packed outputs holds.
inline constexpr llvm::StringLiteral kPermComponent = "perm";

/// One of the plain tensors that hold a weight.
struct WeightComponent {
  StringRef name; ///< Unique among the components of a weight; a literal.
  ComponentRole role;
  RankedTensorType type;
  unsigned level = 0; ///< Whose positions it holds, counted from the outer one.
};

/// The data of a component, in row-major order.
struct PackedComponent {
  RankedTensorType type; ///< Of static shape.
  SmallVector<char, 0> data;
};

/// How many windows a weight has, by one of its components: its extent along
/// the contraction, the last dimension but one, times `factor` over `divisor`.
struct WindowCount {
  unsigned component;
  int64_t factor, divisor;
};

/// The place of a tile's first output in its panel; 0 where it is not given.
inline constexpr llvm::StringLiteral kPanelOffsetPlace = "panel_offset";
/// The kept row of a weight that its values begin with, or the first one of a
/// step. Without it they are those of whole windows.
inline constexpr llvm::StringLiteral kFirstRowPlace = "first_row";

/// A number, known at run time, that says where in a weight a part of it lies.
struct WeightPlace {
  StringRef name; ///< A literal.
  Value value;    ///< An index.
};

/// The part of a weight that a tile of a product multiplies.
struct WeightSlice {
  /// In the order of the storage.
  SmallVector<Value> components;
  SmallVector<WeightPlace> places = {};

  SmallVector<Value> getPlaceValues() const;
  /// The names of the places; null without any.
  ArrayAttr getPlaceNames(MLIRContext *context) const;
};

/// The number of that name among `places` of an operation, or null.
Value findPlace(ValueRange places, std::optional<ArrayAttr> names,
                StringRef name);
/// Checks that places and their names are as many, and that no name is twice.
LogicalResult verifyPlaces(Operation *op, ValueRange places,
                           std::optional<ArrayAttr> names);

/// `(name = %value, ...)`.
ParseResult parsePlaces(OpAsmParser &parser,
                        SmallVectorImpl<OpAsmParser::UnresolvedOperand> &places,
                        ArrayAttr &names);
void printPlaces(OpAsmPrinter &printer, Operation *op, ValueRange places,
                 ArrayAttr names);

/// Loads the position of a block from the second of `tiles`, where it lies at
/// [block, panel].
Value loadPosition(OpBuilder &builder, Location loc, ValueRange tiles,
                   Value block, Value panel);

/// The part of a weight that one step of a kernel multiplies.
struct WeightTile {
  int64_t rows;       ///< Kept rows, of the innermost level.
  int64_t paddedRows; ///< With those that the product multiplies beside them.
  int64_t outputs;
  int64_t positions; ///< Rows of positions of the outer level.
  int64_t panels;    ///< Panels that the outputs lie in.
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_DIALECT_NMSPARSE_IR_WEIGHTSTORAGE_H
