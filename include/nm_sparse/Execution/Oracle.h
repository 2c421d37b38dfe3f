//===- Oracle.h - a function of a program, on the CPU -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_EXECUTION_ORACLE_H
#define NM_SPARSE_EXECUTION_ORACLE_H

#include "nm_sparse/Execution/Host/CompiledModule.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <string>
#include <vector>

namespace mlir::nm_sparse {

/// A function compiled for the CPU, with weights unpacked and no kernel.
class Oracle {
public:
  /// Compiles the function `entry` of `program`, text or bytecode. An empty
  /// `entry` names the only public function.
  static llvm::Expected<std::unique_ptr<Oracle>> create(StringRef program,
                                                        StringRef entry);
  ~Oracle();

  /// The number of arguments. In place of each encoded weight, the function
  /// takes the components of its canonical packed form.
  size_t getNumArguments() const { return expected.size(); }

  /// Computes the results for `arguments`. It may write to arguments that are
  /// also results.
  llvm::Expected<std::vector<HostArray>> call(std::vector<Argument> &arguments);

private:
  struct Expected {
    std::string name; ///< For messages.
    Type type;        ///< A ranked tensor or a number.
  };
  Oracle();
  llvm::Error findArguments(Operation *function);
  llvm::Error check(size_t number, const Argument &argument) const;

  std::unique_ptr<MLIRContext> context;
  std::string entry;
  std::vector<Expected> expected;
  SmallVector<ResultType> results;
  std::unique_ptr<CompiledModule> compiled;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_EXECUTION_ORACLE_H
