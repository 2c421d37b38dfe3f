//===- CombineWork.cpp - the time that counted work takes -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Analysis/CombineWork.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <iterator>

using namespace mlir::nm_sparse;

namespace {
/// The work of the CTAs of an SM that run at a time.
struct Waves {
  Waves(const Work &work, const ProductCosts &costs);

  double perSM;     ///< CTAs of an SM.
  double count;     ///< Times that it is filled with CTAs.
  double later = 0; ///< Those after the first.
  /// The part of the tiles that CTAs share along the contraction.
  double shared = 0;
};
} // namespace

Waves::Waves(const Work &work, const ProductCosts &costs)
    : perSM(
          std::min(work.resident, std::ceil(work.ctas / work.multiprocessors))),
      count(work.ctas / (work.multiprocessors * perSM)) {
  double whole = std::floor(count), rest = count - whole;
  if (work.streamK > 0 && count > 1) {
    shared = 1 - (whole - 1) / count;
    return;
  }
  if (rest > 0)
    count = whole + (whole > 0 ? costs.lastWave : 1.0) * (1 - rest) + rest;
  later = std::max(0.0, std::ceil(count) - 1);
}

/// Seconds of overlapping work: the higher `norm` is, the better the longest
/// part hides the others.
static double overlap(std::initializer_list<double> seconds, double norm) {
  double longest = std::max(seconds), sum = 0;
  if (longest <= 0)
    return 0;
  for (double part : seconds)
    sum += std::pow(part / longest, norm);
  return longest * std::pow(sum, 1.0 / norm);
}

/// One K step of the CTAs of an SM.
static CombinedTime combineStep(const Work &work, const ProductCosts &costs,
                                double perSM) {
  double clock = work.clock;
  double math =
      perSM * (work.math * costs.math + work.products * costs.product / clock);
  double issued = perSM * work.issued * costs.issue / clock;
  double chain = work.ownMath * costs.math +
                 (work.ownProducts * costs.begin + work.waits * costs.wait +
                  work.links * costs.link + costs.step) /
                     clock;
  // Where some SMs have no CTA, others get more of L2: twice their share at
  // most.
  double used =
      std::max(0.5, std::min(1.0, work.ctas / (work.multiprocessors * perSM)));
  double l2 = used * perSM *
              (work.x * costs.x + work.weight * costs.weight +
               work.zeros * costs.zeros);
  double pieces = perSM * work.pieces;
  double bytes = perSM * work.shared * costs.shared;
  double copies =
      (work.copies * costs.copy + perSM * work.singles * costs.single) / clock;
  // Copies have all stages but the one that is multiplied to arrive.
  double arrival = work.stages > 0
                       ? costs.latency / clock / std::max(1.0, work.stages - 1)
                       : 0.0;
  CombinedTime parts[] = {{math, Bound::Product},
                          {std::max(issued, chain), Bound::Product},
                          {std::max(l2, pieces), Bound::L2},
                          {bytes, Bound::SharedMemory},
                          {std::max(copies, arrival), Bound::Copies}};
  const CombinedTime &longest =
      *std::max_element(std::begin(parts), std::end(parts),
                        [](const CombinedTime &a, const CombinedTime &b) {
                          return a.seconds < b.seconds;
                        });
  return {overlap({math, issued, chain, l2, pieces, bytes, copies, arrival},
                  costs.stepNorm),
          longest.bound};
}

/// Device memory is read through ports, each for two SMs. Where some have more
/// CTAs than others, these end later, alone.
static double combineMemory(const Work &work, const ProductCosts &costs) {
  constexpr double portSMs = 2;
  double ofPort = work.ctas * portSMs / work.multiprocessors;
  double uneven = work.streamK > 0 ? 0 : std::ceil(ofPort) / ofPort - 1;
  return (work.dram * costs.dram + work.runs * costs.run) *
             (1 + costs.uneven * uneven) +
         work.again * costs.weight;
}

double mlir::nm_sparse::combineKernelsBefore(const Work &work,
                                             const SharedCosts &shared) {
  double seconds = 0;
  if (work.transposed > 0)
    seconds += shared.transposition / work.clock + work.transposed;
  if (work.aligned > 0)
    seconds += shared.rowCopy / work.clock + work.aligned;
  return seconds;
}

CombinedTime mlir::nm_sparse::combineWork(const Work &work,
                                          const ProductCosts &costs,
                                          const SharedCosts &shared) {
  double clock = work.clock;
  Waves waves(work, costs);
  CombinedTime step = combineStep(work, costs, waves.perSM);
  double tile =
      (work.steps + costs.fillSteps) * step.seconds +
      (costs.tile + work.sums * costs.sum +
       waves.perSM *
           (work.index * costs.index + work.scattered * shared.scattered)) /
          clock +
      waves.perSM * (work.written * costs.written + work.read * shared.read +
                     work.applied * shared.apply);
  double onChip = waves.count * tile * (1 + costs.apart * waves.shared) +
                  waves.later * costs.wave / clock;
  if (waves.shared > 0)
    onChip += costs.stream / clock;
  double memory = combineMemory(work, costs);
  double fixed = shared.launch - shared.overlap * work.overlaps;
  if (work.exchanged > 0)
    fixed += costs.split +
             work.parts * (costs.part + work.exchanged * costs.element);
  if (work.met > 0)
    fixed += shared.meet + shared.met * work.met;
  return {fixed / clock + overlap({onChip, memory}, costs.norm) +
              combineKernelsBefore(work, shared),
          memory > onChip ? Bound::DRAM : step.bound};
}
