//===- OutlinePrograms.cpp - sparse programs of a host's model ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The pass --nm-sparse-outline-programs. The programs lie in a module of their
// own, since two compilers compile the two parts: ours must not see the model,
// and the host compiler must see no more than the declarations.
//
//===----------------------------------------------------------------------===//

#include "Programs.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "nm_sparse/Hosts/Passes.h"
#include "nm_sparse/Hosts/Transforms.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSEOUTLINEPROGRAMSPASS
#include "nm_sparse/Hosts/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

//===----------------------------------------------------------------------===//
// Clean up
//===----------------------------------------------------------------------===//

/// Expresses sizes of results by sizes of what they were computed from, and
/// erases what nothing needs any more. A size that were read from the result of
/// a product would be a path out of its group.
static LogicalResult simplifySizes(ModuleOp module) {
  MLIRContext *context = module.getContext();
  RewritePatternSet patterns(context);
  memref::populateResolveRankedShapedTypeResultDimsPatterns(patterns);
  tensor::DimOp::getCanonicalizationPatterns(patterns, context);
  tensor::EmptyOp::getCanonicalizationPatterns(patterns, context);
  tensor::ExpandShapeOp::getCanonicalizationPatterns(patterns, context);
  tensor::CollapseShapeOp::getCanonicalizationPatterns(patterns, context);
  affine::AffineApplyOp::getCanonicalizationPatterns(patterns, context);
  return applyPatternsGreedily(module, std::move(patterns));
}

/// Adds initial sums of products without tokens behind them, in the model.
static void splitInitialSums(func::FuncOp function) {
  IRRewriter rewriter(function.getContext());
  function.walk([&](linalg::LinalgOp op) {
    if (!isEncodedProduct(op) || hasTokens(op) ||
        getFillValue(op.getDpsInits()[0]))
      return;
    Location loc = op.getLoc();
    Value init = op.getDpsInits()[0], result = op->getResult(0);
    Type type = cast<ShapedType>(init.getType()).getElementType();
    rewriter.setInsertionPoint(op);
    Value empty = tensor::EmptyOp::create(
        rewriter, loc, tensor::getMixedSizes(rewriter, loc, init), type);
    Value zero =
        arith::ConstantOp::create(rewriter, loc, rewriter.getZeroAttr(type));
    op.setDpsInitOperand(
        0, linalg::FillOp::create(rewriter, loc, zero, empty).getResult(0));
    rewriter.setInsertionPointAfter(op);
    Value sum = createSum(rewriter, loc, result, init, empty);
    rewriter.replaceAllUsesExcept(result, sum, sum.getDefiningOp());
  });
}

/// Returns true if another version of MLIR may not know `op` by its name. Those
/// of contractions, convolutions and data movement are the same in all.
static bool hasUnstableName(linalg::LinalgOp op) {
  return op.hasPureTensorSemantics() &&
         op.getNumLoops() == op.getNumParallelLoops() &&
         !isa<linalg::GenericOp, linalg::FillOp, linalg::CopyOp,
              linalg::TransposeOp, linalg::BroadcastOp, linalg::MapOp>(
             op.getOperation());
}

/// Returns true if `attr` says something to our compiler alone.
static bool isOurs(NamedAttribute attr) {
  return attr.getNameDialect() ==
         attr.getName().getContext()->getLoadedDialect<NMSparseDialect>();
}

