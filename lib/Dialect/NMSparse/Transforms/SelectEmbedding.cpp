//===- SelectEmbedding.cpp - which weights to store as 2:4 ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sparse tensor cores multiply 2:4 weights alone, but many weights of other
// patterns are 2:4, too. As such a weight may take more bytes, which counts for
// few tokens, and is multiplied faster, which counts for many. A weight is
// stored once, so all numbers of tokens decide together.
//
//===----------------------------------------------------------------------===//

#include "StorageChoice.h"
#include "StoredWeights.h"
#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h"
#include "nm_sparse/Dialect/NMSparse/Utils/Embedding.h"

#include "nm_sparse/Analysis/TransposeCost.h"
#include "nm_sparse/Dialect/NMSparse/IR/ElementFormat.h"
#include "nm_sparse/Dialect/NMSparse/Utils/Buffers.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>
#include <map>
#include <tuple>

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSESELECTEMBEDDINGPASS
#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

/// What sparse tensor cores multiply.
static constexpr SparsityLevel kSparseCores = {2, 4};

/// How much faster 2:4 must be, on average over all numbers of tokens: the
/// model is not more exact than that.
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
  void select(const StoredWeight &weight);
  std::string findObstacle(const StoredWeight &weight);
  SmallVector<int64_t> getTokenCounts(MatmulOp op) const;
  std::optional<double> predictStored(MatmulOp op, EncodingAttr encoding,
                                      int64_t count) const;
  std::optional<double> compare(MatmulOp op) const;
  std::optional<double> getGain(const StoredWeight &weight);

  const Chip *target = nullptr;
  /// What has been compared is not compared again: many layers are alike.
  using Key = std::tuple<const void *, const void *, const void *, const void *,
                         bool, int64_t, int64_t, int64_t>;
  std::map<Key, std::optional<double>> gains;
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
  if (isFeatureMajor)
    return best;
  problem.xAlignment = 32; // The program's own, as in PropagateLayout.
  auto other =
      predictProduct(problem, ScheduleAttr(), /*xFeatureMajor=*/true, *target);
  if (!other)
    return best;
  // What the program computes can be computed in that layout.
  if (getCallersTensor(op.getX()))
    *other +=
        predictTranspose(cast<ShapedType>(op.getX().getType()), count, *target);
  return best ? std::min(*best, *other) : other;
}

/// The logarithm of how much faster `op` is when its weight is 2:4, on average
/// over the numbers of tokens: infinite where it has no other kernel, and none
/// where it has none then.
std::optional<double> SelectEmbedding::compare(MatmulOp op) const {
  double sum = 0;
  SmallVector<int64_t> counts = getTokenCounts(op);
  for (int64_t count : counts) {
    auto own = predictStored(op, op.getEncoding(), count);
    auto sparse =
        predictStored(op, replaceLevels(op.getEncoding(), kSparseCores), count);
    if (!sparse)
      return std::nullopt;
    sum += own ? std::log(*own / *sparse) : HUGE_VAL;
  }
  return sum / double(counts.size());
}

/// The same of all products of `weight`, as a factor.
std::optional<double> SelectEmbedding::getGain(const StoredWeight &weight) {
  double sum = 0;
  for (MatmulOp op : weight.products) {
    Epilogue epilogue = getEpilogue(op, /*dynamicExtent=*/1);
    Key key = {op.getEncoding().getAsOpaquePointer(),
               op.getX().getType().getAsOpaquePointer(),
               op.getInit().getType().getAsOpaquePointer(),
               op.getIndexingMaps().getAsOpaquePointer(),
               bool(getCallersTensor(op.getX())),
               getExpectedTokens(op, /*otherwise=*/0),
               epilogue.writtenBytes,
               epilogue.readBytes};
    auto [found, isNew] = gains.try_emplace(key);
    if (isNew)
      found->second = compare(op);
    if (!found->second)
      return std::nullopt;
    sum += *found->second;
  }
  return std::exp(sum / double(weight.products.size()));
}

