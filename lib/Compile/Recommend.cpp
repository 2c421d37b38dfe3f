//===- Recommend.cpp - which clocks for a program -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A product that is a layer of the sweep, by shape, pattern and type, has the
// parameters that were fitted to its points. Others have those that the cost
// model says, scaled by what it is off for the layers of the sweep.
//
//===----------------------------------------------------------------------===//

#include "Recommend.h"

#include "Explain.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "nm_sparse/Analysis/CostModel.h"
#include "nm_sparse/Checkpoint/TensorFile.h"
#include "nm_sparse/Chip/Chip.h"
#include "nm_sparse/Support/OutputFile.h"
#include "nm_sparse/Support/QuoteName.h"
#include "llvm/Support/FormatVariadic.h"
#include <tuple>

using namespace mlir;
using namespace mlir::nm_sparse;

/// Percent of the time, unless --max-loss says another.
static constexpr int64_t kUsualLoss = 5;

static std::string print(Attribute attribute) {
  std::string text;
  llvm::raw_string_ostream(text) << attribute;
  return text;
}

/// Finds the layer that is this product: the one with its schedule, otherwise
/// the first one.
static std::optional<size_t> findLayer(const ClockSweep &sweep,
                                       const RecommendedProduct &product) {
  auto getKey = [](const auto &item) {
    return std::tie(item.batch, item.tokens, item.outputs, item.inputs,
                    item.encoding, item.type);
  };
  std::optional<size_t> found;
  for (size_t i = 0; i < sweep.layers.size(); ++i) {
    const SweepLayer &layer = sweep.layers[i];
    if (getKey(layer) != getKey(product))
      continue;
    if (layer.schedule == product.schedule)
      return i;
    if (!found)
      found = i;
  }
  return found;
}

static RecommendedProduct describe(MatmulOp op, const ClockModel &model,
                                   const Chip &chip, int64_t tokens,
                                   double maxLoss) {
  MatmulProblem problem = MatmulProblem::get(op, getExpectedTokens(op, tokens));
  RecommendedProduct product;
  product.function = op->getParentOfType<func::FuncOp>().getSymName().str();
  product.encoding = print(op.getEncoding());
  product.type = problem.format->name.str();
  product.schedule = print(getSchedule(op));
  product.batch = problem.batch;
  product.tokens = problem.tokens;
  product.outputs = problem.outputs;
  product.inputs = problem.getDenseRows();
  if (auto layer = findLayer(model.getSweep(), product)) {
    product.layer = &model.getSweep().layers[*layer];
    product.fitted = model.getLayer(*layer);
  } else {
    product.fitted = model.predict(
        findClockParts(problem, getSchedule(op),
                       predictChosen(op, chip, tokens).seconds, chip));
  }
  if (product.fitted)
    product.advice = model.advise(*product.fitted, maxLoss);
  return product;
}

/// The sweep must be of the GPU that schedules are chosen for.
static llvm::Error checkGPU(const ClockSweep &sweep, const Chip &chip) {
  StringRef gpu = getGPUOfDevice(sweep.gpu);
  if (gpu == chip.gpu)
    return llvm::Error::success();
  std::string hint =
      gpu.empty() ? "" : llvm::formatv("say --gpu {0}, or ", gpu).str();
  return llvm::createStringError(
      llvm::formatv("{0}: was recorded on {1}, and schedules are chosen for "
                    "the GPU {2}: {3}name a sweep of that",
                    sweep.path, quoteName(sweep.gpu), chip.gpu, hint));
}

llvm::Error nm_sparse::recommend(ModuleOp module,
                                 const CompileOptions &options) {
  const Chip &chip = *findChip(options.pipeline.chip, options.pipeline.gpu);
  auto sweep = readClockSweep(options.recommend.clocks);
  if (!sweep)
    return sweep.takeError();
  if (llvm::Error error = checkGPU(*sweep, chip))
    return error;
  auto model = ClockModel::fit(std::move(*sweep));
  if (!model)
    return model.takeError();
  int64_t percent = options.recommend.maxLoss;
  double maxLoss = 0.01 * double(percent < 0 ? kUsualLoss : percent);
  std::vector<RecommendedProduct> products;
  module.walk([&](MatmulOp op) {
    if (getSchedule(op))
      products.push_back(describe(
          op, *model, chip, getExpectedTokens(options.pipeline), maxLoss));
  });
  if (products.empty())
    return llvm::createStringError(
        options.input + " has no contraction with an encoded weight, so there "
                        "is no kernel to recommend clocks for");
  const std::string &json = options.advice.json;
  if (json != "-")
    printRecommendation(*model, products, maxLoss, *options.host.out);
  if (json.empty())
    return llvm::Error::success();
  auto file = options.host.createFile(
      json, llvm::formatv("{0:2}\n", toJSON(*model, products, maxLoss)).str());
  return file ? file->keep() : file.takeError();
}
