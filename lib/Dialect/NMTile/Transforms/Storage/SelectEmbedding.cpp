//===- SelectEmbedding.cpp - which weights to store by another pattern ----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sparse tensor cores multiply 2:4 weights alone, but many weights of other
// patterns are 2:4, too. As such a weight may take more bytes, which counts for
// few tokens, and is multiplied faster, which counts for many. A weight of two
// levels is an n:m one of single elements, too, which has kernels on more
// chips, for few tokens and for panels of any width. A weight is stored once,
// so all numbers of tokens decide together.
//
//===----------------------------------------------------------------------===//

#include "Storage/StorageChoice.h"
#include "nm_sparse/Dialect/NMSparse/Utils/Embedding.h"
#include "nm_sparse/Dialect/NMSparse/Utils/StoredWeights.h"
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h"

#include "nm_sparse/Analysis/Epilogue.h"
#include "nm_sparse/Analysis/LayoutCost.h"
#include "nm_sparse/Analysis/TransposeCost.h"
#include "nm_sparse/Dialect/NMSparse/Utils/CallersTensor.h"
#include "nm_sparse/Dialect/NMTile/IR/ElementFormat.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>
#include <map>
#include <tuple>

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSESELECTEMBEDDINGPASS
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

/// The pattern of sparse tensor cores.
static constexpr SparsityLevel kSparseCores = {2, 4};

/// How much faster another pattern must be, on average over all numbers of
/// tokens: the model is not more exact than that.
static constexpr double kLeastGain = 1.03;

/// Numbers of tokens that stand for any: as many of each size.
static constexpr int64_t kAnyTokens[] = {1, 4, 16, 64, 256, 1024, 4096, 16384};

static bool multipliesOnSparseCores(MatmulOp op) {
  const ElementFormat *format =
      findElementFormat(getElementTypeOrSelf(op.getX()));
  return format && format->bits <= 16 &&
         (format->sparseMma || format->sparseWgmma);
}

namespace {
struct SelectEmbedding
    : public nm_sparse::impl::NMSparseSelectEmbeddingPassBase<SelectEmbedding> {
  using Base::Base;

  void runOnOperation() override;

private:
  /// A pattern that a weight may be stored by.
  struct Candidate {
    SparsityLevel pattern;
    /// The mean of its logarithms of seconds, where the model is asked.
    double time = 0;
  };

  void select(const StoredWeight &weight);
  SmallVector<SparsityLevel> getPatterns(const StoredWeight &weight) const;
  std::string findObstacle(const StoredWeight &weight, Candidate &candidate);
  SmallVector<int64_t> getTokenCounts(MatmulOp op) const;
  std::optional<double> predictStored(MatmulOp op, EncodingAttr encoding,
                                      int64_t count) const;
  std::optional<double> predictMean(MatmulOp op, EncodingAttr encoding) const;
  std::optional<double> getTime(const StoredWeight &weight,
                                ArrayRef<SparsityLevel> levels);

  const Chip *target = nullptr;
  /// Predictions are made once: many layers are alike.
  using Key = std::tuple<const void *, const void *, const void *, const void *,
                         bool, int64_t, int64_t, int64_t>;
  std::map<Key, std::optional<double>> times;
};
} // namespace

/// The numbers of tokens that `op` is compiled for.
SmallVector<int64_t> SelectEmbedding::getTokenCounts(MatmulOp op) const {
  int64_t own =
      cast<ShapedType>(op.getX().getType()).getDimSize(op.getXTokenDim());
  if (ShapedType::isDynamic(own))
    own = getExpectedTokens(op, /*otherwise=*/0);
  if (own > 0)
    return {own};
  if (!tokens.empty())
    return llvm::to_vector(tokens);
  return llvm::to_vector(kAnyTokens);
}

