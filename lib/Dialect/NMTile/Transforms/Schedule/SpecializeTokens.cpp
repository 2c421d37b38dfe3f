//===- SpecializeTokens.cpp - copies of a function for token counts -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The passes that decide the code for a number of tokens run on copies of the
// function, in a module that is thrown away. The predicted time of such a copy
// for other numbers says which copies to keep.
//
//===----------------------------------------------------------------------===//

#include "Storage/Layout.h"
#include "TokenCount.h"
#include "TunedSchedules.h"
#include "nm_sparse/Analysis/EnergyModel.h"
#include "nm_sparse/Analysis/Objective.h"
#include "nm_sparse/Analysis/TokenClasses.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Pass/PassManager.h"
#include "nm_sparse/Analysis/CostModel.h"
#include "nm_sparse/Analysis/ProductCost.h"
#include "nm_sparse/Analysis/TransposeCost.h"
#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h"
#include "nm_sparse/Tuning/MeasuredTime.h"
#include "llvm/ADT/ScopeExit.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSESPECIALIZETOKENSPASS
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

/// How far the kept copies may be from the best, and how much of that a range
/// of tokens may take to be one.
static constexpr double kTolerance = 0.03, kRangeTolerance = 0.01;

/// Operations behind one product, in all copies of a function together, beyond
/// which there are fewer copies: all of them are compiled for each element that
/// a thread has.
static constexpr int64_t kMostOperations = 1024;

/// How many copies of `function` to keep, `most` unless its products are
/// followed by very many operations.
static int64_t getMostCopies(func::FuncOp function, int64_t most) {
  int64_t products = 0, operations = 0;
  function.walk([&](Operation *op) {
    products += isa<MatmulOp>(op);
    operations += isa<linalg::LinalgOp>(op);
  });
  return std::clamp<int64_t>(
      kMostOperations * products / std::max<int64_t>(operations, 1), 1, most);
}

/// The prediction for `op` with its schedule and so many tokens. Where its time
/// was measured for another number, it is wrong by the same factor there.
static Prediction predictProduct(MatmulOp op, int64_t tokens,
                                 const Chip &chip) {
  auto predictFor = [&](int64_t number) {
    return predict(MatmulProblem::get(op, number), getSchedule(op), chip);
  };
  Prediction prediction = predictFor(tokens);
  if (std::optional<MeasuredTime> measured = MeasuredTime::get(op))
    prediction.seconds *=
        measured->seconds / predictFor(measured->tokens).seconds;
  return prediction;
}

/// Predicted time and energy of the kernels of `function`, whose products have
/// schedules, for so many tokens. A product of which the model knows nothing
/// takes none.
static Prediction predictFunction(func::FuncOp function, int64_t tokens,
                                  const Chip &chip) {
  Prediction sum{};
  auto addCopy = [&](double bytes, double seconds) {
    add(sum, predictCopy(2 * bytes, seconds, chip));
  };
  function.walk([&](Operation *op) {
    auto matmul = dyn_cast<MatmulOp>(op);
    if (matmul && isa<ProductCostInterface>(
                      Attribute(getSchedule(matmul).getProduct()))) {
      add(sum, predictProduct(matmul, tokens, chip));
    } else if (auto transpose = dyn_cast<linalg::TransposeOp>(op)) {
      // Rows that only change their order are written where they belong.
      if (exchangesRows(transpose))
        return;
      double bytes = countTransposed(op, tokens);
      addCopy(bytes, predictTranspose(bytes, chip));
    } else if (auto align = dyn_cast<AlignRowsOp>(op);
               align && align.copiesRows(tokens)) {
      auto type = cast<ShapedType>(align.getSrc().getType());
      addCopy(countBytes(type, tokens), predictRowCopy(type, tokens, chip));
    }
  });
  return sum;
}

/// Calls the one of `copies` that `number` says; the last for all others.
static SmallVector<Value> createSelection(OpBuilder &b, func::FuncOp function,
                                          Value number,
                                          ArrayRef<func::FuncOp> copies) {
  Location loc = function.getLoc();
  SmallVector<int64_t> cases =
      llvm::to_vector(llvm::seq<int64_t>(0, copies.size() - 1));
  auto choice = scf::IndexSwitchOp::create(b, loc, function.getResultTypes(),
                                           number, cases, cases.size());
  for (auto [i, copy] : llvm::enumerate(copies)) {
    Region &region = i < cases.size() ? choice.getCaseRegions()[i]
                                      : choice.getDefaultRegion();
    OpBuilder::InsertionGuard guard(b);
    b.createBlock(&region);
    auto call = func::CallOp::create(b, loc, copy, function.getArguments());
    scf::YieldOp::create(b, loc, call.getResults());
  }
  return SmallVector<Value>(choice.getResults());
}