/// Makes the rest of the model what any host compiler reads: generic operations
/// without attributes of ours.
static LogicalResult generalize(ModuleOp module) {
  IRRewriter rewriter(module.getContext());
  for (auto function : module.getOps<func::FuncOp>()) {
    SmallVector<linalg::LinalgOp> named;
    function.walk([&](Operation *op) {
      for (NamedAttribute attr : llvm::to_vector(op->getDiscardableAttrs()))
        if (isOurs(attr))
          op->removeDiscardableAttr(attr.getName());
      if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
        if (hasUnstableName(linalgOp))
          named.push_back(linalgOp);
    });
    for (linalg::LinalgOp op : named) {
      rewriter.setInsertionPoint(op);
      if (failed(linalg::generalizeNamedOp(rewriter, op)))
        return op->emitOpError("cannot be written as a linalg.generic");
    }
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

/// A function of `programs` that computes what `function` does, or null.
static func::FuncOp findEqual(ModuleOp programs, func::FuncOp function) {
  for (auto other : programs.getOps<func::FuncOp>())
    if (other != function &&
        other.getFunctionType() == function.getFunctionType() &&
        other->getDiscardableAttrDictionary() ==
            function->getDiscardableAttrDictionary() &&
        OperationEquivalence::isRegionEquivalentTo(
            &other.getBody(), &function.getBody(),
            OperationEquivalence::IgnoreLocations))
      return other;
  return {};
}

/// The size of dimension `dim` of `value`, by tensors that are there before
/// `group`.
static Value getSizeBefore(OpBuilder &builder, const Group &group, Value value,
                           int64_t dim) {
  Location loc = value.getLoc();
  auto type = cast<RankedTensorType>(value.getType());
  if (!type.isDynamicDim(dim))
    return arith::ConstantIndexOp::create(builder, loc, type.getDimSize(dim));
  Operation *op = value.getDefiningOp();
  if (llvm::is_contained(group, op))
    return getSizeBefore(builder, group,
                         cast<linalg::LinalgOp>(op).getDpsInits()[0], dim);
  if (!llvm::is_contained(group, skipViews(value).getDefiningOp()))
    return tensor::DimOp::create(builder, loc, value, dim);
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op))
    return cast<Value>(expand.getMixedOutputShape()[dim]);
  auto collapse = dyn_cast<tensor::CollapseShapeOp>(op);
  if (!collapse)
    return getSizeBefore(builder, group, getViewSource(value), dim);
  Value product;
  for (int64_t part : collapse.getReassociationIndices()[dim]) {
    Value size = getSizeBefore(builder, group, collapse.getSrc(), part);
    product =
        product ? arith::MulIOp::create(builder, loc, product, size).getResult()
                : size;
  }
  return product;
}

/// An uninitialized tensor for `result` of `group`, made at the insertion
/// point.
static Value createDestination(OpBuilder &builder, const Group &group,
                               Value result) {
  auto type = cast<RankedTensorType>(result.getType());
  SmallVector<Value> sizes;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (type.isDynamicDim(dim))
      sizes.push_back(getSizeBefore(builder, group, result, dim));
  return tensor::EmptyOp::create(builder, result.getLoc(), type, sizes);
}

/// Erases `op` and the views of its results that are left.
static void eraseWithViews(RewriterBase &rewriter, Operation *op) {
  for (Operation *user : llvm::make_early_inc_range(op->getUsers()))
    eraseWithViews(rewriter, user);
  rewriter.eraseOp(op);
}

namespace {

/// Moves the groups of a module into programs, one after the other.
class Outliner {
public:
  Outliner(ModuleOp module, ModuleOp programs)
      : rewriter(module.getContext()), programs(programs), symbols(module),
        last(programs) {}

  void outline(func::FuncOp function);

private:
  void outline(const Group &group, func::FuncOp function, unsigned number);
  /// Declares `program` in the model.
  func::FuncOp declare(func::FuncOp program);

  IRRewriter rewriter;
  ModuleOp programs;
  SymbolTable symbols;
  Operation *last; // the programs, or the last declaration
  llvm::DenseMap<Operation *, func::FuncOp> declarations; // of each program
  Destinations destinations;
};

} // namespace

func::FuncOp Outliner::declare(func::FuncOp program) {
  func::FuncOp &declaration = declarations[program];
  if (declaration)
    return declaration;
  std::string name =
      (programs.getSymName().value() + "." + program.getSymName()).str();
  declaration =
      func::FuncOp::create(program.getLoc(), name, program.getFunctionType());
  declaration.setPrivate();
  symbols.insert(declaration, std::next(Block::iterator(last)));
  last = declaration;
  return declaration;
}

