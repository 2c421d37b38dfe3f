//===- Functions.h - instructions that only compute -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One table for two spellings: inline PTX and the intrinsics of LLVM.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EMULATOR_OPS_SCALAR_FUNCTIONS_H
#define NM_SPARSE_LIB_EMULATOR_OPS_SCALAR_FUNCTIONS_H

#include "Memory/Site.h"

namespace mlir::nm_sparse::emulator {

/// An instruction with one result that depends on its operands alone.
struct Function {
  StringRef ptx;       ///< "ex2.approx.ftz.f32"
  StringRef intrinsic; ///< "llvm.nvvm.ex2.approx.ftz", empty when none.
  uint8_t resultBytes;
  ArrayRef<uint8_t> operandBytes;
  void (*run)(Values operands, void *result);
};

ArrayRef<Function> getMathFunctions();   ///< f32
ArrayRef<Function> getPackedFunctions(); ///< 16-bit floats, alone and in pairs
ArrayRef<Function> getConversionFunctions(); ///< cvt
ArrayRef<Function> getBitFunctions();        ///< prmt, lop3, dp4a

/// All of these.
SmallVector<const Function *, 0> getFunctions();

/// Null when there is none.
const Function *findFunction(StringRef ptx);
const Function *findFunctionOfIntrinsic(StringRef intrinsic);

//===--- For the tables -------------------------------------------------===//

/// Makes a table entry of a C++ function whose parameters are laid out as the
/// operands are.
template <typename Type, Type function>
struct MakeFunction;
template <typename R, typename... A, R (*function)(A...)>
struct MakeFunction<R (*)(A...), function> {
  static constexpr uint8_t resultBytes = sizeof(R);
  static constexpr uint8_t operandBytes[] = {sizeof(A)...};
  static void run(Values operands, void *result) {
    call(operands, result, std::index_sequence_for<A...>());
  }

private:
  template <size_t... i>
  static void call(Values operands, void *result, std::index_sequence<i...>) {
    *static_cast<R *>(result) = function(*static_cast<A *>(operands[i])...);
  }
};

template <auto function>
Function makeFunction(StringRef ptx, StringRef intrinsic = {}) {
  using Make = MakeFunction<decltype(function), function>;
  return {ptx, intrinsic, Make::resultBytes, Make::operandBytes, Make::run};
}

} // namespace mlir::nm_sparse::emulator

#endif // NM_SPARSE_LIB_EMULATOR_OPS_SCALAR_FUNCTIONS_H
