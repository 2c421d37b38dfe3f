//===- Advice.h - which pattern for a layer ---------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_COMPILE_ADVICE_H
#define NM_SPARSE_LIB_COMPILE_ADVICE_H

#include "Options.h"
#include "nm_sparse/Checkpoint/LinearLayers.h"
#include "nm_sparse/Energy/CombineEnergy.h"
#include "nm_sparse/PruningQuality/KeptQuality.h"
#include "nm_sparse/Tuning/MeasuredTime.h"
#include "llvm/Support/JSON.h"

namespace mlir::nm_sparse {
struct Chip;

/// The time of a pattern for some tokens, or why nothing multiplies by it.
struct PatternTime {
  int64_t tokens;
  double seconds = 0;
  /// In a loop; none where nobody measured the energy of the GPU.
  std::optional<CombinedEnergy> energy = {};
  std::string product = {}, bound = {};
  std::string before =
      {}; ///< The work of a kernel before the product; mostly empty.
  std::string schedule = {};
  std::string error = {};
  /// The time of a tuning database, if the schedule is from there.
  std::optional<MeasuredTime> measured = {};
  bool isFastest = false;
  /// No other pattern is at least as good in time and in what it keeps, and
  /// better in one of them.
  bool isBest = false;

  bool isCompiled() const { return error.empty(); }
  /// What is known best: what was measured, or else what is predicted.
  double getSeconds() const { return measured ? measured->seconds : seconds; }
};

/// A pattern and one way to store a weight that has it.
struct PatternAdvice {
  std::string pattern;
  EncodingAttr encoding; ///< Null: dense.
  std::string storage;
  EncodingAttr embedded; ///< Another pattern that it is stored by; else null.
  double density = 1;
  int64_t bytes = 0;
  std::vector<PatternTime> times;
  std::optional<KeptQuality> kept; ///< Set if there is a weight.

  bool isDense() const { return !encoding; }
};

struct Advice {
  LayerShape shape;
  std::string weight; ///< Its name; empty where there is none.
  const Chip *chip;
  std::vector<int64_t> tokens;
  std::vector<PatternAdvice> patterns; ///< The dense one first.
  /// The outputs that the error is of; none where there is no Gram matrix, and
  /// it is of all.
  std::vector<int64_t> fitted;
  bool hasGram = false;
};

/// Runs the stages of the compiler up to the choice of schedules, for each
/// number of `options.tokens` and each storage that they choose.
std::vector<PatternAdvice> predictPattern(const LayerShape &shape,
                                          EncodingAttr encoding,
                                          const GPUPipelineOptions &options);

/// The vendor's dense product.
PatternAdvice predictDense(MLIRContext &context, const LayerShape &shape,
                           ArrayRef<int64_t> tokens, const Chip &chip);

/// A table for each number of tokens, the fastest pattern first.
void printAdvice(const Advice &advice, llvm::raw_ostream &os);
llvm::json::Value toJSON(const Advice &advice);

/// Does what --advise asks for.
llvm::Error advise(MLIRContext &context, const CompileOptions &options);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_COMPILE_ADVICE_H
