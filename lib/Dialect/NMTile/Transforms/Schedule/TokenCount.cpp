//===- TokenCount.cpp - the number of tokens as an expression -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The function returns the tokens of its products instead of its results. What
// is left when the sizes of all operations are resolved is what they depend on.
//
//===----------------------------------------------------------------------===//

#include "TokenCount.h"

#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"

using namespace mlir;
using namespace mlir::nm_sparse;

static bool isDynamic(MatmulOp op) {
  return cast<ShapedType>(op.getX().getType()).isDynamicDim(op.getXTokenDim());
}

bool nm_sparse::hasDynamicTokens(func::FuncOp function) {
  return function
      .walk([](MatmulOp op) {
        return isDynamic(op) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Replaces the results of `function` by the tokens of its products. False when
/// one is not in its block.
static bool returnTokens(func::FuncOp function) {
  Operation *terminator = function.getBody().front().getTerminator();
  SmallVector<Value> counts;
  bool isFlat = true;
  function.walk([&](MatmulOp op) {
    if (!isDynamic(op))
      return;
    isFlat &= op->getBlock() == terminator->getBlock();
    OpBuilder b(op);
    counts.push_back(
        tensor::DimOp::create(b, op.getLoc(), op.getX(), op.getXTokenDim()));
  });
  if (!isFlat)
    return false;
  terminator->setOperands(counts);
  auto type =
      FunctionType::get(function.getContext(), function.getArgumentTypes(),
                        ValueRange(counts).getTypes());
  function.setType(type);
  function.setResAttrsAttr({});
  return true;
}

/// Computes the sizes of results from those of operands, and drops all that
/// nothing needs.
static void resolveSizes(func::FuncOp function) {
  MLIRContext *context = function.getContext();
  RewritePatternSet patterns(context);
  memref::populateResolveRankedShapedTypeResultDimsPatterns(patterns);
  memref::populateResolveShapedTypeResultDimsPatterns(patterns);
  tensor::DimOp::getCanonicalizationPatterns(patterns, context);
  (void)applyPatternsGreedily(function, std::move(patterns));
  IRRewriter rewriter(context);
  DominanceInfo dominance(function);
  eliminateCommonSubExpressions(rewriter, dominance, function);
}

/// True when `op` computes with numbers, or asks for an argument's size.
static bool isArithmetic(Operation &op) {
  if (auto dim = dyn_cast<tensor::DimOp>(op))
    return isa<BlockArgument>(dim.getSource());
  return op.getNumRegions() == 0 && isMemoryEffectFree(&op) &&
         llvm::none_of(op.getResultTypes(), llvm::IsaPred<ShapedType>);
}

func::FuncOp nm_sparse::createTokenCount(func::FuncOp function) {
  OpBuilder b(function);
  auto count = cast<func::FuncOp>(b.clone(*function));
  auto decline = [&](const Twine &why) {
    emitRemark(function.getLoc(), "is not specialized for numbers of tokens: ")
        << why;
    count.erase();
    return func::FuncOp();
  };
  if (!count.getBody().hasOneBlock() || !returnTokens(count))
    return decline("a product is in a loop or a branch");
  resolveSizes(count);
  Block &body = count.getBody().front();
  if (!llvm::all_equal(body.getTerminator()->getOperands()))
    return decline("its products have different ones");
  if (!llvm::all_of(body.without_terminator(), isArithmetic))
    return decline("it does not follow from the sizes of the arguments alone");
  return count;
}
