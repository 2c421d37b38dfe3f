//===- RunLLVM.cpp - one kernel through LLVM ------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Upstream runs all of O3, most of which is for code with calls and with memory
// of its own. Here are the passes that kernels gain by, found by leaving out
// one after the other while what ptxas makes of them stayed as it was.
// docs/decisions/034-shorter-compilation.md has the figures.
//
//===----------------------------------------------------------------------===//

#include "WidenDivisions.h"
#include "nm_sparse/GPU/Codegen.h"

#include "mlir/Target/LLVM/NVVM/Utils.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// SCCP comes before the first InstCombine, which makes `or` and unsigned casts
/// of the ranges that it finds for coordinates. Addresses are taken apart last:
/// what they have in common then is computed once, before straight-line
/// strength reduction in code generation, whose time grows with pairs of
/// addresses.
static constexpr llvm::StringLiteral kPasses =
    "function("
    "nvvm-intr-range,simplifycfg,sccp,"
    "instcombine<no-verify-fixpoint>,early-cse<memssa>,"
    "speculative-execution<only-if-divergent-target>,"
    "correlated-propagation,simplifycfg<switch-range-to-icmp>,reassociate,"
    "loop-mssa(loop-instsimplify,loop-simplifycfg,"
    "licm<no-allowspeculation>,loop-rotate<header-duplication>,"
    "licm<allowspeculation>),simplifycfg<switch-range-to-icmp>,"
    "instcombine<no-verify-fixpoint>,"
    "loop(indvars,loop-deletion,loop-unroll-full),gvn,"
    "loop-mssa(licm<allowspeculation>),simplifycfg<switch-range-to-icmp;"
    "switch-to-arithmetic;hoist-common-insts;sink-common-insts>,"
    "loop(loop-rotate<header-duplication>,loop-deletion),infer-alignment,"
    "simplifycfg<forward-switch-cond;switch-range-to-icmp;"
    "switch-to-arithmetic;switch-to-lookup;no-keep-loops;"
    "hoist-common-insts;sink-common-insts>,slp-vectorizer,vector-combine,"
    "instcombine<no-verify-fixpoint>,loop-unroll<O3>,infer-alignment,"
    "loop-mssa(licm<allowspeculation>),loop-sink,instsimplify,"
    "div-rem-pairs,simplifycfg<switch-range-to-icmp;switch-to-arithmetic;"
    "hoist-loads-stores-with-cond-faulting;speculate-unpredictables>,"
    "separate-const-offset-from-gep,early-cse)";

/// The threads of a warp execute an instruction with `.sync` together: no pass
/// may copy it into branches on which they part.
static void markConvergent(llvm::Module &module) {
  for (llvm::Function &function : module)
    for (llvm::Instruction &instruction : llvm::instructions(function)) {
      auto *call = dyn_cast<llvm::CallBase>(&instruction);
      auto *code =
          call ? dyn_cast<llvm::InlineAsm>(call->getCalledOperand()) : nullptr;
      if (code && StringRef(code->getAsmString()).contains(".sync"))
        call->setConvergent();
    }
}

namespace {

class Serializer : public NVVM::SerializeGPUModuleBase {
public:
  using SerializeGPUModuleBase::SerializeGPUModuleBase;

protected:
  LogicalResult optimizeModule(llvm::Module &module, int level) override {
    markConvergent(module);
    if (level < 3)
      return SerializeGPUModuleBase::optimizeModule(module, level);
    FailureOr<llvm::TargetMachine *> machine = getOrCreateTargetMachine();
    if (failed(machine))
      return getOperation().emitError("LLVM has no target for ")
             << module.getTargetTriple().str();
    // Above this level code generation runs GVN twice, without finding more.
    (*machine)->setOptLevel(llvm::CodeGenOptLevel::Default);
    llvm::LoopAnalysisManager loops;
    llvm::FunctionAnalysisManager functions;
    llvm::CGSCCAnalysisManager components;
    llvm::ModuleAnalysisManager modules;
    llvm::PassBuilder builder(*machine);
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(components);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, components, modules);
    llvm::ModulePassManager passes;
    if (llvm::Error error = builder.parsePassPipeline(passes, kPasses))
      return getOperation().emitError(llvm::toString(std::move(error)));
    passes.addPass(
        llvm::createModuleToFunctionPassAdaptor(WidenDivisionsPass()));
    passes.run(module, modules);
    return success();
  }

  FailureOr<SmallVector<char, 0>>
  moduleToObject(llvm::Module &module) override {
    FailureOr<llvm::TargetMachine *> machine = getOrCreateTargetMachine();
    if (failed(machine))
      return failure();
    FailureOr<SmallString<0>> text = translateModuleToISA(
        module, **machine, [&] { return getOperation().emitError(); });
    if (failed(text))
      return failure();
    return SmallVector<char, 0>(text->begin(), text->end());
  }
};

} // namespace

FailureOr<std::string> nm_sparse::runLLVM(gpu::GPUModuleOp kernels,
                                          NVVM::NVVMTargetAttr target) {
  Serializer::init();
  std::optional<SmallVector<char, 0>> text = Serializer(*kernels, target).run();
  if (!text)
    return kernels.emitError("gpu.module @")
           << kernels.getName() << " could not be translated to PTX";
  return std::string(text->begin(), text->end());
}
