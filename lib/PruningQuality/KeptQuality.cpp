//===- KeptQuality.cpp - what a pattern keeps of a weight -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All in float64, one slab of whole panels at a time: the outputs of a panel
// share what is kept, and with it the matrix that their fit takes most time to
// factor.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/PruningQuality/KeptQuality.h"

#include "nm_sparse/Base/Convert.h"
#include "nm_sparse/Base/Error.h"
#include "nm_sparse/Base/Random.h"
#include "nm_sparse/Packing/Packing.h"
#include "nm_sparse/PruningQuality/Cholesky.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <random>

using namespace mlir;
using namespace mlir::nm_sparse;

/// Outputs of a slab, at least.
static constexpr int64_t kSlabOutputs = 256;

/// The number added to the diagonal of a matrix to solve, relative to the mean
/// of the whole diagonal: the least, and the most, where sums in narrow types
/// have made the matrix indefinite.
static constexpr double kLeastRidge = 1e-6, kMostRidge = 1e-1;

std::vector<int64_t> nm_sparse::drawOutputs(int64_t outputs, int64_t count) {
  std::vector<int64_t> drawn(outputs);
  std::iota(drawn.begin(), drawn.end(), 0);
  if (count >= outputs)
    return drawn;
  // In the standard library, only the generator is the same everywhere.
  std::mt19937_64 generator(0); // NOLINT(bugprone-random-generator-seed)
  for (int64_t i = 0; i < count; ++i)
    std::swap(drawn[i], drawn[i + generator() % (outputs - i)]);
  drawn.resize(count);
  llvm::sort(drawn);
  return drawn;
}

namespace {
class Measurement {
public:
  Measurement(const DenseWeight &weight, EncodingAttr encoding,
              const GramMatrix *gram)
      : weight(weight), encoding(encoding), gram(gram),
        scales(weight.inputs, 1.0) {
    if (gram)
      for (int64_t k = 0; k < weight.inputs; ++k)
        scales[k] = std::sqrt(gram->getRow(k)[k]);
  }

  llvm::Expected<KeptQuality> run(llvm::ArrayRef<int64_t> fitted);

private:
  using Support = std::vector<int64_t>;

  llvm::Error readSlab();
  llvm::Error prune();
  Support getSupport(int64_t row) const;
  llvm::Error fit(const Support &support, llvm::ArrayRef<int64_t> rows);
  bool factor(const Support &support, std::vector<double> &matrix);

  llvm::ArrayRef<double> getRow(llvm::ArrayRef<double> array,
                                int64_t row) const {
    return array.slice(row * weight.inputs, weight.inputs);
  }

  DenseWeight weight;
  EncodingAttr encoding;
  const GramMatrix *gram;
  std::vector<double>
      scales; ///< For each input, the square root of G's diagonal.
  // The range of the slab:
  int64_t first = 0, count = 0;
  std::vector<double> dense, scaled, pruned;
  // So far:
  double keptSquares = 0, allSquares = 0;
  double changedSquares = 0, outputSquares = 0;
  double ridge = kLeastRidge;
};
} // namespace

/// Fills `dense` and `scaled`.
llvm::Error Measurement::readSlab() {
  int64_t inputs = weight.inputs, width = nmsKindBytes(weight.kind);
  llvm::ArrayRef<char> bytes =
      weight.bytes.slice(first * inputs * width, count * inputs * width);
  // Doubles, for their alignment.
  std::vector<double> aligned(llvm::divideCeil(bytes.size(), sizeof(double)));
  std::memcpy(aligned.data(), bytes.data(), bytes.size());
  dense.resize(count * inputs);
  if (nmsToDouble(weight.kind, aligned.data(), dense.data(), count * inputs))
    return llvm::createStringError(nmsLastError());
  scaled.resize(dense.size());
  for (int64_t i = 0; i < count * inputs; ++i) {
    if (!std::isfinite(dense[i]))
      return llvm::createStringError(llvm::formatv(
          "output {0} has {1} at input {2}: legal are finite elements",
          first + i / inputs, dense[i], i % inputs));
    scaled[i] = dense[i] * scales[i % inputs];
  }
  return llvm::Error::success();
}

