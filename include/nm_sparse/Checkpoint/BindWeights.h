//===- BindWeights.h - arguments that become constants ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_CHECKPOINT_BINDWEIGHTS_H
#define NM_SPARSE_CHECKPOINT_BINDWEIGHTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

namespace mlir::nm_sparse {

/// NAME=FILE[:TENSOR], as the command line has it.
struct WeightBinding {
  std::string argument; ///< Its name in the program, or its number.
  std::string file;
  std::string tensor; ///< Empty: the only one of the file.

  static llvm::Expected<WeightBinding> parse(StringRef text);
};

/// Makes an argument of `entry`, a function that nothing calls, the constant
/// that `binding` names: a tensor of its type and shape in a safetensors file.
/// Names of arguments are those in the file that `entry` was read from.
llvm::Error bindWeight(func::FuncOp entry, const WeightBinding &binding);

/// The same for the only public function of `module`.
llvm::Error bindWeights(ModuleOp module, ArrayRef<WeightBinding> bindings);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_CHECKPOINT_BINDWEIGHTS_H
