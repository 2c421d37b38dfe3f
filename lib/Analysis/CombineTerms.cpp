//===- CombineTerms.cpp - the time that counted work takes ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Analysis/CombineTerms.h"

#include <algorithm>
#include <cmath>
#include <iterator>

using namespace mlir::nm_sparse;

double mlir::nm_sparse::combineKernelsBefore(const CostTerms &terms,
                                             const SharedCosts &shared) {
  double seconds = 0;
  if (terms.transposed > 0)
    seconds += shared.transposition + terms.transposed;
  if (terms.aligned > 0)
    seconds += shared.rowCopy + terms.aligned;
  return seconds;
}

CombinedTime mlir::nm_sparse::combineTerms(const CostTerms &terms,
                                           const FamilyCosts &costs,
                                           const SharedCosts &shared) {
  double steps = terms.waves * terms.steps;
  CombinedTime onChip[] = {
      {steps * terms.math / costs.mathShare, Bound::Product},
      {steps * terms.l2 * costs.l2Share, Bound::L2},
      {steps * terms.pieces, Bound::L2},
      {steps * terms.shared, Bound::SharedMemory},
      {steps * terms.copies * costs.copy, Bound::Copies}};
  const CombinedTime &worst =
      *std::max_element(std::begin(onChip), std::end(onChip),
                        [](const CombinedTime &a, const CombinedTime &b) {
                          return a.seconds < b.seconds;
                        });
  // Results that are written when a tile is done are not behind its products.
  double written = terms.waves * costs.written * terms.write;
  double dram = terms.dram - std::min(terms.dramResults, written);
  double most = worst.seconds, busy = std::max(most, dram), sum = 0;
  for (const CombinedTime &resource : onChip)
    sum += resource.seconds;
  // DRAM is hidden behind the busiest of the others, or all of them behind
  // DRAM, in part: what takes longer.
  double byOthers = most + costs.shown * (sum - most),
         byDram = dram + costs.shown * sum;
  CombinedTime result = {std::max(byOthers, byDram),
                         byDram > byOthers ? Bound::DRAM : worst.bound};
  // Copies have stages - 1 steps to arrive.
  double exposed =
      steps * std::max(0.0, costs.latency / (terms.stages - 1) - busy / steps);
  result.seconds +=
      steps * (terms.boxes * costs.step / terms.hiding + terms.narrow) +
      exposed +
      terms.waves *
          (costs.tile + costs.index * terms.index + shared.init * terms.init +
           shared.apply * terms.apply + shared.scattered * terms.scattered) +
      written;
  // CTAs that are at the same place of the contraction share what L2 delivers;
  // those at different places do not.
  if (terms.shares > 0) {
    double whole = 1.0 - terms.shares / terms.waves;
    double apart = terms.shares * terms.steps * terms.l2 * shared.apart;
    if (result.seconds * whole + apart > result.seconds)
      result = {result.seconds * whole + apart, Bound::L2};
    result.seconds += shared.stream;
  }
  result.seconds += terms.exchange;
  if (terms.parts > 1)
    result.seconds += shared.split;
  result.seconds += shared.launch - shared.overlap * terms.overlaps +
                    combineKernelsBefore(terms, shared);
  return result;
}

double
mlir::nm_sparse::combineOverlapping(std::initializer_list<double> seconds,
                                    double norm) {
  double sum = 0;
  for (double part : seconds)
    sum += std::pow(part, norm);
  return std::pow(sum, 1.0 / norm);
}
