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

/// The product of this problem. An error says why no program has it.
llvm::Expected<TunableProduct> makeTunable(const TunedProblem &problem,
                                           const Chip &chip);

/// What to run of a product, with inputs of `seed`.
RunRequest makeRequest(const TunableProduct &product, const Chip &chip,
                       uint64_t seed);

/// A product that is not tuned.
struct SkippedProduct {
  std::string name, reason;
};

/// Collects the products of programs. Those of one problem become one.
class TunableFinder {
public:
  /// Kernels are for the GPU `gpu`, and for these numbers of tokens, of which
  /// each is a problem of its own; without any, for those that programs for any
  /// number have kernels for.
  TunableFinder(const Chip &gpu, ArrayRef<int64_t> tokens)
      : chip(gpu), tokens(tokens) {}

  /// Adds the products of `program`, MLIR text. `label` is said before the
  /// names of its functions where it is not empty. An error is one of the
  /// compiler.
  llvm::Error add(StringRef program, StringRef label);

  ArrayRef<TunableProduct> getProducts() const { return products; }
  ArrayRef<SkippedProduct> getSkipped() const { return skipped; }

private:
  void add(const TunedProblem &problem, StringRef name);

  const Chip &chip;
  SmallVector<int64_t> tokens;
  std::vector<TunableProduct> products;
  std::vector<SkippedProduct> skipped;
  /// The products, or why there are none, by their problems.
  std::map<std::string, size_t> known;
  std::map<std::string, std::string> refused;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_TUNER_TUNABLES_H
