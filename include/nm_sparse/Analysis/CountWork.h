//===- CountWork.h - what a schedule does -----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Products count their work with these. CombineWork.h says how long it takes
// together.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_ANALYSIS_COUNTWORK_H
#define NM_SPARSE_ANALYSIS_COUNTWORK_H

#include "nm_sparse/Analysis/CombineWork.h"
#include "nm_sparse/Analysis/MatmulProblem.h"
#include "nm_sparse/Chip/Chip.h"

namespace mlir::nm_sparse {

/// Returns true if tiles of x keep a token in each row.
bool hasTokenRows(const MatmulProblem &problem, ScheduleAttr schedule);

/// Rows and columns of the x tile of one K step.
std::pair<int64_t, int64_t> getXTile(const MatmulProblem &problem,
                                     ScheduleAttr schedule);

/// CTAs of the whole product.
int64_t countCtas(const MatmulProblem &problem, ScheduleAttr schedule);

/// CTAs that an SM holds at a time, of threads with as many registers as tiles
/// of this size need.
int64_t getResidentCtas(ScheduleAttr schedule, int64_t sharedBytes,
                        const Chip &chip);

/// Bytes of the stored elements of the weight and of their places, or of the
/// code that they are in.
double countWeightBytes(const MatmulProblem &problem, ScheduleAttr schedule);

/// Bytes of a stored element of a weight, with its part of the bits of a
/// bitmap.
double getValueBytes(const MatmulProblem &problem);

/// The work that all products do: their grid, their results, what CTAs of one
/// tile exchange, and device memory. K steps are left to the product.
Work countWhole(const MatmulProblem &problem, ScheduleAttr schedule,
                int64_t resident, const Chip &chip);

/// The work of CTAs that copy tiles of both operands into shared memory. They
/// have so many flops, and their products read so many bytes of shared memory,
/// in a K step of one of them.
Work countTiles(const MatmulProblem &problem, ScheduleAttr schedule,
                const Chip &chip, double flops, double sharedReads);

/// Elements of x that threads copy one by one instead of 16 bytes at a time, of
/// so many in a K step; those that take longer count several times.
double countSingles(const MatmulProblem &problem, ScheduleAttr schedule,
                    double elements);

/// Tokens of a tile that the tensor memory accelerator copies: those that there
/// are, or where tokens are neighbours, whole lines of them.
int64_t countBulkTokens(const MatmulProblem &problem, int64_t tileTokens);

/// K steps of a CTA of a weight of bitmaps, and the tiles of it in each.
std::pair<double, int64_t> countBitmapSteps(const MatmulProblem &problem,
                                            ScheduleAttr schedule,
                                            int64_t rows);

/// Seconds in which the chip's L2 gives an SM its share of so many bytes.
inline double getL2Seconds(double bytes, const Chip &chip) {
  return bytes * double(chip.multiprocessors) / chip.l2Bytes;
}

/// Seconds in which the shared memory of an SM moves so many bytes.
inline double getSharedSeconds(double bytes, const Chip &chip) {
  return bytes / (128.0 * chip.clock);
}

/// Seconds of an SM for so many flops, at most `ceiling` of the chip.
inline double getMathSeconds(double flops, double ceiling, const Chip &chip) {
  return flops * double(chip.multiprocessors) / ceiling;
}

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_ANALYSIS_COUNTWORK_H
