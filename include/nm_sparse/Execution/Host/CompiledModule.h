//===- CompiledModule.h - run a lowered module in this process --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_EXECUTION_HOST_COMPILEDMODULE_H
#define NM_SPARSE_EXECUTION_HOST_COMPILEDMODULE_H

#include "mlir/IR/BuiltinOps.h"
#include "nm_sparse/Execution/Host/Array.h"
#include "llvm/Support/Error.h"
#include <memory>

namespace mlir {
class ExecutionEngine;
} // namespace mlir

namespace mlir::nm_sparse {

/// One argument of a call: an array, passed as a memref, or the bytes of a
/// scalar.
struct Argument {
  HostArray array;
  bool isScalar = false;
};

struct ResultType {
  int32_t kind;
  int64_t rank;
};

/// Machine code of a module of the LLVM dialect, with the runtime's entry
/// points linked in. Memory that the code allocates, on the host or the device,
/// starts as NaN, so reads of memory that nothing wrote show in the result.
class CompiledModule {
public:
  static llvm::Expected<std::unique_ptr<CompiledModule>>
  create(ModuleOp module, unsigned optLevel);
  ~CompiledModule();

  /// Calls `function`, which was lowered with `llvm.emit_c_interface`. It may
  /// write to the arrays of `arguments`.
  llvm::Expected<std::vector<HostArray>>
  call(StringRef function, MutableArrayRef<Argument> arguments,
       ArrayRef<ResultType> results);

private:
  CompiledModule();
  std::unique_ptr<ExecutionEngine> engine;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_EXECUTION_HOST_COMPILEDMODULE_H
