//===- Stages.cpp - linalg to threads -------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/Passes.h"
#include "nm_sparse/Conversion/Passes.h"
#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h"
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h"
#include "nm_sparse/GPU/Passes.h"
#include "nm_sparse/Pipelines/Pipelines.h"

using namespace mlir;
using namespace mlir::nm_sparse;

static void buildFront(OpPassManager &pm, bool isOracle, bool keepsBatches) {
  ConvertLinalgToNMSparsePassOptions convert;
  convert.unpackWithoutKernel = isOracle;
  convert.keepsBatches = keepsBatches;
  pm.addPass(createNMSparseSplitNarrowPanelsPass());
  pm.addPass(createNMSparseExpandMathPass());
  pm.addPass(createConvertLinalgToNMSparsePass(convert));
  // The reference has each weight as the program gives it.
  if (!isOracle) {
    pm.addNestedPass<func::FuncOp>(createNMSparseSinkTransposesPass());
    pm.addNestedPass<func::FuncOp>(createNMSparseFlattenTransposesPass());
    pm.addNestedPass<func::FuncOp>(createNMSparseSinkPermutationsPass());
    pm.addNestedPass<func::FuncOp>(createNMSparsePermuteWeightsPass());
  }
  pm.addPass(createNMSparseMaterializeEncodingsPass());
  pm.addPass(createNMSparseVerifyMaterializedPass());
}

void nm_sparse::buildFrontPipeline(OpPassManager &pm,
                                   const GPUPipelineOptions &options) {
  pm.addPass(createNMSparseFoldFunctionsPass());
  buildFront(pm, /*isOracle=*/false, options.specializeConstants);
  NMSparseSelectEmbeddingPassOptions embed;
  embed.mode = options.embed;
  embed.checked = options.embedChecked;
  embed.storage = options.storage;
  embed.chip = options.chip;
  embed.gpu = options.gpu;
  embed.tokens = llvm::to_vector(options.tokens);
  pm.addPass(createNMSparseSelectEmbeddingPass(embed));
  pm.addPass(createNMSparseEmbedWeightsPass());
  if (options.specializeConstants) {
    NMSparseSpecializeConstantsPassOptions specialize;
    specialize.maxCodeBytes = options.maxCodeBytes;
    specialize.chip = options.chip;
    specialize.gpu = options.gpu;
    specialize.tokens = getExpectedTokens(options);
    pm.addPass(createNMSparseSpecializeConstantsPass(specialize));
    pm.addNestedPass<func::FuncOp>(createNMSparseMoveBatchesPass());
  }
  NMSparseSelectStoragePassOptions select;
  select.storage = options.storage;
  select.chip = options.chip;
  select.density = options.density;
  select.layout = options.layout;
  if (!options.tokens.empty())
    select.tokens = *llvm::max_element(options.tokens);
  pm.addPass(createNMSparseSelectStoragePass(select));
}

void nm_sparse::buildOracleFrontPipeline(OpPassManager &pm) {
  buildFront(pm, /*isOracle=*/true, /*keepsBatches=*/false);
}

int64_t nm_sparse::getExpectedTokens(const GPUPipelineOptions &options) {
  return options.tokens.size() == 1 ? options.tokens.front() : 2048;
}

void nm_sparse::buildSpecializePipeline(OpPassManager &pm,
                                        const GPUPipelineOptions &options) {
  if (options.tokens.size() == 1)
    return;
  NMSparseSpecializeTokensPassOptions specialize;
  specialize.chip = options.chip;
  specialize.gpu = options.gpu;
  specialize.tokens = llvm::to_vector(options.tokens);
  specialize.files = llvm::to_vector(options.tuned);
  specialize.maxKernels = options.maxKernels;
  specialize.layout = options.layout;
  specialize.objective = options.objective;
  pm.addPass(createNMSparseSpecializeTokensPass(specialize));
}

