//===- MmaSpLowering.cpp - sparse products of warps -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Outputs are the 16 rows of a product and tokens its 8 columns: only the first
// operand may be sparse. The kept values of an output are its row, in order, so
// that 16 bytes of 8 outputs, which are neighbours in a tile of the weight, are
// a matrix of ldmatrix, and need no permutation of the contraction.
//
//===----------------------------------------------------------------------===//

#include "../FragmentLayout.h"
#include "../Metadata.h"
#include "../ProductAttrs.h"
#include "../SharedLoads.h"
#include "../WarpProduct.h"
#include "nm_sparse/Conversion/TileToThreads/ProductLowering.h"
#include "nm_sparse/Transfers/TileStorage.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "nm_sparse/Dialect/NMTile/IR/ElementFormat.h"
#include "nm_sparse/Dialect/NMTile/IR/TileLayout.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// Rows and bytes of a row of a matrix of ldmatrix, and matrices of an operand.
static constexpr int64_t kMatrixRows = 8, kMatrixBytes = 16, kMatrices = 4;

namespace {

/// Reads the values of 16 outputs that a product multiplies.
class ValueFragments {
public:
  ValueFragments(OpBuilder &b, TileMatmulOp op, const ThreadLayout &layout);

  /// Registers of the product that begins with tile `number` along the
  /// contraction, and of the outputs that begin `output` further.
  SmallVector<Value> read(int64_t number, int64_t output);

private:
  /// Bytes from the warp's first values to piece `piece` of the 16 outputs that
  /// begin `output` further, in tile `number`: TileLayout::ColumnBlocks.
  int64_t getOffset(int64_t number, int64_t piece, int64_t output) const;

  OpBuilder &b;
  Location loc;
  MemRefType type;
  int64_t elementBytes;
  /// Pieces of an output in a tile.
  int64_t pieces;
  /// Where the lane's row of the first matrices begins.
  Value first;
};

/// Reads the activations of 8 tokens that a product multiplies.
class TokenFragments {
public:
  TokenFragments(OpBuilder &b, TileMatmulOp op, const ThreadLayout &layout);

  /// Registers of the rows from `row` on, and of the warp's tokens from `token`
  /// on.
  SmallVector<Value> read(int64_t row, int64_t token);

private:
  OpBuilder &b;
  Location loc;
  IndexMath math;
  const ThreadLayout &layout;
  Type element;
  TileStorage storage;
  bool isTokenMajor;
};

/// Emits the product of one K step.
class MmaSpEmitter {
public:
  MmaSpEmitter(OpBuilder &b, TileMatmulOp op, const ThreadLayout &layout,
               MutableArrayRef<Value> acc)
      : b(b), op(op), loc(op.getLoc()), layout(layout), acc(acc),
        format(*findElementFormat(getElementTypeOrSelf(op.getRhs()))) {}

  void emit();

private:
  Value asOperand(Value reg);
  void emitProduct(ArrayRef<Value> values, ArrayRef<Value> x, Value metadata,
                   int64_t selector, MutableArrayRef<Value> sums);

  OpBuilder &b;
  TileMatmulOp op;
  Location loc;
  const ThreadLayout &layout;
  MutableArrayRef<Value> acc;
  const ElementFormat &format;
};

} // namespace

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

ValueFragments::ValueFragments(OpBuilder &b, TileMatmulOp op,
                               const ThreadLayout &layout)
    : b(b), loc(op.getLoc()), type(cast<MemRefType>(op.getRhs().getType())),
      elementBytes(type.getElementTypeBitWidth() / 8),
      pieces(type.getDimSize(2) * elementBytes / kMatrixBytes /
             BitmapTile::kOutputs) {
  IndexMath math{b, loc};
  // Matrices are 8 outputs, the 8 behind them, and the same of the next piece.
  Value matrix = math.div(layout.lane, kMatrixRows);
  Value output = math.add(math.rem(layout.lane, kMatrixRows),
                          math.mul(math.rem(matrix, 2), kMatrixRows));
  int64_t further = pieces > 1 ? getOffset(0, 1, 0) : getOffset(1, 0, 0);
  int64_t nextBlock = getOffset(0, 0, BitmapTile::kOutputs);
  Value block = math.div(layout.unitOutput, BitmapTile::kOutputs);
  Value element =
      math.add(math.mul(output, kMatrixBytes / elementBytes),
               math.add(math.mul(math.div(matrix, 2), further / elementBytes),
                        math.mul(block, nextBlock / elementBytes)));
  first = getPointer(b, loc, op.getRhs(), element);
}

