//===- Bufferize.cpp - from tensors to buffers ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Pipelining/StagedLoop.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotAnalysis.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotModuleBufferize.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/Iterators.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/CSE.h"
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h"
#include "nm_sparse/Dialect/NMTile/Transforms/Transforms.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSEBUFFERIZEPASS
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

/// Names what bufferization does not know, which it reports without a name.
static LogicalResult
checkOps(ModuleOp module,
         const bufferization::OneShotBufferizationOptions &options) {
  WalkResult result = module.walk([&](Operation *op) -> WalkResult {
    if (!bufferization::hasTensorSemantics(op) ||
        isa<bufferization::ToTensorOp, bufferization::ToBufferOp>(op) ||
        options.dynCastBufferizableOp(op))
      return WalkResult::advance();
    return op->emitOpError("works on tensors and has no form on buffers; legal "
                           "beside products are ops of linalg on whole "
                           "tensors, slices, reshapes and casts; compute this "
                           "one in a function of its own");
  });
  return failure(result.wasInterrupted());
}

LogicalResult nm_sparse::bufferizeModule(ModuleOp module) {
  bufferization::OneShotBufferizationOptions options;
  options.bufferizeFunctionBoundaries = true;
  // Loops of the program carry buffers from product to product.
  options.allowReturnAllocsFromLoops = true;
  // A buffer that the program returns has the pitch that the program chose.
  options.setFunctionBoundaryTypeConversion(
      bufferization::LayoutMapOption::InferLayoutMap);
  StringRef layout = bufferization::BufferizationDialect::kBufferLayoutAttrName;
  SmallVector<std::pair<func::FuncOp, unsigned>> given;
  for (auto function : module.getOps<func::FuncOp>())
    for (auto [i, type] : llvm::enumerate(function.getArgumentTypes()))
      if (auto tensor = dyn_cast<RankedTensorType>(type);
          tensor && !function.getArgAttr(i, layout)) {
        auto identity = AffineMap::getMultiDimIdentityMap(tensor.getRank(),
                                                          module.getContext());
        function.setArgAttr(i, layout, AffineMapAttr::get(identity));
        given.emplace_back(function, i);
      }
  // A K loop that carries tensors, before promotion, is a loop like any other.
  IRRewriter rewriter(module.getContext());
  module.walk([&](KLoopOp loop) {
    if (llvm::any_of(loop.getInitArgs().getTypes(), llvm::IsaPred<TensorType>))
      lowerToFor(rewriter, loop);
  });
  if (failed(checkOps(module, options)))
    return failure();
  bufferization::BufferizationState state;
  LogicalResult result =
      bufferization::runOneShotModuleBufferize(module, options, state);
  for (auto [function, i] : given)
    function.removeArgAttr(i, layout);
  return result;
}

void nm_sparse::hoistWorkgroupAllocs(scf::ForallOp forall) {
  Block *body = forall.getBody();
  SmallVector<memref::AllocOp> allocs;
  body->walk([&](memref::AllocOp alloc) {
    if (isInSharedMemory(alloc.getType()) && alloc.getType().hasStaticShape())
      allocs.push_back(alloc);
  });
  for (memref::AllocOp alloc : llvm::reverse(allocs))
    alloc->moveBefore(body, body->begin());
}

/// Erases dead code and the copies of a result tile onto itself, which stand
/// for the tensor.parallel_insert_slice of a tile that was computed in place.
/// Only CSE shows that the two are one.
static void cleanUp(ModuleOp module) {
  IRRewriter rewriter(module.getContext());
  module->walk<WalkOrder::PostOrder, ReverseIterator>([&](Operation *op) {
    if (isOpTriviallyDead(op))
      rewriter.eraseOp(op);
  });
  DominanceInfo dominance(module);
  eliminateCommonSubExpressions(rewriter, dominance, module);
  module.walk([&](memref::CopyOp copy) {
    if (copy.getSource() == copy.getTarget())
      rewriter.eraseOp(copy);
  });
}

namespace {
struct Bufferize
    : public nm_sparse::impl::NMSparseBufferizePassBase<Bufferize> {
  void runOnOperation() override {
    if (failed(bufferizeModule(getOperation())))
      return signalPassFailure();
    cleanUp(getOperation());
    getOperation().walk(hoistWorkgroupAllocs);
  }
};
} // namespace
