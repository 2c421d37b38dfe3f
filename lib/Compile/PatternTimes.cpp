//===- PatternTimes.cpp - predicted times of a sparsity pattern -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The compiler's own stages choose storage, layout and schedule, so that what
// is predicted is what is compiled.
//
//===----------------------------------------------------------------------===//

#include "Advice.h"
#include "Explain.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "nm_sparse/Analysis/CostModel.h"
#include "nm_sparse/Analysis/EnergyModel.h"
#include "nm_sparse/Dialect/NMTile/IR/ElementFormat.h"
#include "nm_sparse/Pipelines/Run.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// A diagnostic without the stage, and the place in a program that nobody sees.
static std::string shorten(StringRef text) {
  text = text.substr(text.starts_with("stage ") ? text.find(": ") + 2 : 0);
  if (text.consume_front("layer:"))
    text = text.substr(text.find(": ") + 2);
  if (text.starts_with("'"))
    if (size_t end = text.find("' op "); end != StringRef::npos)
      text = text.substr(end + 5);
  return text.str();
}

static std::string getStorage(MatmulOp op) {
  WeightStorageInterface storage = op.getStorageAttr();
  return (storage ? storage.getFormName() : "canonical").str();
}

/// The only product of `module`.
static MatmulOp findProduct(ModuleOp module) {
  MatmulOp product;
  module.walk([&](MatmulOp op) { product = op; });
  return product;
}

static int64_t countBytes(ArrayRef<WeightComponent> components) {
  int64_t bytes = 0;
  for (const WeightComponent &component : components)
    bytes += component.type.getNumElements() *
             component.type.getElementTypeBitWidth() / 8;
  return bytes;
}

namespace {
/// How a weight is stored, and what it takes.
struct Stored {
  std::string storage;
  EncodingAttr embedded; ///< Another pattern that it is stored by; else null.
  int64_t bytes = 0;

  bool isOf(const PatternAdvice &row) const {
    return storage == row.storage && embedded == row.embedded;
  }
};
} // namespace

/// How the compiler stores the weight for `options.tokens`.
static llvm::Expected<Stored> chooseStorage(const LayerShape &shape,
                                            EncodingAttr encoding,
                                            const GPUPipelineOptions &options) {
  auto module = makeLayer(shape, encoding);
  if (!module)
    return module.takeError();
  if (llvm::Error error = runStages(**module, options, "front"))
    return error;
  MatmulOp product = findProduct(**module);
  PackedAttr packed = product
                          ? getPacked(product->getParentOfType<func::FuncOp>())
                          : PackedAttr();
  if (!packed)
    return llvm::createStringError("no product of a packed weight was made");
  EncodingAttr by = packed.getEncoding();
  return Stored{getStorage(product), by == encoding ? EncodingAttr() : by,
                countBytes(packed.getComponents())};
}

/// Fills in `time`, of a weight that is stored by `pattern`, or, where that is
/// null, by what the compiler chooses.
static llvm::Error predictTime(const LayerShape &shape, EncodingAttr encoding,
                               EncodingAttr pattern,
                               const GPUPipelineOptions &options,
                               PatternTime &time) {
  auto module = makeLayer(shape, encoding);
  if (!module)
    return module.takeError();
  if (pattern) {
    NMSparseDialect::EmbedAttrHelper embed(pattern.getContext());
    (*module)->walk([&](linalg::MatmulOp op) { embed.setAttr(op, pattern); });
  }
  if (llvm::Error error = runStages(**module, options, "schedule"))
    return error;
  MatmulOp product = findProduct(**module);
  if (!product || !getSchedule(product))
    return llvm::createStringError("no schedule was chosen");
  ChosenTime chosen =
      predictChosen(product, *findChip(options.chip, options.gpu), time.tokens);
  time.seconds = chosen.seconds;
  time.energy = chosen.energy;
  time.measured = chosen.measured;
  time.bound = chosen.bound.str();
  time.before = chosen.before.str();
  time.product = getSchedule(product).getProduct().getProductName().str();
  llvm::raw_string_ostream(time.schedule) << getSchedule(product);
  return llvm::Error::success();
}

static RankedTensorType getWeightType(MLIRContext &context,
                                      const LayerShape &shape) {
  return RankedTensorType::get({shape.outputs, shape.inputs},
                               parseType(shape.type->element, &context));
}

std::vector<PatternAdvice>
nm_sparse::predictPattern(const LayerShape &shape, EncodingAttr encoding,
                          const GPUPipelineOptions &options) {
  PatternAdvice advice;
  advice.encoding = encoding;
  advice.density = encoding.getDensity();
  auto forTokens = [&](GPUPipelineOptions &one, int64_t tokens) {
    one.copyOptionValuesFrom(options);
    one.tokens = ArrayRef(tokens);
  };
  std::vector<Stored> chosen;
  std::vector<PatternAdvice> rows;
  for (int64_t tokens : options.tokens) {
    GPUPipelineOptions one;
    forTokens(one, tokens);
    auto stored = chooseStorage(shape, encoding, one);
    PatternTime &time = advice.times.emplace_back(PatternTime{tokens});
    chosen.push_back(stored ? *stored : Stored());
    if (!stored)
      time.error = shorten(llvm::toString(stored.takeError()));
    else if (llvm::none_of(rows, [&](const PatternAdvice &row) {
               return stored->isOf(row);
             })) {
      PatternAdvice &row = rows.emplace_back(advice);
      row.storage = stored->storage;
      row.embedded = stored->embedded;
      row.bytes = stored->bytes;
      row.times.clear();
    }
  }
  if (rows.empty()) {
    advice.bytes = countBytes(
        encoding.getComponents(getWeightType(*encoding.getContext(), shape)));
    return {advice};
  }
  for (PatternAdvice &row : rows)
    for (auto [stored, tokens] : llvm::zip_equal(chosen, options.tokens)) {
      GPUPipelineOptions one;
      forTokens(one, tokens);
      // The pattern that is chosen for other token counts, if not for these.
      EncodingAttr pattern;
      if (!stored.isOf(row)) {
        one.storage = row.storage;
        pattern = row.embedded ? row.embedded : encoding;
      }
      PatternTime &time = row.times.emplace_back(PatternTime{tokens});
      if (llvm::Error error = predictTime(shape, encoding, pattern, one, time))
        time.error = shorten(llvm::toString(std::move(error)));
    }
  return rows;
}

PatternAdvice nm_sparse::predictDense(MLIRContext &context,
                                      const LayerShape &shape,
                                      ArrayRef<int64_t> tokens,
                                      const Chip &chip) {
  PatternAdvice dense;
  dense.pattern = "dense";
  dense.bytes = shape.outputs * shape.inputs * shape.type->bits / 8;
  const ElementFormat *format =
      findElementFormat(getWeightType(context, shape).getElementType());
  MatmulProblem problem = {};
  problem.batch = 1;
  problem.outputs = shape.outputs;
  problem.denseRows = shape.inputs;
  problem.elementBytes = shape.type->bits / 8;
  problem.tensorCores = format->isLegalOrder(MajorOrder::MN);
  for (int64_t count : tokens) {
    problem.tokens = count;
    PatternTime &time = dense.times.emplace_back(PatternTime{count});
    time.seconds = predictDense(problem, chip);
    time.energy = predictDenseEnergy(problem, time.seconds, chip);
    time.product = "the vendor's library";
  }
  return dense;
}
