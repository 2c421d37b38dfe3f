//===- ElementFormat.h - element types and what multiplies them -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One table of the element types that weights and activations can have: how
// wide they are, what they are summed in, and for each instruction that
// multiplies matrices of them its shape, its name for the type, and where it
// exists. Numbers and names alone: nothing of the NVVM or NVGPU dialects.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMTILE_IR_ELEMENTFORMAT_H
#define NM_SPARSE_DIALECT_NMTILE_IR_ELEMENTFORMAT_H

#include "mlir/IR/Types.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <optional>

namespace mlir::nm_sparse {

/// An instruction that adds an m x k times a k x n matrix to an m x n one. If A
/// is 2:4-sparse, k counts the columns of A before compression.
struct MatrixInstruction {
  int64_t m;
  int64_t n; ///< The most columns; isLegalN says which others there are.
  int64_t k;
  int64_t nStep;        ///< Above 32 columns, n is a multiple of this.
  llvm::StringRef chip; ///< The oldest that has it.
  unsigned ptx;         ///< The oldest PTX version that has it; 71 is 7.1.

  bool isLegalN(int64_t columns) const;
  /// Returns true if a chip, such as sm_120a, has the instruction.
  bool existsOn(llvm::StringRef target) const;
};

/// The contiguous dimension of an operand in shared memory: the contraction, or
/// the rows of A and the columns of B.
enum class MajorOrder : uint8_t { K, MN };

struct ElementFormat {
  enum class Accumulator : uint8_t { F32, I32 };

  llvm::StringRef name;
  /// That of the PTX instructions, and of NVVM's enums MMATypes and WGMMATypes.
  llvm::StringRef ptxType;
  bool (*isType)(Type);
  Type (*getType)(MLIRContext *);
  int64_t bits; ///< Width of an element in memory.
  Accumulator accumulator;
  bool isStored;   ///< False for tf32, which lies in memory as f32.
  bool hasFMA;     ///< The CUDA cores multiply it: FFMA.
  bool hasMNMajor; ///< wgmma reads operands of either order, not K alone.

  std::optional<MatrixInstruction> mma;         ///< mma.sync
  std::optional<MatrixInstruction> sparseMma;   ///< mma.sp.sync
  std::optional<MatrixInstruction> wgmma;       ///< wgmma.mma_async
  std::optional<MatrixInstruction> sparseWgmma; ///< wgmma.mma_async.sp

  Type getAccumulatorType(MLIRContext *context) const;

  /// Returns true if wgmma reads operands of this order from shared memory.
  bool isLegalOrder(MajorOrder order) const {
    return wgmma && (order == MajorOrder::K || hasMNMajor);
  }

  /// Bytes of the lines over which wgmma's operands may be swizzled; 0 is no
  /// swizzle. Empty if there is no wgmma.
  llvm::ArrayRef<int64_t> getLegalSwizzles() const;

  /// Elements of a line of `bytes` bytes.
  int64_t getLineColumns(int64_t bytes = 128) const { return bytes * 8 / bits; }
};

/// The whole table.
llvm::ArrayRef<ElementFormat> getElementFormats();

/// The format of an element type, or null.
const ElementFormat *findElementFormat(Type elementType);

/// The format called `name`, or null.
const ElementFormat *findElementFormat(llvm::StringRef name);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_DIALECT_NMTILE_IR_ELEMENTFORMAT_H
