//===- ElementFormat.cpp - element types and what multiplies them ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Facts are those of the PTX ISA: shapes, chips and versions of mma and mma.sp
// from "Warp Level Matrix Multiply-Accumulate Instructions"; those of wgmma
// from "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions"
// (9.7.15), whose "Shared Memory Matrix Layout" (9.7.15.5.1.2) has the
// swizzles, and whose wgmma.mma_async transposes operands of 16 bits alone.
// ptxas 13.0 takes each instruction with what the table says, and nothing
// older.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMTile/IR/ElementFormat.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

template <typename T>
bool isOf(Type type) {
  return isa<T>(type);
}

template <typename T>
Type make(MLIRContext *context) {
  return T::get(context);
}

bool isI8(Type type) { return type.isSignlessInteger(8); }
Type makeI8(MLIRContext *context) { return IntegerType::get(context, 8); }

/// Each takes 32 bytes of a row of A, and as many of a column of B; a sparse
/// one twice as many of B. Shorter ones, of 16 bytes, need more instructions
/// for the same product.
constexpr int64_t instructionBits = 256;

using Instruction = std::optional<MatrixInstruction>;

constexpr Instruction none;
constexpr Instruction mma(int64_t bits, llvm::StringRef chip, unsigned ptx) {
  return MatrixInstruction{16, 8, instructionBits / bits, 8, chip, ptx};
}
/// Without the modifier `ordered_metadata`, which is of PTX 8.5.
constexpr Instruction sparseMma(int64_t bits, llvm::StringRef chip,
                                unsigned ptx) {
  return MatrixInstruction{16, 8, 2 * instructionBits / bits, 8, chip, ptx};
}
constexpr Instruction wgmma(int64_t bits, int64_t nStep = 8) {
  return MatrixInstruction{64,    256,      instructionBits / bits,
                           nStep, "sm_90a", 80};
}
constexpr Instruction sparseWgmma(int64_t bits, int64_t nStep = 8) {
  return MatrixInstruction{64,    256,      2 * instructionBits / bits,
                           nStep, "sm_90a", 82};
}

constexpr auto f32 = ElementFormat::Accumulator::F32;
constexpr auto i32 = ElementFormat::Accumulator::I32;
constexpr bool yes = true, no = false;

// name, PTX type, MLIR type, bits, sum, stored, FFMA, MN-major, instructions.
constexpr ElementFormat formats[] = {
    {"f32", "f32", isOf<Float32Type>, make<Float32Type>, 32, f32, yes, yes, no,
     none, none, none, none},
    {"tf32", "tf32", isOf<FloatTF32Type>, make<FloatTF32Type>, 32, f32, no, no,
     no, //
     mma(32, "sm_80", 70), sparseMma(32, "sm_80", 71), wgmma(32),
     sparseWgmma(32)},
    {"f16", "f16", isOf<Float16Type>, make<Float16Type>, 16, f32, yes, no,
     yes, //
     mma(16, "sm_80", 70), sparseMma(16, "sm_80", 71), wgmma(16),
     sparseWgmma(16)},
    {"bf16", "bf16", isOf<BFloat16Type>, make<BFloat16Type>, 16, f32, yes, no,
     yes, //
     mma(16, "sm_80", 70), sparseMma(16, "sm_80", 71), wgmma(16),
     sparseWgmma(16)},
    {"e4m3", "e4m3", isOf<Float8E4M3FNType>, make<Float8E4M3FNType>, 8, f32,
     yes, no, no, //
     mma(8, "sm_89", 84), sparseMma(8, "sm_89", 84), wgmma(8), sparseWgmma(8)},
    {"e5m2", "e5m2", isOf<Float8E5M2Type>, make<Float8E5M2Type>, 8, f32, yes,
     no, no, //
     mma(8, "sm_89", 84), sparseMma(8, "sm_89", 84), wgmma(8), sparseWgmma(8)},
    {"i8", "s8", isI8, makeI8, 8, i32, yes, no, no, //
     mma(8, "sm_80", 70), sparseMma(8, "sm_80", 71), wgmma(8, 16),
     sparseWgmma(8, 16)},
};

/// The number of a chip: 90 of sm_90a; 0 of what is no chip.
unsigned getNumber(llvm::StringRef chip) {
  unsigned number = 0;
  if (chip.consume_front("sm_"))
    chip.consumeInteger(10, number);
  return number;
}

} // namespace

llvm::ArrayRef<ElementFormat> nm_sparse::getElementFormats() { return formats; }

bool MatrixInstruction::isLegalN(int64_t columns) const {
  return columns >= 8 && columns <= n &&
         columns % (columns > 32 ? nStep : 8) == 0;
}

bool MatrixInstruction::existsOn(llvm::StringRef target) const {
  // Features of a chip whose name ends in a letter are of that chip alone.
  if (llvm::isAlpha(chip.back()))
    return target == chip;
  return getNumber(target) >= getNumber(chip);
}

Type ElementFormat::getAccumulatorType(MLIRContext *context) const {
  if (accumulator == Accumulator::I32)
    return IntegerType::get(context, 32);
  return Float32Type::get(context);
}

llvm::ArrayRef<int64_t> ElementFormat::getLegalSwizzles() const {
  static constexpr int64_t swizzles[] = {0, 32, 64, 128};
  if (!wgmma)
    return {};
  return swizzles;
}

const ElementFormat *nm_sparse::findElementFormat(Type elementType) {
  for (const ElementFormat &format : formats)
    if (format.isType(elementType))
      return &format;
  return nullptr;
}

const ElementFormat *nm_sparse::findElementFormat(llvm::StringRef name) {
  for (const ElementFormat &format : formats)
    if (format.name == name)
      return &format;
  return nullptr;
}
