//===- HostCompiler.cpp - machine code of the host ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For host code and emulated kernels alike.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Emulator/HostCompiler.h"

#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;

/// As makeOptimizingTransformer, but leaves scalars of straight code alone:
/// what a thread of a kernel does is thousands of them, and the time in which
/// LLVM looks for vectors among these grows with their square.
static void optimize(llvm::Module &module, unsigned optLevel,
                     llvm::TargetMachine *machine) {
  llvm::PipelineTuningOptions tuning;
  tuning.SLPVectorization = false;
  llvm::PassBuilder builder(machine, tuning);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  const llvm::OptimizationLevel levels[] = {
      llvm::OptimizationLevel::O0, llvm::OptimizationLevel::O1,
      llvm::OptimizationLevel::O2, llvm::OptimizationLevel::O3};
  llvm::OptimizationLevel level = levels[std::min(optLevel, 3u)];
  (optLevel == 0 ? builder.buildO0DefaultPipeline(level)
                 : builder.buildPerModuleDefaultPipeline(level))
      .run(module, modules);
}

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
  auto transformer = [optLevel, target = machine->get()](llvm::Module *llvm) {
    optimize(*llvm, optLevel, target);
    return llvm::Error::success();
  };
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