void Outliner::outline(const Group &group, func::FuncOp function,
                       unsigned number) {
  rewriter.setInsertionPointToEnd(programs.getBody());
  std::string name = (function.getSymName() + "_" + Twine(number)).str();
  Program program = buildProgram(rewriter, group, name, destinations);
  for (NamedAttribute attr : function->getDiscardableAttrs())
    if (isOurs(attr))
      program.function->setAttr(attr.getName(), attr.getValue());
  if (func::FuncOp other = findEqual(programs, program.function)) {
    rewriter.eraseOp(program.function);
    program.function = other;
  }
  // All inputs come before the first operation, and views that the model reads,
  // too, may lie between two.
  rewriter.setInsertionPoint(group.front());
  SmallVector<Value> operands = program.inputs;
  for (Value result : program.results)
    operands.push_back(createDestination(rewriter, group, result));
  auto call = func::CallOp::create(rewriter, group.front()->getLoc(),
                                   declare(program.function), operands);
  ValueRange outputs = ValueRange(operands).drop_front(program.inputs.size());
  for (auto [result, value, output] :
       llvm::zip_equal(program.results, call.getResults(), outputs)) {
    destinations[value] = output;
    rewriter.replaceAllUsesWith(result, value);
  }
  for (linalg::LinalgOp op : llvm::reverse(group))
    eraseWithViews(rewriter, op);
}

void Outliner::outline(func::FuncOp function) {
  llvm::SetVector<Block *> blocks;
  function.walk<WalkOrder::PreOrder>([&](linalg::LinalgOp op) {
    if (isEncodedProduct(op))
      blocks.insert(op->getBlock());
  });
  unsigned number = 0;
  for (Block *block : blocks)
    for (const Group &group : findGroups(*block))
      outline(group, function, number++);
}

LogicalResult nm_sparse::outlinePrograms(ModuleOp module, StringRef name) {
  SmallVector<func::FuncOp> functions;
  bool bad = false, isNeeded = false;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.isExternal())
      continue;
    bad |= failed(checkWeights(function));
    function.walk(
        [&](linalg::LinalgOp op) { isNeeded |= isEncodedProduct(op); });
    functions.push_back(function);
  }
  if (bad || !isNeeded)
    return failure(bad);
  std::string prefix = (name + ".").str();
  for (Operation &op : *module.getBody()) {
    auto symbol = dyn_cast<SymbolOpInterface>(op);
    if (symbol && symbol.getNameAttr() &&
        (symbol.getName() == name || symbol.getName().starts_with(prefix)))
      return op.emitOpError()
             << "has the name of the module with the programs or of one of "
                "them, @"
             << symbol.getName()
             << ": rename it, or set another name by the option `name`";
  }

  if (failed(simplifySizes(module)))
    return module.emitError("the sizes of its tensors do not become simpler "
                            "however often they are simplified");
  llvm::for_each(functions, splitInitialSums);
  auto programs = ModuleOp::create(module.getLoc(), name);
  module.getBody()->push_front(programs);
  Outliner outliner(module, programs);
  for (func::FuncOp function : functions)
    outliner.outline(function);
  if (failed(simplifySizes(module)) || failed(generalize(module)))
    return failure();
  if (programs.getBody()->empty()) { // nothing needed the products
    programs.erase();
    return success();
  }
  IRRewriter rewriter(module.getContext());
  DominanceInfo dominance(programs);
  eliminateCommonSubExpressions(rewriter, dominance, programs);
  return success();
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

namespace {

struct OutlineProgramsPass
    : nm_sparse::impl::NMSparseOutlineProgramsPassBase<OutlineProgramsPass> {
  using NMSparseOutlineProgramsPassBase::NMSparseOutlineProgramsPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(outlinePrograms(module, name)))
      return signalPassFailure();
    if (!onlyPrograms)
      return;
    auto programs = module.lookupSymbol<ModuleOp>(name);
    for (Operation &op : llvm::make_early_inc_range(*module.getBody()))
      if (&op != programs.getOperation())
        op.erase();
    if (!programs)
      return;
    module.getBody()->getOperations().splice(
        module.getBody()->end(), programs.getBody()->getOperations());
    programs.erase();
  }
};

} // namespace