int64_t ValueFragments::getOffset(int64_t number, int64_t piece,
                                  int64_t output) const {
  int64_t blockBytes = getColumnBlock(type) * elementBytes;
  int64_t place =
      (piece * BitmapTile::kOutputs + output % BitmapTile::kOutputs) *
      kMatrixBytes;
  int64_t row = output / BitmapTile::kOutputs * type.getDimSize(1) + number;
  return (place / blockBytes * type.getDimSize(0) * type.getDimSize(1) + row) *
             blockBytes +
         place % blockBytes;
}

/// Four matrices whose rows the lanes point at, as words.
static SmallVector<Value> loadMatrices(OpBuilder &b, Location loc, Value at) {
  auto result = LLVM::LLVMStructType::getLiteral(
      b.getContext(), SmallVector<Type>(kMatrices, b.getI32Type()));
  Value matrices = NVVM::LdMatrixOp::create(
      b, loc, result, at, kMatrices, NVVM::MMALayout::row,
      NVVM::LdStMatrixShapeAttr::get(b.getContext(), 8, 8),
      NVVM::LdStMatrixEltType::B16);
  SmallVector<Value> registers;
  for (int64_t i = 0; i < kMatrices; ++i)
    registers.push_back(LLVM::ExtractValueOp::create(b, loc, matrices, i));
  return registers;
}

SmallVector<Value> ValueFragments::read(int64_t number, int64_t output) {
  Value at = LLVM::GEPOp::create(b, loc, first.getType(), b.getI8Type(), first,
                                 ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(
                                     getOffset(number, 0, output))});
  return loadMatrices(b, loc, at);
}

TokenFragments::TokenFragments(OpBuilder &b, TileMatmulOp op,
                               const ThreadLayout &layout)
    : b(b), loc(op.getLoc()), math(b, loc), layout(layout),
      element(getElementTypeOrSelf(op.getLhs())), storage(b, loc, op.getLhs()),
      isTokenMajor(op.getLhsOrder() == MajorOrder::K) {}

