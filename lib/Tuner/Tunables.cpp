//===- Tunables.cpp - the products of programs that can be tuned ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Tuner/Tunables.h"

#include "LayoutStage.h"
#include "ProductProgram.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "nm_sparse/Chip/Chip.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/ThreadPool.h"

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {
/// A product of a program, and the function that has it.
struct Found {
  TunedProblem problem;
  std::string function;
};
} // namespace

static std::string getKey(const TunedProblem &problem) {
  return problem.getLayer() + std::to_string(problem.tokens);
}

/// The option of the pipelines for weights that are stored as `problem` says:
/// `k_major` for "#nm_sparse.k_major<...>", and the full name for a form of
/// another dialect.
static std::string getStorageOption(const TunedProblem &problem) {
  StringRef storage = problem.storage;
  if (!storage.consume_front("#"))
    return storage.str();
  storage.consume_front("nm_sparse.");
  return storage.take_until([](char c) { return c == '<'; }).str();
}

/// The products of `program` when it is compiled for these numbers of tokens.
static llvm::Expected<std::vector<Found>>
findProducts(StringRef program, const TuneTarget &target,
             ArrayRef<int64_t> numbers, StringRef storage) {
  std::unique_ptr<MLIRContext> context = makeCompilerContext();
  auto module = runToLayout(*context, program, target, numbers, storage);
  if (!module)
    return module.takeError();
  // Without numbers, or with several, products say what they expect.
  int64_t otherwise = numbers.size() == 1 ? numbers.front() : 2048;
  std::vector<Found> found;
  (*module)->walk([&](MatmulOp op) {
    int64_t expected = getExpectedTokens(op, otherwise);
    StringRef name = op->getParentOfType<func::FuncOp>().getSymName();
    // A copy for some number belongs to the function that selects it.
    name.consume_back(llvm::formatv("_tokens_{0}", expected).str());
    found.push_back(
        {TunedProblem::get(op, expected, *target.chip), name.str()});
  });
  return found;
}

llvm::Expected<TunableProduct>
nm_sparse::makeTunable(const TunedProblem &problem, const TuneTarget &target) {
  std::unique_ptr<MLIRContext> context = makeCompilerContext();
  std::string reason = explainNoProgram(problem, *context);
  if (!reason.empty())
    return llvm::createStringError(reason);
  std::string key = getKey(problem), storage = getStorageOption(problem);
  for (std::string &text : writePrograms(problem, *context)) {
    auto own = findProducts(text, target, problem.tokens, storage);
    if (!own) {
      llvm::consumeError(own.takeError());
      continue;
    }
    if (own->size() == 1 && getKey(own->front().problem) == key)
      return TunableProduct{problem, std::move(text), storage, {}};
  }
  return llvm::createStringError("no program of one product has its problem");
}

RunRequest nm_sparse::makeRequest(const TunableProduct &product,
                                  const TuneTarget &target, uint64_t seed) {
  RunRequest request;
  request.file = "<product>";
  request.program = product.program;
  request.chip = target.chip->name.str();
  request.gpu = target.chip->gpu.str();
  request.objective = getName(target.objective).str();
  request.dynamicSize = product.problem.tokens;
  request.storage = product.storage;
  request.seed = seed;
  request.check = true;
  return request;
}

TunableFinder::TunableFinder(const TuneTarget &target, ArrayRef<int64_t> tokens)
    : target(target), tokens(tokens) {
  llvm::sort(this->tokens);
  this->tokens.erase(llvm::unique(this->tokens), this->tokens.end());
}

/// The products of a program for these numbers of tokens.
static llvm::Expected<std::vector<Found>>
findProducts(const TunableSource &source, const TuneTarget &target,
             ArrayRef<int64_t> tokens) {
  auto found =
      findProducts(source.program, target,
                   source.isOfModel ? ArrayRef<int64_t>() : tokens, "auto");
  if (!found || tokens.empty() || found->empty())
    return found;
  // Numbers for which the model chooses alike have one function, and measured,
  // choices may differ. All read weights in one form.
  std::string storage = getStorageOption(found->front().problem);
  bool isOne = llvm::all_of(*found, [&](const Found &one) {
    return getStorageOption(one.problem) == storage;
  });
  found->clear();
  for (int64_t number : tokens) {
    auto own = findProducts(source.program, target, number,
                            isOne ? StringRef(storage) : "auto");
    if (!own)
      return own.takeError();
    llvm::append_range(*found, *own);
  }
  return found;
}

/// Adds a problem that is in `known` or in `refused`.
void TunableFinder::add(const TunedProblem &problem, std::string name) {
  std::string key = getKey(problem);
  if (auto product = known.find(key); product != known.end()) {
    std::vector<std::string> &names = products[product->second].names;
    if (!llvm::is_contained(names, name))
      names.push_back(std::move(name));
    return;
  }
  skipped.push_back(
      {llvm::formatv("{0}, {1} inputs, {2} outputs, {3} tokens", name,
                     problem.inputs, problem.outputs, problem.tokens)
           .str(),
       refused[key]});
}

std::vector<std::string> TunableFinder::add(ArrayRef<TunableSource> sources) {
  llvm::DefaultThreadPool pool;
  std::vector<std::vector<Found>> found(sources.size());
  std::vector<std::string> faults(sources.size());
  for (size_t i = 0; i < sources.size(); ++i)
    pool.async([&, i] {
      auto own = findProducts(sources[i], target, tokens);
      if (own)
        found[i] = std::move(*own);
      else
        faults[i] = llvm::toString(own.takeError());
    });
  pool.wait();

  // Each new problem gets a program, or a reason why there is none.
  std::vector<const TunedProblem *> unknown;
  llvm::StringSet<> seen;
  for (const std::vector<Found> &own : found)
    for (const Found &one : own) {
      std::string key = getKey(one.problem);
      if (!known.count(key) && !refused.count(key) && seen.insert(key).second)
        unknown.push_back(&one.problem);
    }
  std::vector<TunableProduct> made(unknown.size());
  std::vector<std::string> reasons(unknown.size());
  for (size_t i = 0; i < unknown.size(); ++i)
    pool.async([&, i] {
      auto product = makeTunable(*unknown[i], target);
      if (product)
        made[i] = std::move(*product);
      else
        reasons[i] = llvm::toString(product.takeError());
    });
  pool.wait();
  for (size_t i = 0; i < unknown.size(); ++i) {
    std::string key = getKey(*unknown[i]);
    if (!reasons[i].empty()) {
      refused[key] = reasons[i];
      continue;
    }
    known[key] = products.size();
    products.push_back(std::move(made[i]));
  }

  for (auto [source, own] : llvm::zip_equal(sources, found))
    for (const Found &one : own)
      add(one.problem,
          (source.label.empty() ? "@" : source.label + " @") + one.function);
  return faults;
}