void nm_sparse::buildLayoutPipeline(OpPassManager &pm,
                                    const GPUPipelineOptions &options) {
  NMSparsePropagateLayoutPassOptions propagate;
  propagate.chip = options.chip;
  propagate.gpu = options.gpu;
  propagate.tokens = getExpectedTokens(options);
  propagate.layout = options.layout;
  propagate.objective = options.objective;
  pm.addNestedPass<func::FuncOp>(createNMSparseSinkReshapesPass());
  pm.addNestedPass<func::FuncOp>(createNMSparsePropagateLayoutPass(propagate));
  pm.addNestedPass<func::FuncOp>(createNMSparseKeepPixelsPass());
  NMSparseReadPixelsPassOptions read;
  read.chip = propagate.chip;
  read.gpu = propagate.gpu;
  read.tokens = propagate.tokens;
  read.layout = propagate.layout;
  read.objective = propagate.objective;
  pm.addNestedPass<func::FuncOp>(createNMSparseReadPixelsPass(read));
  NMSparseAlignOperandsPassOptions align;
  align.chip = options.chip;
  align.gpu = options.gpu;
  align.tokens = getExpectedTokens(options);
  align.objective = options.objective;
  pm.addNestedPass<func::FuncOp>(createNMSparseAlignOperandsPass(align));
}

void nm_sparse::buildSchedulePipeline(OpPassManager &pm,
                                      const GPUPipelineOptions &options) {
  NMSparseApplyTunedPassOptions tuned;
  tuned.files = llvm::to_vector(options.tuned);
  tuned.chip = options.chip;
  tuned.gpu = options.gpu;
  tuned.objective = options.objective;
  tuned.tokens = getExpectedTokens(options);
  pm.addPass(createNMSparseApplyTunedPass(tuned));
  NMSparseSelectSchedulePassOptions select;
  select.chip = options.chip;
  select.gpu = options.gpu;
  select.tokens = getExpectedTokens(options);
  select.objective = options.objective;
  select.mergeLaunches = options.launches == "merged";
  pm.addNestedPass<func::FuncOp>(createNMSparseSelectSchedulePass(select));
  pm.addNestedPass<func::FuncOp>(createNMSparseWeightsToCodePass());
  if (options.arguments == "device-maps")
    pm.addNestedPass<func::FuncOp>(createNMSparseCopyImagesPass());
}

void nm_sparse::buildTilePipeline(OpPassManager &pm,
                                  const GPUPipelineOptions &options) {
  pm.addNestedPass<func::FuncOp>(createNMSparseTilePass());
}

void nm_sparse::buildPromotePipeline(OpPassManager &pm,
                                     const GPUPipelineOptions &options) {
  pm.addNestedPass<func::FuncOp>(createNMSparsePromotePass());
}

void nm_sparse::buildVectorizePipeline(OpPassManager &pm,
                                       const GPUPipelineOptions &options) {
  pm.addNestedPass<func::FuncOp>(createNMSparseVectorizePass());
}

void nm_sparse::buildBufferizePipeline(OpPassManager &pm,
                                       const GPUPipelineOptions &options) {
  NMSparseFoldPermutationsPassOptions fold;
  fold.tokens = getExpectedTokens(options);
  pm.addNestedPass<func::FuncOp>(createNMSparseFoldPermutationsPass(fold));
  pm.addNestedPass<func::FuncOp>(createNMSparseFoldInterleavingPass());
  NMSparseAlignRowsPassOptions align;
  align.exactResults = options.exactResults;
  pm.addNestedPass<func::FuncOp>(createNMSparseAlignRowsPass(align));
  NMSparseLowerDevicePackPassOptions pack;
  bool isOnHost = options.pack == "auto" && options.hostMemory;
  pack.where = isOnHost ? "host" : options.pack.getValue();
  pm.addPass(createNMSparseLowerDevicePackPass(pack));
  pm.addNestedPass<func::FuncOp>(createNMSparseLowerPermutePass());
  pm.addNestedPass<func::FuncOp>(createNMSparseLowerPatchesPass());
  pm.addPass(createNMSparseLowerHostPackPass());
  pm.addPass(createNMSparseBufferizePass());
}

