//===- TokenClasses.h - which kernels serve which token counts --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Numbers alone: what each candidate takes for each number of tokens. A
// candidate is a function with the layouts and schedules that are chosen for
// one number.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_ANALYSIS_TOKENCLASSES_H
#define NM_SPARSE_ANALYSIS_TOKENCLASSES_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

namespace mlir::nm_sparse {

struct TokenCosts {
  /// Numbers of tokens, ascending.
  SmallVector<int64_t> tokens;
  /// For each candidate, what it costs for each of `tokens`: seconds, or
  /// whatever else candidates are compared by.
  SmallVector<SmallVector<double>> scores;

  /// The least of all candidates for `tokens[i]`.
  double getBest(size_t i) const;
};

/// Numbers of tokens at which candidates are held against each other. Times
/// change where tiles do, at multiples of 64.
SmallVector<int64_t> getTokenGrid();

/// Numbers of tokens to choose layouts and schedules for.
SmallVector<int64_t> getCandidateTokens();

/// The first of each set of candidates that cost the same everywhere.
SmallVector<unsigned> getDistinct(const TokenCosts &costs);

/// The fewest of `candidates` found, at most `most`, of which one is within
/// `tolerance` of the best for each number of tokens, or else as near to that
/// as can be. In the order of their numbers.
SmallVector<unsigned> chooseCandidates(const TokenCosts &costs,
                                       ArrayRef<unsigned> candidates,
                                       size_t most, double tolerance);

/// A range of numbers of tokens, which begins behind the previous one.
struct TokenRange {
  int64_t last;
  unsigned candidate;
};

/// The best of `chosen` for all tokens; larger numbers are in the last range. A
/// range goes on while its candidate is within `tolerance` of the best.
SmallVector<TokenRange> assignTokens(const TokenCosts &costs,
                                     ArrayRef<unsigned> chosen,
                                     double tolerance);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_ANALYSIS_TOKENCLASSES_H