/// Fills `pruned`, and adds up squares.
llvm::Error Measurement::prune() {
  NmsPackSpec spec = {};
  spec.levelCount = int64_t(encoding.getLevels().size());
  for (auto [to, from] : llvm::zip(spec.levels, encoding.getLevels()))
    to = {from.n, from.m, from.blockK, from.blockN};
  spec.batch = 1;
  spec.k = weight.inputs;
  spec.outputs = count;
  spec.strideB = count * weight.inputs;
  spec.strideK = 1;
  spec.strideN = weight.inputs;
  spec.kind = NMS_F64;
  pruned.resize(scaled.size());
  if (nmsPrune(&spec, scaled.data(), pruned.data()))
    return llvm::createStringError(nmsLastError());
  for (auto [all, kept] : llvm::zip_equal(scaled, pruned)) {
    allSquares += all * all;
    keptSquares += kept * kept;
  }
  return llvm::Error::success();
}

/// The inputs of the blocks that output `row` of the slab keeps, of those in
/// which anything is left.
Measurement::Support Measurement::getSupport(int64_t row) const {
  const SparsityLevel &level = encoding.getInnermost();
  int64_t row0 = row / level.blockN * level.blockN;
  int64_t row1 = std::min(row0 + level.blockN, count);
  Support support;
  for (int64_t k0 = 0; k0 < weight.inputs; k0 += level.blockK) {
    int64_t k1 = std::min(k0 + level.blockK, weight.inputs);
    bool isKept = false;
    for (int64_t other = row0; other < row1 && !isKept; ++other)
      isKept = llvm::any_of(getRow(pruned, other).slice(k0, k1 - k0),
                            [](double element) { return element != 0; });
    for (int64_t k = k0; isKept && k < k1; ++k)
      support.push_back(k);
  }
  return support;
}

/// Makes U of the part of G that belongs to `support`, with as little ridge as
/// can be.
bool Measurement::factor(const Support &support, std::vector<double> &matrix) {
  auto size = int64_t(support.size());
  matrix.resize(size * size);
  double mean = gram->getMeanDiagonal();
  for (; ridge <= kMostRidge; ridge *= 10) {
    for (int64_t i = 0; i < size; ++i) {
      llvm::ArrayRef<double> from = gram->getRow(support[i]);
      for (int64_t j = i; j < size; ++j)
        matrix[i * size + j] = from[support[j]];
      matrix[i * size + i] += ridge * mean;
    }
    if (factorCholesky(matrix, size))
      return true;
  }
  return false;
}

/// Fits the outputs `rows` of the slab, which all keep `support`.
llvm::Error Measurement::fit(const Support &support,
                             llvm::ArrayRef<int64_t> rows) {
  std::vector<double> matrix;
  if (!factor(support, matrix))
    return llvm::createStringError(
        "the Gram matrix is not positive semidefinite: legal is X^T X");
  for (int64_t row : rows) {
    llvm::ArrayRef<double> target = getRow(dense, row);
    std::vector<double> kept;
    for (int64_t k : support)
      kept.push_back(dot(gram->getRow(k), target));
    solveCholesky(matrix, int64_t(support.size()), kept);
    std::vector<double> change(target);
    for (auto [k, element] : llvm::zip_equal(support, kept))
      change[k] -= element;
    changedSquares += gram->getSquare(change);
    outputSquares += gram->getSquare(target);
  }
  return llvm::Error::success();
}

static double divide(double part, double whole, double ofNothing) {
  return whole > 0 ? part / whole : ofNothing;
}

llvm::Expected<KeptQuality> Measurement::run(llvm::ArrayRef<int64_t> fitted) {
  int64_t panel = encoding.getBlockN();
  int64_t slab = llvm::divideCeilSigned(kSlabOutputs, panel) * panel;
  for (first = 0; first < weight.outputs; first += slab) {
    count = std::min(slab, weight.outputs - first);
    if (llvm::Error error = readSlab())
      return error;
    if (llvm::Error error = prune())
      return error;
    if (!gram)
      continue;
    std::map<Support, std::vector<int64_t>> groups;
    for (int64_t output : fitted)
      if (output >= first && output < first + count)
        groups[getSupport(output - first)].push_back(output - first);
    for (const auto &[support, rows] : groups)
      if (llvm::Error error = fit(support, rows))
        return error;
  }
  KeptQuality quality;
  quality.importance = divide(keptSquares, allSquares, 1);
  if (gram) {
    quality.outputError = std::sqrt(divide(changedSquares, outputSquares, 0));
    quality.ridge = ridge;
  } else {
    quality.outputError = std::sqrt(std::max(1 - quality.importance, 0.0));
  }
  return quality;
}

llvm::Expected<KeptQuality>
nm_sparse::measureKept(const DenseWeight &weight, EncodingAttr encoding,
                       const GramMatrix *gram, llvm::ArrayRef<int64_t> fitted) {
  return Measurement(weight, encoding, gram).run(fitted);
}