/// Predicted seconds of `op`, were its weight of `encoding`, stored as it would
/// be then, with the layout of its activations that suits it. None when no
/// schedule fits.
std::optional<double> SelectEmbedding::predictStored(MatmulOp op,
                                                     EncodingAttr encoding,
                                                     int64_t count) const {
  int64_t most = tokens.empty() ? 0 : *llvm::max_element(tokens);
  MatmulProblem problem = MatmulProblem::get(op, count);
  problem.encoding = encoding;
  problem.windows =
      llvm::divideCeil(op.getContractionSize(), encoding.getWindowRows());
  problem.density = encoding.getDensity();
  problem.bitmap = std::nullopt;
  if (prefersBitmaps(op, encoding, {storage, target, most}))
    problem.bitmap = BitmapTile::get(encoding, problem.elementBytes);
  bool isFeatureMajor = op.isXFeatureMajor();
  auto best = predictProduct(problem, ScheduleAttr(), isFeatureMajor, *target);
  // As PropagateLayout changes it, which has rows of the program's own.
  if (isFeatureMajor != (problem.elementBytes == 1))
    return best;
  problem.xAlignment = 32;
  auto other =
      predictProduct(problem, ScheduleAttr(), !isFeatureMajor, *target);
  if (!other)
    return best;
  // Activations that the program computes can be computed in that layout.
  if (getCallersTensor(op.getX()))
    *other +=
        predictTranspose(cast<ShapedType>(op.getX().getType()), count, *target);
  return best ? std::min(*best, *other) : other;
}

/// The mean, over the numbers of tokens, of the logarithms of the seconds of
/// `op` with a weight of `encoding`. None when it has no kernel for one of
/// them.
std::optional<double>
SelectEmbedding::predictMean(MatmulOp op, EncodingAttr encoding) const {
  double sum = 0;
  SmallVector<int64_t> counts = getTokenCounts(op);
  for (int64_t count : counts) {
    auto seconds = predictStored(op, encoding, count);
    if (!seconds)
      return std::nullopt;
    sum += std::log(*seconds);
  }
  return sum / double(counts.size());
}

/// The mean of all products of `weight`, were it of `levels`.
std::optional<double> SelectEmbedding::getTime(const StoredWeight &weight,
                                               ArrayRef<SparsityLevel> levels) {
  double sum = 0;
  for (MatmulOp op : weight.products) {
    EncodingAttr own = op.getEncoding();
    auto encoding = EncodingAttr::get(op.getContext(), levels, own.getDim(),
                                      own.getOrder());
    Epilogue epilogue = getEpilogue(op, /*dynamicExtent=*/1);
    Key key = {encoding.getAsOpaquePointer(),
               op.getX().getType().getAsOpaquePointer(),
               op.getInit().getType().getAsOpaquePointer(),
               op.getIndexingMaps().getAsOpaquePointer(),
               bool(getCallersTensor(op.getX())),
               getExpectedTokens(op, /*otherwise=*/0),
               epilogue.writtenBytes,
               epilogue.readBytes};
    auto [found, isNew] = times.try_emplace(key);
    if (isNew)
      found->second = predictMean(op, encoding);
    if (!found->second)
      return std::nullopt;
    sum += *found->second;
  }
  return sum / double(weight.products.size());
}

/// Returns true if `op` has a schedule whose product takes its weight by
/// `pattern`, and not as it is.
static bool needsPattern(MatmulOp op, const SparsityLevel &pattern) {
  ScheduleAttr schedule = getSchedule(op);
  ScopedDiagnosticHandler ignore(op.getContext(),
                                 [](Diagnostic &) { return success(); });
  auto takes = [&](EncodingAttr encoding) {
    return (!encoding.hasInnerLevel() ||
            schedule.getOperandTiles().innerLevels) &&
           succeeded(schedule.getProduct().verifyProblem(
               [&] { return op.emitError(); }, schedule, encoding,
               getElementTypeOrSelf(op.getX())));
  };
  return schedule && !takes(op.getEncoding()) &&
         takes(replaceLevels(op.getEncoding(), pattern));
}