SmallVector<Value> TokenFragments::read(int64_t row, int64_t token) {
  int64_t bits = element.getIntOrFloatBitWidth();
  Value tokens = math.add(layout.unitToken, token);
  Value tileRow, tileColumn, swizzleRow;
  if (isTokenMajor) {
    swizzleRow = math.rem(layout.lane, kMatrixRows);
    tileRow = math.add(tokens, swizzleRow);
    tileColumn = math.add(
        math.mul(math.div(layout.lane, kMatrixRows), kMatrixBytes * 8 / bits),
        row);
  } else {
    swizzleRow = layout.lane;
    tileRow = math.add(layout.lane, row);
    tileColumn = tokens;
  }
  SmallVector<Value> at =
      storage.getIndices(b, loc, tileRow, tileColumn, swizzleRow);
  // The lowering of nvgpu's has no registers of 8-bit floats.
  if (bits == 8)
    return loadMatrices(b, loc, getPointer(b, loc, storage.getBuffer(), at));
  Value matrices = nvgpu::LdMatrixOp::create(
      b, loc, VectorType::get({kMatrices, 32 / bits}, element),
      storage.getBuffer(), at, b.getBoolAttr(!isTokenMajor),
      b.getI32IntegerAttr(kMatrices));
  SmallVector<Value> registers;
  for (int64_t i = 0; i < kMatrices; ++i)
    registers.push_back(vector::ExtractOp::create(b, loc, matrices, i));
  return registers;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// A register of elements as the operation takes it: pairs of f16, or a word.
Value MmaSpEmitter::asOperand(Value reg) {
  Type element = format.getType(b.getContext());
  Type type = element.isF16() ? Type(VectorType::get({2}, element))
                              : Type(b.getI32Type());
  return reg.getType() == type ? reg
                               : LLVM::BitcastOp::create(b, loc, type, reg);
}

/// `sums` of 16 outputs and 8 tokens, and their product.
void MmaSpEmitter::emitProduct(ArrayRef<Value> values, ArrayRef<Value> x,
                               Value metadata, int64_t selector,
                               MutableArrayRef<Value> sums) {
  const MatrixInstruction &instruction = *format.sparseMma;
  bool isInteger = format.accumulator == ElementFormat::Accumulator::I32;
  // The verifier of the op wants fewer registers of 8-bit floats than the
  // instruction has.
  if (format.bits == 8 && !isInteger)
    return emitWarpProduct(b, loc, format, instruction, {values, x, metadata},
                           sums);
  auto result = LLVM::LLVMStructType::getLiteral(
      b.getContext(), SmallVector<Type>(sums.size(), sums.front().getType()));
  NVVM::MMATypes type = *NVVM::symbolizeMMATypes(format.ptxType);
  Value after = NVVM::MmaSpOp::create(
      b, loc, result, values, x, sums, metadata,
      IndexMath(b, loc).word(selector),
      ArrayRef<int64_t>{instruction.m, instruction.n, instruction.k},
      isInteger ? std::optional(NVVM::MMAIntOverflow::wrapped) : std::nullopt,
      std::array<NVVM::MMATypes, 2>{type, type});
  for (auto [i, sum] : llvm::enumerate(sums))
    sum = LLVM::ExtractValueOp::create(b, loc, after, static_cast<int64_t>(i));
}

void MmaSpEmitter::emit() {
  ValueFragments values(b, op, layout);
  TokenFragments x(b, op, layout);
  Metadata metadata(b, op, layout.lane, layout.unitOutput);
  int64_t tiles = cast<MemRefType>(op.getRhs().getType()).getDimSize(1);
  int64_t rows = format.sparseMma->k, perPair = MmaSpAttr::kPairRows / rows;
  int64_t columns = layout.unitTokens / MmaSpAttr::kFragmentTokens;
  auto read = [&](SmallVector<Value> registers) {
    for (Value &reg : registers)
      reg = asOperand(reg);
    return registers;
  };
  for (int64_t pair = 0; pair < tiles; pair += 2) {
    SmallVector<Value> words;
    for (int64_t output = 0; output < layout.unitOutputs;
         output += MmaSpAttr::kFragmentOutputs)
      words.push_back(metadata.get(pair, output));
    for (int64_t product = 0; product < perPair; ++product) {
      SmallVector<SmallVector<Value>> weights;
      for (size_t f = 0; f < words.size(); ++f)
        weights.push_back(
            read(values.read(pair + product, static_cast<int64_t>(f) * 16)));
      for (int64_t column = 0; column < columns; ++column) {
        SmallVector<Value> tokens =
            read(x.read(pair * MmaSpAttr::kPairRows / 2 + product * rows,
                        column * MmaSpAttr::kFragmentTokens));
        for (auto [f, weight] : llvm::enumerate(weights))
          emitProduct(weight, tokens, words[f], product,
                      acc.slice((f * columns + column) * 4, 4));
      }
    }
  }
}

namespace {
struct MmaSpLowering
    : public ProductLoweringInterface::ExternalModel<MmaSpLowering, MmaSpAttr> {
  FailureOr<AccumulatorAttr> layOut(Attribute attribute,
                                    TileMatmulOp op) const {
    ScheduleAttr schedule = op.getSchedule();
    ArrayRef<int64_t> warps = cast<MmaSpAttr>(attribute).getWarps();
    return layOutFragments(op.getContext(),
                           {TileDim::Outputs, MmaSpAttr::kFragmentOutputs,
                            schedule.getTileOutputs() / warps[1],
                            schedule.getTileTokens() / warps[0]},
                           divideAmongWarps(schedule, warps));
  }

  ThreadUse getThreadUse(Attribute, TileMatmulOp) const {
    ThreadUse use;
    use.transposesFragments = true;
    return use;
  }

  LogicalResult emit(Attribute, OpBuilder &b, TileMatmulOp op,
                     const ThreadLayout &layout,
                     MutableArrayRef<Value> accumulators) const {
    MmaSpEmitter(b, op, layout, accumulators).emit();
    return success();
  }
};
} // namespace

void nm_sparse::registerMmaSpLowering(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, NMTileDialect *) {
    MmaSpAttr::attachInterface<MmaSpLowering>(*context);
  });
}