void nm_sparse::buildMapPipeline(OpPassManager &pm,
                                 const GPUPipelineOptions &options) {
  pm.addNestedPass<func::FuncOp>(createNMSparseMapToGPUPass());
  pm.addNestedPass<func::FuncOp>(createNMSparseLowerTransposePass());
  pm.addNestedPass<func::FuncOp>(createNMSparseLowerAlignRowsPass());
}

void nm_sparse::buildStagingPipeline(OpPassManager &pm,
                                     const GPUPipelineOptions &options) {
  pm.addNestedPass<func::FuncOp>(createNMSparseSplitKPass());
  pm.addNestedPass<func::FuncOp>(createNMSparseSplitInClusterPass());
  pm.addNestedPass<func::FuncOp>(createNMSparseCreateTensorMapsPass());
  pm.addNestedPass<func::FuncOp>(createNMSparseAssignStagesPass());
  pm.addNestedPass<func::FuncOp>(createNMSparseExpandStagesPass());
  NMSparseSpecializeWarpsPassOptions specialize;
  specialize.chip = options.chip;
  pm.addNestedPass<func::FuncOp>(createNMSparseSpecializeWarpsPass(specialize));
  NMSparsePersistPassOptions persist;
  persist.chip = options.chip;
  persist.gpu = options.gpu;
  pm.addNestedPass<func::FuncOp>(createNMSparsePersistPass(persist));
  pm.addNestedPass<func::FuncOp>(createNMSparseStreamKPass());
  pm.addNestedPass<func::FuncOp>(createNMSparseLowerRolesPass());
}

void nm_sparse::buildThreadsPipeline(OpPassManager &pm,
                                     const GPUPipelineOptions &options) {
  NMSparseApproximateMathPassOptions approximate;
  approximate.packed = options.packedMath;
  pm.addNestedPass<func::FuncOp>(
      createNMSparseApproximateMathPass(approximate));
  pm.addNestedPass<func::FuncOp>(createNMSparseLayOutAccumulatorsPass());
  pm.addNestedPass<func::FuncOp>(createConvertTileToThreadsPass());
  pm.addNestedPass<func::FuncOp>(createNMSparseLoadAheadPass());
  pm.addNestedPass<func::FuncOp>(createNMSparsePrepareAheadPass());
  pm.addNestedPass<func::FuncOp>(createNMSparseAllocateSharedMemoryPass());
  // A kernel has hundreds of blocks; LLVM simplifies them far faster. Without
  // what CSE finds there is less to fold, and once is enough.
  GreedyRewriteConfig config;
  config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
  config.setMaxIterations(1);
  pm.addNestedPass<func::FuncOp>(createCSEPass());
  pm.addNestedPass<func::FuncOp>(createCanonicalizerPass(config));
  pm.addNestedPass<func::FuncOp>(createCSEPass());
}

ArrayRef<Stage> nm_sparse::getStages() {
  static const Stage stages[] = {
      {"front", "packed weights and nm_sparse.matmul", buildFrontPipeline},
      {"specialize", "a copy of each function for each class of token counts",
       buildSpecializePipeline},
      {"layout", "feature-major, aligned activations", buildLayoutPipeline},
      {"schedule", "a schedule on every matmul", buildSchedulePipeline},
      {"tile", "CTA tiles and K steps", buildTilePipeline},
      {"promote", "operand tiles in shared memory", buildPromotePipeline},
      {"vectorize", "accumulators as vectors", buildVectorizePipeline},
      {"bufferize", "tensors become buffers", buildBufferizePipeline},
      {"map", "tiles become gpu.launch", buildMapPipeline},
      {"pipeline", "multi-buffered K loop", buildStagingPipeline},
      {"threads", "one thread's code", buildThreadsPipeline},
      {"nvvm", "outlined kernels in the NVVM dialect", buildNVVMExitPipeline},
  };
  return stages;
}

void nm_sparse::buildToNVVMPipeline(OpPassManager &pm,
                                    const GPUPipelineOptions &options) {
  for (const Stage &stage : getStages())
    stage.build(pm, options);
}
