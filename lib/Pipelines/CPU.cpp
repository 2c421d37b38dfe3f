//===- CPU.cpp - the oracle and the reference on the CPU ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HostCode.h"

#include "mlir/Conversion/BufferizationToMemRef/BufferizationToMemRef.h"
#include "mlir/Dialect/Bufferization/Pipelines/Passes.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "nm_sparse/Conversion/Passes.h"
#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h"
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h"
#include "nm_sparse/GPU/Passes.h"
#include "nm_sparse/Pipelines/Pipelines.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// Tensors to buffers at every function boundary, and these to the LLVM
/// dialect. The reference's products become calls of the runtime.
static void buildDenseExit(OpPassManager &pm, bool isReference) {
  pm.addPass(createNMSparseLowerHostPackPass());
  bufferization::OneShotBufferizePassOptions bufferize;
  bufferize.bufferizeFunctionBoundaries = true;
  bufferize.allowReturnAllocsFromLoops = true;
  bufferize.functionBoundaryTypeConversion =
      bufferization::LayoutMapOption::IdentityLayoutMap;
  pm.addPass(bufferization::createOneShotBufferizePass(bufferize));
  if (isReference)
    pm.addPass(createNMSparseReferenceCallsPass());
  bufferization::buildBufferDeallocationPipeline(pm);
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createConvertBufferizationToMemRefPass());
  buildHostLoops(pm);
  buildHostMath(pm);
  buildHostLLVM(pm);
}

void nm_sparse::buildToCPUPipeline(OpPassManager &pm) {
  buildOracleFrontPipeline(pm);
  pm.addPass(createConvertNMSparseToLinalgPass());
  buildDenseExit(pm, /*isReference=*/false);
}

void nm_sparse::buildReferencePipeline(OpPassManager &pm) {
  pm.addPass(createConvertSparseTensorToNMSparsePass());
  pm.addPass(createNMSparseToReferencePass());
}

void nm_sparse::buildReferenceExitPipeline(OpPassManager &pm) {
  // Products are dense by now; this is for orders that a program permutes.
  pm.addPass(createConvertNMSparseToLinalgPass());
  buildDenseExit(pm, /*isReference=*/true);
}

void nm_sparse::buildToReferencePipeline(OpPassManager &pm) {
  buildReferencePipeline(pm);
  buildReferenceExitPipeline(pm);
}
