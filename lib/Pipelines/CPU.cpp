//===- CPU.cpp - the oracle and the reference on the CPU ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Bufferization/Pipelines/Passes.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "nm_sparse/Conversion/Passes.h"
#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h"
#include "nm_sparse/Pipelines/Pipelines.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// Tensors to buffers at every function boundary, and these to the LLVM
<<<<<<< HEAD
/// dialect. The reference's products become calls of the runtime.
static void buildDenseExit(OpPassManager &pm, bool isReference) {
  pm.addPass(createNMSparseLowerHostPackPass());
=======
/// dialect.
void nm_sparse::buildDenseExitPipeline(OpPassManager &pm) {
>>>>>>> 4b068d9 (wip nm-run)
  bufferization::OneShotBufferizePassOptions bufferize;
  bufferize.bufferizeFunctionBoundaries = true;
  bufferize.functionBoundaryTypeConversion =
      bufferization::LayoutMapOption::IdentityLayoutMap;
  pm.addPass(bufferization::createOneShotBufferizePass(bufferize));
  if (isReference)
    pm.addPass(createNMSparseReferenceCallsPass());
  bufferization::buildBufferDeallocationPipeline(pm);
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addNestedPass<func::FuncOp>(createConvertLinalgToLoopsPass());
  pm.addPass(createConvertBufferizationToMemRefPass());
  pm.addPass(memref::createExpandStridedMetadataPass());
  pm.addPass(createLowerAffinePass());
  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(createConvertMathToLLVMPass());
  pm.addPass(createConvertMathToLibmPass());
  pm.addPass(createConvertVectorToLLVMPass());
  pm.addPass(createConvertFuncToLLVMPass());
  pm.addPass(createArithToLLVMConversionPass());
  pm.addPass(createConvertIndexToLLVMPass());
  pm.addPass(createFinalizeMemRefToLLVMConversionPass());
  pm.addPass(createConvertControlFlowToLLVMPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
}

void nm_sparse::buildToCPUPipeline(OpPassManager &pm) {
  buildFrontPipeline(pm, GPUPipelineOptions());
<<<<<<< HEAD
  pm.addPass(createConvertNMSparseToLinalgPass());
  buildDenseExit(pm, /*isReference=*/false);
=======
  buildDenseExitPipeline(pm);
>>>>>>> 4b068d9 (wip nm-run)
}

void nm_sparse::buildReferencePipeline(OpPassManager &pm) {}

void nm_sparse::buildToReferencePipeline(OpPassManager &pm) {
<<<<<<< HEAD
  pm.addPass(createNMSparseToReferencePass());
  buildDenseExit(pm, /*isReference=*/true);
=======
  buildReferencePipeline(pm);
  buildDenseExitPipeline(pm);
>>>>>>> 4b068d9 (wip nm-run)
}
