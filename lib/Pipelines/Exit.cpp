//===- Exit.cpp - kernels to NVVM, host code to LLVM ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Upstream passes in an order of ours. The upstream gpu-lower-to-nvvm-pipeline
// leaves casts around two-dimensional vectors and calls into libdevice. Here
// convert-gpu-to-nvvm lowers all that touches memory, since it alone knows the
// GPU's memory spaces, with math functions replaced before it and the remaining
// vector operations lowered after it.
//
//===----------------------------------------------------------------------===//

#include "HostCode.h"

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Conversion/GPUCommon/GPUCommonPass.h"
#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/NVGPUToNVVM/NVGPUToNVVM.h"
#include "mlir/Conversion/NVVMToLLVM/NVVMToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h"
#include "mlir/Conversion/VectorToSCF/VectorToSCF.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/GPU/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/Passes.h"
#include "nm_sparse/Chip/Chip.h"
#include "nm_sparse/Conversion/Passes.h"
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h"
#include "nm_sparse/GPU/Passes.h"
#include "nm_sparse/Pipelines/Pipelines.h"

using namespace mlir;
using namespace mlir::nm_sparse;

ArrayRef<StringRef> nm_sparse::getSupportedChips() {
  static const SmallVector<StringRef> names = [] {
    SmallVector<StringRef> names;
    for (const Chip &chip : getChips())
      names.push_back(chip.name);
    return names;
  }();
  return names;
}

StringRef nm_sparse::getDefaultFeatures(StringRef name) {
  const Chip *chip = findChip(name);
  return chip ? chip->features : StringRef();
}

/// Leaves the control flow to LLVM, which simplifies it far faster, and what
/// one pass over the operations does not fold.
static std::unique_ptr<Pass> createKernelCanonicalizer() {
  GreedyRewriteConfig config;
  config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
  config.setMaxIterations(1);
  return createCanonicalizerPass(config);
}

void nm_sparse::buildNVVMExitPipeline(OpPassManager &pm,
                                      const GPUPipelineOptions &options) {
  pm.addPass(createGpuLaunchSinkIndexComputationsPass());
  pm.addPass(createGpuKernelOutliningPass());
  NMSparseSetOccupancyPassOptions occupancy;
  occupancy.chip = options.chip;
  pm.addPass(createNMSparseSetOccupancyPass(occupancy));
  NMSparseInsertPrefetchesPassOptions prefetches;
  prefetches.chip = options.chip;
  prefetches.gpu = options.gpu;
  prefetches.tokens = getExpectedTokens(options);
  pm.addPass(createNMSparseInsertPrefetchesPass(prefetches));
  pm.addPass(createNMSparseMergeKernelsPass());
  if (options.launches == "merged") {
    NMSparseMergeLaunchesPassOptions merge;
    merge.chip = options.chip;
    merge.gpu = options.gpu;
    pm.addPass(createNMSparseMergeLaunchesPass(merge));
  }
  NMSparseInsertDeviceCopiesPassOptions copies;
  copies.hostMemory = options.hostMemory;
  pm.addPass(createNMSparseInsertDeviceCopiesPass(copies));
  pm.addNestedPass<func::FuncOp>(createCanonicalizerPass());
  pm.addNestedPass<func::FuncOp>(createGpuAsyncRegionPass());

  // Kernels are lowered in parallel.
  pm.addPass(createNMSparseSplitModulesPass());
  OpPassManager &kernels = pm.nest<gpu::GPUModuleOp>();
  NMSparseOverlapLaunchesPassOptions overlap;
  overlap.chip = options.chip;
  kernels.addPass(createNMSparseOverlapLaunchesPass(overlap));
  kernels.addPass(createNMSparseAnnotateAccessesPass());
  kernels.addPass(createNMSparseLowerPrefetchesPass());
  kernels.addPass(createNMSparseLowerMathPass());
  buildFloat8Lowering(kernels);
  kernels.addPass(createNMSparseLowerBF16MmaPass());
  kernels.addPass(createConvertNVGPUToNVVMPass());
  kernels.addPass(createConvertVectorToSCFPass());
  kernels.addPass(memref::createExpandStridedMetadataPass());
  kernels.addPass(createLowerAffinePass());
  kernels.addPass(createKernelCanonicalizer());
  kernels.addPass(createCSEPass());
  kernels.addPass(createSCFToControlFlowPass());
  ConvertGpuOpsToNVVMOpsOptions nvvmOptions;
  nvvmOptions.indexBitwidth = 64;
  kernels.addPass(createConvertGpuOpsToNVVMOps(nvvmOptions));
  kernels.addPass(createConvertVectorToLLVMPass());
  // This lowers the poison values from which vectors are built if one of two
  // dimensions is reshaped.
  kernels.addPass(createUBToLLVMConversionPass());
  kernels.addPass(createNMSparseExternSharedMemoryPass());
  kernels.addPass(createCSEPass());
  kernels.addPass(createReconcileUnrealizedCastsPass());
  kernels.addPass(createNMSparseVerifyKernelsPass());

  pm.addPass(createNMSparseJoinModulesPass());
  pm.addPass(createNMSparseRestoreFunctionsPass());
  GpuNVVMAttachTargetOptions target;
  target.chip = options.chip;
  target.features = options.features.empty()
                        ? getDefaultFeatures(options.chip).str()
                        : options.features.getValue();
  target.optLevel = options.optLevel;
  pm.addPass(createGpuNVVMAttachTarget(target));
  if (options.arguments == "device-maps")
    pm.addPass(createNMSparseCreateDeviceMapsPass());
  if (options.arguments != "fields")
    pm.addPass(createNMSparseBindArgumentsPass());
  pm.addNestedPass<gpu::GPUModuleOp>(createNMSparseRaisePTXVersionPass());
  pm.addNestedPass<gpu::GPUModuleOp>(createNMSparseOrderMetadataPass());
}

static void buildBinary(OpPassManager &pm, const GPUPipelineOptions &options) {
  if (options.format == "mlir")
    return pm.addPass(createNMSparseEmbedKernelsPass());
  if (options.format == "isa")
    return pm.addPass(createNMSparseCompileKernelsPass());
  // Operations without an LLVM intrinsic become inline PTX.
  pm.addNestedPass<gpu::GPUModuleOp>(createConvertNVVMToLLVMPass());
  GpuModuleToBinaryPassOptions binary;
  binary.compilationTarget = options.format;
  pm.addPass(createGpuModuleToBinaryPass(binary));
}

void nm_sparse::buildHostExitPipeline(OpPassManager &pm,
                                      const GPUPipelineOptions &options) {
  pm.addPass(createNMSparseRefuseMapsByValuePass());
  if (options.checkIndex)
    pm.addPass(createNMSparseCheckIndexPass());
  // First, so that no conversion of host code reaches into the kernels.
  buildBinary(pm, options);
  // Tensor maps are encoded by calls of the runtime.
  pm.addPass(createNMSparseLowerTensorMapsPass());
  pm.addPass(createConvertNVGPUToNVVMPass());
  buildHostLoops(pm);
  buildHostMath(pm);
  pm.addPass(createGpuToLLVMConversionPass());
  buildHostLLVM(pm);
}

void nm_sparse::buildToHostLLVMPipeline(OpPassManager &pm,
                                        const GPUPipelineOptions &options) {
  buildToNVVMPipeline(pm, options);
  buildHostExitPipeline(pm, options);
}
