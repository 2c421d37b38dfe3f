//===- Tunables.h - the products of programs that can be tuned --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_TUNER_TUNABLES_H
#define NM_SPARSE_TUNER_TUNABLES_H

#include "nm_sparse/Execution/Request/RunRequest.h"
#include "nm_sparse/Tuning/TuningDatabase.h"
#include <map>
#include <vector>

namespace mlir::nm_sparse {

/// A product, and a program that has no other one.
struct TunableProduct {
  TunedProblem problem;
  /// MLIR text: a function @product that takes activations of any number of
  /// tokens, the weight, and what is added, if anything is. Its product has
  /// this problem when it is compiled for the problem's number of tokens, with
  /// `storage`.
  std::string program;
  std::string storage; ///< As the pipelines' option has it.
  /// The functions of programs, or the layers, that have the problem.
  std::vector<std::string> names;
};

/// The GPU that programs are compiled for, and what choices are compared by.
struct TuneTarget {
  const Chip *chip;
  Objective objective = Objective::Time;
};

/// The product of this problem. An error says why no program has it.
llvm::Expected<TunableProduct> makeTunable(const TunedProblem &problem,
                                           const TuneTarget &target);

/// The run of a product, with inputs of `seed`.
RunRequest makeRequest(const TunableProduct &product, const TuneTarget &target,
                       uint64_t seed);

/// A product that is not tuned.
struct SkippedProduct {
  std::string name, reason;
};

/// A program whose products are to be tuned.
struct TunableSource {
  std::string program; ///< MLIR text.
  /// Said before the names of its functions where it is not empty.
  std::string label;
  /// Weights are in the form that suits any number of tokens, as layers of
  /// models have them, else in that which suits the given numbers.
  bool isOfModel;
};

/// Collects the products of programs. Those of one problem become one.
class TunableFinder {
public:
  /// Kernels are for `target` and for these numbers of tokens, of which each is
  /// a problem of its own; without any, for those that programs for any number
  /// have kernels for.
  TunableFinder(const TuneTarget &target, ArrayRef<int64_t> tokens);

  /// Adds the products of programs, which are compiled side by side. Returns
  /// what the compiler says against each program; empty where nothing.
  std::vector<std::string> add(ArrayRef<TunableSource> sources);
  /// Adds one that is not tuned.
  void skip(std::string name, std::string reason) {
    skipped.push_back({std::move(name), std::move(reason)});
  }

  ArrayRef<TunableProduct> getProducts() const { return products; }
  ArrayRef<SkippedProduct> getSkipped() const { return skipped; }

private:
  void add(const TunedProblem &problem, std::string name);

  TuneTarget target;
  SmallVector<int64_t> tokens; ///< Ascending, each once.
  std::vector<TunableProduct> products;
  std::vector<SkippedProduct> skipped;
  /// The products, or why there are none, by their problems.
  std::map<std::string, size_t> known;
  std::map<std::string, std::string> refused;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_TUNER_TUNABLES_H