namespace {

struct SpecializeTokens
    : public nm_sparse::impl::NMSparseSpecializeTokensPassBase<
          SpecializeTokens> {
  using Base::Base;

  /// Chooses layouts in each function of `module`.
  LogicalResult decideLayouts(ModuleOp module) {
    OpPassManager passes(ModuleOp::getOperationName());
    passes.addNestedPass<func::FuncOp>(createNMSparseSinkReshapesPass());
    NMSparsePropagateLayoutPassOptions propagate;
    propagate.chip = chip;
    propagate.gpu = gpu;
    propagate.layout = layout;
    propagate.objective = objective;
    passes.addNestedPass<func::FuncOp>(
        createNMSparsePropagateLayoutPass(propagate));
    passes.addNestedPass<func::FuncOp>(createNMSparseKeepPixelsPass());
    NMSparseReadPixelsPassOptions read;
    read.chip = chip;
    read.gpu = gpu;
    read.layout = layout;
    read.objective = objective;
    passes.addNestedPass<func::FuncOp>(createNMSparseReadPixelsPass(read));
    NMSparseAlignOperandsPassOptions align;
    align.chip = chip;
    align.gpu = gpu;
    align.objective = objective;
    passes.addNestedPass<func::FuncOp>(createNMSparseAlignOperandsPass(align));
    return runPipeline(passes, module);
  }

  /// Chooses layouts and schedules in each function of `module`.
  LogicalResult decide(ModuleOp module, const Chip &target) {
    // Errors are reported by the final decision.
    ScopedDiagnosticHandler ignore(&getContext(),
                                   [](Diagnostic &) { return success(); });
    if (failed(decideLayouts(module)))
      return failure();
    applyTuned(module, database, target, comparedBy, /*tokens=*/2048);
    OpPassManager passes(ModuleOp::getOperationName());
    NMSparseSelectSchedulePassOptions select;
    select.chip = chip;
    select.gpu = gpu;
    select.objective = objective;
    passes.addNestedPass<func::FuncOp>(
        createNMSparseSelectSchedulePass(select));
    return runPipeline(passes, module);
  }

  static void setTokens(func::FuncOp function, int64_t tokens) {
    NMSparseDialect::TokensAttrHelper(function.getContext())
        .setAttr(function,
                 Builder(function.getContext()).getI64IntegerAttr(tokens));
  }

  /// A private copy of `function` that is compiled for `tokens`.
  static func::FuncOp copyFor(func::FuncOp function, int64_t tokens,
                              SymbolTable &symbols) {
    std::string name =
        (function.getSymName() + "_tokens_" + Twine(tokens)).str();
    auto copy = func::FuncOp::create(function.getLoc(), name,
                                     function.getFunctionType());
    if (ArrayAttr attributes = function.getArgAttrsAttr())
      copy.setArgAttrsAttr(attributes);
    if (ArrayAttr attributes = function.getResAttrsAttr())
      copy.setResAttrsAttr(attributes);
    copy.setPrivate();
    setTokens(copy, tokens);
    IRMapping mapping;
    function.getBody().cloneInto(&copy.getBody(), mapping);
    symbols.insert(copy);
    return copy;
  }

  /// Adds what `function` refers to, of functions the declaration alone.
  void declareUsed(func::FuncOp function, SymbolTable &symbols) {
    auto uses = SymbolTable::getSymbolUses(function);
    for (SymbolTable::SymbolUse use : *uses) {
      StringAttr name = use.getSymbolRef().getRootReference();
      Operation *used = SymbolTable::lookupSymbolIn(getOperation(), name);
      if (!used || symbols.lookup(name))
        continue;
      bool isFunction = isa<func::FuncOp>(used);
      Operation *copy =
          isFunction ? used->cloneWithoutRegions() : used->clone();
      if (isFunction)
        SymbolTable::setSymbolVisibility(copy,
                                         SymbolTable::Visibility::Private);
      symbols.insert(copy);
    }
  }

  /// The costs of copies of `function` that are decided for `candidates`. None
  /// if one cannot be decided.
  std::optional<TokenCosts> getCosts(func::FuncOp function,
                                     ArrayRef<int64_t> candidates,
                                     const Chip &target) {
    auto planned = ModuleOp::create(function.getLoc());
    getOperation().push_back(planned);
    SymbolTable symbols(planned);
    declareUsed(function, symbols);
    SmallVector<func::FuncOp> copies;
    for (int64_t tokens : candidates)
      copies.push_back(copyFor(function, tokens, symbols));
    std::optional<TokenCosts> costs;
    if (succeeded(decide(planned, target))) {
      costs.emplace();
      costs->tokens = getTokenGrid();
      // Where rows may have to be copied, as often as not they have.
      bool readsRows =
          planned.walk([](AlignRowsOp) { return WalkResult::interrupt(); })
              .wasInterrupted();
      for (func::FuncOp copy : copies) {
        SmallVector<double> &scores = costs->scores.emplace_back();
        auto addScore = [&](int64_t tokens) {
          scores.back() +=
              getScore(predictFunction(copy, tokens, target), comparedBy);
        };
        for (int64_t tokens : costs->tokens) {
          scores.push_back(0);
          addScore(tokens);
          if (readsRows)
            addScore(std::max<int64_t>(1, tokens - 1));
        }
      }
    }
    planned.erase();
    return costs;
  }

  /// Replaces the body of `function` by a selection between copies of it.
  static void select(func::FuncOp function, func::FuncOp count,
                     ArrayRef<TokenRange> ranges, ArrayRef<int64_t> candidates,
                     SymbolTable &symbols) {
    SmallVector<func::FuncOp> copies;
    llvm::SmallDenseMap<unsigned, int64_t> numbers;
    SmallVector<int64_t> last, classes;
    for (TokenRange range : ranges) {
      auto [number, isNew] =
          numbers.try_emplace(range.candidate, copies.size());
      if (isNew)
        copies.push_back(
            copyFor(function, candidates[range.candidate], symbols));
      last.push_back(range.last);
      classes.push_back(number->second);
    }
    last.pop_back();
    Block &body = function.getBody().front();
    body.clear();
    auto b = OpBuilder::atBlockEnd(&body);
    IRMapping mapping;
    mapping.map(count.getArguments(), function.getArguments());
    for (Operation &op : count.getBody().front().without_terminator())
      b.clone(op, mapping);
    Value tokens =
        mapping.lookup(count.getBody().front().getTerminator()->getOperand(0));
    Value number =
        TokenClassOp::create(b, function.getLoc(), tokens, last, classes);
    func::ReturnOp::create(b, function.getLoc(),
                           createSelection(b, function, number, copies));
  }

  /// Numbers of tokens to decide for: those that were measured for a product of
  /// `function`, and usual ones that would not get the schedules of these.
  SmallVector<int64_t> getCandidates(func::FuncOp function,
                                     const Chip &target) {
    std::set<int64_t> measured;
    function.walk([&](MatmulOp op) {
      measured.merge(
          database.findTokens(TunedProblem::get(op, 1, target), comparedBy));
    });
    SmallVector<int64_t> candidates(measured.begin(), measured.end());
    for (int64_t usual : getCandidateTokens())
      if (llvm::none_of(measured, [&](int64_t one) {
            return std::max(one, usual) <= 2 * std::min(one, usual);
          }))
        candidates.push_back(usual);
    llvm::sort(candidates);
    return candidates;
  }

  void specialize(func::FuncOp function, const Chip &target,
                  SymbolTable &symbols) {
    SmallVector<int64_t> candidates = tokens.empty()
                                          ? getCandidates(function, target)
                                          : llvm::to_vector(tokens);
    func::FuncOp count = createTokenCount(function);
    if (!count)
      return;
    llvm::scope_exit erase([&] { count.erase(); });
    auto costs = getCosts(function, candidates, target);
    if (!costs)
      return;
    SmallVector<unsigned> chosen = getDistinct(*costs);
    if (tokens.empty())
      chosen = chooseCandidates(
          *costs, chosen, getMostCopies(function, maxKernels), kTolerance);
    auto ranges = assignTokens(*costs, chosen, kRangeTolerance);
    if (llvm::all_equal(llvm::map_range(
            ranges, [](TokenRange range) { return range.candidate; })))
      return setTokens(function, candidates[ranges.front().candidate]);
    select(function, count, ranges, candidates, symbols);
  }

  /// Checks the options, and puts the given numbers in order.
  LogicalResult checkOptions() {
    if (maxKernels < 1)
      return getOperation().emitError("cannot keep at most ")
             << maxKernels.getValue() << " copies of a function; legal are 1 "
             << "and more";
    if (static_cast<int64_t>(tokens.size()) > maxKernels)
      return getOperation().emitError("cannot compile for ")
             << tokens.size() << " numbers of tokens with max-kernels = "
             << maxKernels.getValue();
    for (int64_t count : tokens)
      if (count < 1)
        return getOperation().emitError("cannot compile for ")
               << count << " tokens; legal are 1 and more";
    SmallVector<int64_t> ordered = llvm::to_vector(tokens);
    llvm::sort(ordered);
    ordered.erase(llvm::unique(ordered), ordered.end());
    tokens = ordered;
    return success();
  }

  void runOnOperation() override {
    if (failed(checkOptions()))
      return signalPassFailure();
    const Chip *target = findChip(chip, gpu);
    // An unknown chip is an error where schedules are chosen, and so is an
    // objective that it cannot be judged by.
    if (!target)
      return;
    llvm::Expected<Objective> parsed = parseObjective(objective, *target);
    if (!parsed)
      return llvm::consumeError(parsed.takeError());
    comparedBy = *parsed;
    if (llvm::Error error =
            readTuned(getOperation(), llvm::to_vector(files), database)) {
      getOperation().emitError(llvm::toString(std::move(error)));
      return signalPassFailure();
    }
    SymbolTable symbols(getOperation());
    for (auto function : llvm::to_vector(getOperation().getOps<func::FuncOp>()))
      if (!function.isExternal() && hasDynamicTokens(function))
        specialize(function, *target, symbols);
  }

  Objective comparedBy = Objective::Time;
  TuningDatabase database;
};
} // namespace
