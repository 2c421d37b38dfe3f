//===- Registration.cpp - names of the pipelines --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "nm_sparse/Pipelines/Pipelines.h"

using namespace mlir;
using namespace mlir::nm_sparse;

void nm_sparse::registerPipelines() {
  // A registration keeps its name as a reference, so names must outlive it.
  static const SmallVector<std::string> stageNames = [] {
    SmallVector<std::string> names;
    for (const Stage &stage : getStages())
      names.push_back(("nm-sparse-stage-" + stage.name).str());
    return names;
  }();
  for (auto [stage, name] : llvm::zip(getStages(), stageNames))
    PassPipelineRegistration<GPUPipelineOptions>(name, stage.summary,
                                                 stage.build);

  PassPipelineRegistration<GPUPipelineOptions>(
      "nm-sparse-to-nvvm",
      "linalg with encoded weights to host code and NVVM kernels",
      buildToNVVMPipeline);
  PassPipelineRegistration<GPUPipelineOptions>(
      "nm-sparse-host-exit", "host code and NVVM kernels to LLVM and binaries",
      buildHostExitPipeline);
  PassPipelineRegistration<GPUPipelineOptions>(
      "nm-sparse-to-host-llvm",
      "linalg with encoded weights to LLVM host code with embedded kernels",
      buildToHostLLVMPipeline);
  PassPipelineRegistration<>(
      "nm-sparse-to-cpu",
      "linalg with encoded weights to LLVM for the CPU, through dense products",
      buildToCPUPipeline);
  PassPipelineRegistration<>(
      "nm-sparse-to-reference-llvm",
      "linalg with encoded weights to a float64 reference in LLVM",
      buildToReferencePipeline);
}
