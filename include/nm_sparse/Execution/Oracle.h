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
  /// Of the text or bytecode `program`, its function `entry` (empty: the only
  /// public one).
  static llvm::Expected<std::unique_ptr<Oracle>> create(StringRef program,
                                                        StringRef entry);
  ~Oracle();

  /// What the function takes: the components of its canonical packed form in
  /// place of each encoded weight.
  size_t getNumArguments() const { return expected.size(); }

  /// The results for `arguments`, of which it may write to those that are
  /// results, too.
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