/// Whether `op` has a schedule whose product takes its weight as 2:4, and not
/// as it is.
static bool needsTwoFour(MatmulOp op) {
  ScheduleAttr schedule = op.getScheduleAttr();
  ScopedDiagnosticHandler ignore(op.getContext(),
                                 [](Diagnostic &) { return success(); });
  auto takes = [&](EncodingAttr encoding) {
    return succeeded(schedule.getProduct().verifyProblem(
        [&] { return op.emitError(); }, schedule, encoding,
        getElementTypeOrSelf(op.getX())));
  };
  return schedule && !takes(op.getEncoding()) &&
         takes(replaceLevels(op.getEncoding(), kSparseCores));
}

/// Why `weight`, which sparse tensor cores would multiply as 2:4, stays as it
/// is; empty when it does not.
std::string SelectEmbedding::findObstacle(const StoredWeight &weight) {
  MatmulOp first = weight.products.front();
  if (storage == "canonical")
    return "sparse tensor cores read no canonical form";
  if (mode == "auto") {
    if (llvm::any_of(weight.products,
                     [](MatmulOp op) { return op.getScheduleAttr(); })) {
      // Of products that multiply 2:4 alone, the model's for such a weight.
      if (!llvm::all_of(weight.products, needsTwoFour))
        return "its schedule is for that";
    } else {
      std::optional<double> gain = getGain(weight);
      if (!gain)
        return "no schedule of 2:4 fits";
      if (*gain < kLeastGain)
        return llvm::formatv("2:4 is predicted to be {0:f2} times as fast",
                             *gain);
    }
  }
  SmallVector<DenseElementsAttr> constants = weight.findConstants();
  if (alwaysEmbeds(first.getEncoding(), kSparseCores) || constants.empty())
    return "";
  // The reason is a part of a remark, and no error.
  std::string reason;
  ScopedDiagnosticHandler collect(&getContext(), [&](Diagnostic &diagnostic) {
    reason = diagnostic.str();
    return success();
  });
  auto packed = repackConstant(constants[0], constants[1], first, kSparseCores,
                               [&] { return first.emitError(); });
  return succeeded(packed) ? "" : reason;
}

void SelectEmbedding::select(const StoredWeight &weight) {
  MatmulOp first = weight.products.front();
  EncodingAttr encoding = first.getEncoding();
  const SparsityLevel &level = encoding.getOuter();
  NMSparseDialect::EmbedAttrHelper embed(&getContext());
  if (first.getStorageAttr() || encoding.hasInnerLevel() ||
      level == kSparseCores || !multipliesOnSparseCores(first) ||
      ShapedType::isDynamic(first.getContractionSize()) ||
      llvm::any_of(weight.products,
                   [&](MatmulOp op) { return embed.isAttrPresent(op); }))
    return;
  // Of a pattern that need not be 2:4, only the data says whether it is.
  bool isConstant = !weight.findConstants().empty();
  bool mayEmbed = alwaysEmbeds(encoding, kSparseCores) ||
                  (encoding.getDensity() <= 0.5 && (isConstant || checked));
  if (!mayEmbed)
    return;
  std::string obstacle = findObstacle(weight);
  if (!obstacle.empty()) {
    first.emitRemark("keeps ") << encoding << " of its weight: " << obstacle;
    return;
  }
  for (MatmulOp op : weight.products)
    embed.setAttr(op, replaceLevels(op.getEncoding(), kSparseCores));
}

void SelectEmbedding::runOnOperation() {
  if (mode != "auto" && mode != "always" && mode != "never") {
    emitError(UnknownLoc::get(&getContext()))
        << "embed must be auto, always or never, got '" << mode << "'";
    return signalPassFailure();
  }
  target = findChip(chip, gpu);
  gains.clear();
  // An unknown chip is an error where schedules are chosen, and so is a number
  // of tokens that is not legal.
  if (!target || mode == "never" ||
      llvm::any_of(tokens, [](int64_t count) { return count < 1; }))
    return;
  for (const StoredWeight &weight : collectWeights(getOperation()))
    select(weight);
}
