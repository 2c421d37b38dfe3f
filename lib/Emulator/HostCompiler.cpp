//===- HostCompiler.cpp - machine code of the host ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For host code and emulated kernels alike.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Emulator/HostCompiler.h"

#include "mlir/ExecutionEngine/OptUtils.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;

llvm::Expected<std::unique_ptr<ExecutionEngine>>
nm_sparse::compileForHost(ModuleOp module, unsigned optLevel,
                          SymbolProvider symbols) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  auto builder = llvm::orc::JITTargetMachineBuilder::detectHost();
  if (!builder)
    return builder.takeError();
  auto machine = builder->createTargetMachine();
  if (!machine)
    return machine.takeError();

  ExecutionEngineOptions options;
  auto transformer =
      makeOptimizingTransformer(optLevel, /*sizeLevel=*/0, machine->get());
  options.transformer = transformer;
  options.jitCodeGenOptLevel = llvm::CodeGenOpt::getLevel(optLevel);
  options.enableGDBNotificationListener = false;
  options.enablePerfNotificationListener = false;
  auto engine = ExecutionEngine::create(module, options, std::move(*machine));
  if (!engine)
    return engine.takeError();
  (*engine)->registerSymbols(symbols);
  (*engine)->initialize();
  return engine;
}