/// The patterns that the products of `weight` may be faster with.
SmallVector<SparsityLevel>
SelectEmbedding::getPatterns(const StoredWeight &weight) const {
  MatmulOp first = weight.products.front();
  EncodingAttr encoding = first.getEncoding();
  SmallVector<SparsityLevel> patterns;
  // If a pattern does not always embed in 2:4, only the data can tell.
  bool isConstant = !weight.findConstants().empty();
  bool mayEmbed = alwaysEmbeds(encoding, kSparseCores) ||
                  (encoding.getDensity() <= 0.5 && (isConstant || checked));
  if (mayEmbed && multipliesOnSparseCores(first) &&
      encoding.getLevels() != ArrayRef(kSparseCores))
    patterns.push_back(kSparseCores);
  if (encoding.hasInnerLevel())
    patterns.push_back(getElementLevel(encoding));
  return patterns;
}

/// Why `weight` is not stored by that pattern; empty when it can be.
std::string SelectEmbedding::findObstacle(const StoredWeight &weight,
                                          Candidate &candidate) {
  MatmulOp first = weight.products.front();
  const SparsityLevel &pattern = candidate.pattern;
  auto name = llvm::formatv("{0}:{1}", pattern.n, pattern.m);
  if (storage == "canonical" && pattern == kSparseCores)
    return "sparse tensor cores read no canonical form";
  if (mode == "auto") {
    if (llvm::any_of(weight.products,
                     [](MatmulOp op) { return getSchedule(op); })) {
      // Schedules that are set already allow this pattern only if all of their
      // products need it.
      if (!llvm::all_of(weight.products,
                        [&](MatmulOp op) { return needsPattern(op, pattern); }))
        return "its schedule is for that";
    } else {
      std::optional<double> other = getTime(weight, pattern);
      if (!other)
        return llvm::formatv("no schedule of {0} fits", name);
      // Without kernels of its own, any others are a gain.
      std::optional<double> own =
          getTime(weight, first.getEncoding().getLevels());
      if (own && *own - *other < std::log(kLeastGain))
        return llvm::formatv("{0} is predicted to be {1:f2} times as fast",
                             name, std::exp(*own - *other));
      candidate.time = *other;
    }
  }
  SmallVector<DenseElementsAttr> constants = weight.findConstants();
  if (alwaysEmbeds(first.getEncoding(), pattern) || constants.empty())
    return "";
  // The reason is a part of a remark, and no error.
  std::string reason;
  ScopedDiagnosticHandler collect(&getContext(), [&](Diagnostic &diagnostic) {
    reason = diagnostic.str();
    return success();
  });
  auto packed = repackConstant(constants, first, pattern,
                               [&] { return first.emitError(); });
  return succeeded(packed) ? "" : reason;
}

void SelectEmbedding::select(const StoredWeight &weight) {
  MatmulOp first = weight.products.front();
  NMSparseDialect::EmbedAttrHelper embed(&getContext());
  if (first.getStorageAttr() ||
      ShapedType::isDynamic(first.getContractionSize()) ||
      llvm::any_of(weight.products,
                   [&](MatmulOp op) { return embed.isAttrPresent(op); }))
    return;
  std::optional<Candidate> best;
  SmallVector<std::string> obstacles;
  for (const SparsityLevel &pattern : getPatterns(weight)) {
    Candidate candidate{pattern};
    std::string obstacle = findObstacle(weight, candidate);
    if (!obstacle.empty())
      obstacles.push_back(obstacle);
    else if (!best || candidate.time < best->time)
      best = candidate;
  }
  if (!best) {
    if (!obstacles.empty())
      first.emitRemark("keeps ")
          << first.getEncoding()
          << " of its weight: " << llvm::join(obstacles, "; ");
    return;
  }
  for (MatmulOp op : weight.products)
    embed.setAttr(op, replaceLevels(op.getEncoding(), best->pattern));
}

void SelectEmbedding::runOnOperation() {
  if (mode != "auto" && mode != "always" && mode != "never") {
    emitError(UnknownLoc::get(&getContext()))
        << "embed must be auto, always or never, got '" << mode << "'";
    return signalPassFailure();
  }
  target = findChip(chip, gpu);
  times.clear();
  // An unknown chip is an error where schedules are chosen, and so is a number
  // of tokens that is not legal.
  if (!target || mode == "never" ||
      llvm::any_of(tokens, [](int64_t count) { return count < 1; }))
    return;
  for (const StoredWeight &weight : collectWeights(getOperation()))
    select(weight);
}
