//===- CombineTerms.h - the time that counted work takes --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The formula of the cost model, which knows neither MLIR nor schedules:
// bench/fit_model.py calls it through libnm_sparse_cost_model.so
// (CostModelC.h).
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_ANALYSIS_COMBINETERMS_H
#define NM_SPARSE_ANALYSIS_COMBINETERMS_H

#include "nm_sparse/Support/NamedField.h"
#include <initializer_list>

namespace mlir::nm_sparse {

/// The work of a schedule, counted, in seconds at the ceilings of the chip.
struct CostTerms {
  double waves;  ///< Times that each SM is filled with CTAs.
  double shares; ///< Those of them that CTAs share along the contraction.
  double steps;  ///< Steps of the K loop of one CTA.
  double hiding; ///< CTAs of an SM that hide each other's barriers.
  double stages;
  /// Boxes of a step that one thread issues, or producers gather in the time
  /// of, while no products run; else 1.
  double boxes;
  /// One step of the CTAs of an SM: products, bytes from L2 of what there is,
  /// bytes to and from shared memory, elements that are copied one by one, and
  /// pieces of less than 64 bytes, which L2 delivers no faster than those.
  double math, l2, shared, narrow, pieces;
  /// Copies of 16 bytes that a thread makes in a step.
  double copies;
  /// The whole product: each byte of its operands and result once, and of what
  /// is written alone.
  double dram, dramResults;
  /// Copies of parts of the index, of 16 bytes or of as many as lie together,
  /// that the CTAs of an SM make for a tile, be it at once or step by step.
  double index;
  /// The results of one wave: bytes written, bytes read beside them, the
  /// instructions of an epilogue, and accesses of less than 16 bytes to rows of
  /// a caller, counted.
  double write, init, apply, scattered;
  /// The parts of tiles whose contraction is split, and how many of a tile.
  double exchange, parts;
  /// 1 where the launch overlaps with the end of the kernel before, else 0.
  double overlaps;
  /// Kernels before the product's: bytes of activations that are transposed, or
  /// whose rows are copied to where they are aligned, read and written at the
  /// rate of device memory.
  double transposed, aligned;
};

/// Corrections of the counted work for one family of kernels.
struct FamilyCosts {
  /// Part of the chip's ceiling that its products reach in the K loop.
  double mathShare;
  /// Part of the bytes asked for that L2 serves: CTAs of a wave ask for the
  /// same rows at nearly the same time.
  double l2Share;
  /// The share of the overlapped work that still adds to the time.
  double shown;
  /// Seconds of the barriers of one K step, which other CTAs of the SM hide.
  double step;
  /// Seconds for which a thread is busy with one copy of 16 bytes.
  double copy;
  /// Seconds until copies arrive, which the ring has stages - 1 steps for.
  double latency;
  /// Seconds to fill the ring and to fetch the first index, once a tile.
  double tile;
  /// Part of the time in which the result is written that shows; more than 1
  /// where few warps write.
  double written;
  /// Seconds of a copy of a part of the index, which waits in threads of its
  /// own or before the first step.
  double index;
};

/// Costs outside of the K loops, equal in all families.
struct SharedCosts {
  /// Seconds from the end of the kernel before to the first copy.
  double launch;
  /// Seconds for one more CTA of a tile to hand over its part.
  double split;
  /// Seconds to exchange parts of tiles at the end of persistent CTAs, and to
  /// set their counters to zero.
  double stream;
  /// The factor by which L2 is slower than its rate if CTAs read operands at
  /// different places of the contraction.
  double apart;
  /// Seconds that a launch takes less if it overlaps with the kernel before.
  double overlap;
  /// Times as long as L2 takes at its rate to read what a result starts from:
  /// threads wait for it.
  double init;
  /// Times as long as the instructions of an epilogue take to issue.
  double apply;
  /// Seconds of an SM for one access of less than 16 bytes.
  double scattered;
  /// Seconds of a transposition and of a copy of rows before the product,
  /// beside those of their bytes: a launch, and a wait for its end.
  double transposition, rowCopy;
};

/// Seconds of overlapping work: the higher `norm` is, the better the longest
/// part hides the others.
double combineOverlapping(std::initializer_list<double> seconds, double norm);

/// The resource that is busy longest.
enum class Bound { Product, L2, SharedMemory, Copies, DRAM };

struct CombinedTime {
  double seconds;
  Bound bound;
};

CombinedTime combineTerms(const CostTerms &terms, const FamilyCosts &costs,
                          const SharedCosts &shared);

/// Seconds of the kernels before the product's, of `terms`.
double combineKernelsBefore(const CostTerms &terms, const SharedCosts &shared);

inline constexpr NamedField<CostTerms> costTermFields[] = {
    {"waves", &CostTerms::waves},
    {"shares", &CostTerms::shares},
    {"steps", &CostTerms::steps},
    {"hiding", &CostTerms::hiding},
    {"stages", &CostTerms::stages},
    {"boxes", &CostTerms::boxes},
    {"math", &CostTerms::math},
    {"l2", &CostTerms::l2},
    {"shared", &CostTerms::shared},
    {"narrow", &CostTerms::narrow},
    {"pieces", &CostTerms::pieces},
    {"copies", &CostTerms::copies},
    {"dram", &CostTerms::dram},
    {"index", &CostTerms::index},
    {"write", &CostTerms::write},
    {"init", &CostTerms::init},
    {"apply", &CostTerms::apply},
    {"scattered", &CostTerms::scattered},
    {"exchange", &CostTerms::exchange},
    {"parts", &CostTerms::parts},
    {"overlaps", &CostTerms::overlaps},
    {"transposed", &CostTerms::transposed},
    {"aligned", &CostTerms::aligned},
    {"dramResults", &CostTerms::dramResults}};
inline constexpr NamedField<FamilyCosts> familyCostFields[] = {
    {"mathShare", &FamilyCosts::mathShare}, {"l2Share", &FamilyCosts::l2Share},
    {"shown", &FamilyCosts::shown},         {"step", &FamilyCosts::step},
    {"copy", &FamilyCosts::copy},           {"latency", &FamilyCosts::latency},
    {"tile", &FamilyCosts::tile},           {"written", &FamilyCosts::written},
    {"index", &FamilyCosts::index}};
inline constexpr NamedField<SharedCosts> sharedCostFields[] = {
    {"launch", &SharedCosts::launch},
    {"split", &SharedCosts::split},
    {"stream", &SharedCosts::stream},
    {"apart", &SharedCosts::apart},
    {"overlap", &SharedCosts::overlap},
    {"init", &SharedCosts::init},
    {"apply", &SharedCosts::apply},
    {"scattered", &SharedCosts::scattered},
    {"transposition", &SharedCosts::transposition},
    {"rowCopy", &SharedCosts::rowCopy}};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_ANALYSIS_COMBINETERMS_H
