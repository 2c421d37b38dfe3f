//===- CostModel.h - predicted time of a schedule ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A top-down model in the manner of NM-SpMM (arXiv 2503.01253): count what one
// CTA computes and moves in a K step, hold each against the measured ceiling of
// its resource, and take the slowest. It changes no IR.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_ANALYSIS_COSTMODEL_H
#define NM_SPARSE_ANALYSIS_COSTMODEL_H

#include "nm_sparse/Analysis/Chip.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"

namespace mlir::nm_sparse {

/// What the model needs to know of one matmul.
struct MatmulProblem {
  EncodingAttr encoding;
  int64_t batch;  ///< Products of this shape.
  int64_t tokens; ///< Rows of x; an estimate when they are dynamic.
  int64_t outputs;
  int64_t windows;
  int64_t elementBytes; ///< Of x and values.
  bool tensorCores;     ///< The element type can use mma.sync.
  bool xFeatureMajor;   ///< Consecutive tokens are neighbours in memory.
  bool yFeatureMajor;   ///< So are they in what is written in the end.
  bool yTransposable;   ///< Warps can transpose that as they write it.

  /// Gathered rows of x are copied 16 bytes at a time, be they rows of tokens
  /// or, of blocks that high, parts of a token.
  bool gathersWords() const {
    return xFeatureMajor || encoding.getBlockK() * elementBytes % 16 == 0;
  }

  static MatmulProblem get(MatmulOp op, int64_t dynamicTokens);
};

/// Bytes of shared memory that one CTA needs, with padding and ring.
int64_t getSharedBytes(const MatmulProblem &problem, ScheduleAttr schedule);

/// What a schedule does, counted, in seconds at the ceilings of the chip.
struct CostTerms {
  double waves;  ///< Times that each SM is filled with CTAs.
  double shares; ///< Those of them that CTAs share along the contraction.
  double steps;  ///< Of the K loop of one CTA.
  double hiding; ///< CTAs of an SM that hide each other's barriers.
  double stages;
  /// Boxes of a step that one thread issues, or producers gather in the time
  /// of, while no products run; else 1.
  double boxes;
  /// One step of the CTAs of an SM: products, bytes from L2, bytes to and from
  /// shared memory, elements that are copied one by one, and pieces of less
  /// than 64 bytes, which L2 delivers no faster than those.
  double math, l2, shared, narrow, pieces;
  /// Copies of 16 bytes that a thread makes in a step.
  double copies;
  /// The whole product: each byte of its operands and result once.
  double dram;
  /// The results of one wave.
  double write;
  /// The parts of tiles whose contraction is split, and how many of a tile.
  double exchange, parts;
  /// 1 where the launch overlaps with the end of the kernel before, else 0.
  double overlaps;
};

/// Predicted time of one schedule, in seconds, and what bounds it.
struct Prediction {
  double seconds;
  CostTerms terms;
  int64_t ctas;
  int64_t sharedBytes;
  /// Name of the resource that is busy longest.
  llvm::StringRef bound;
};

Prediction predict(const MatmulProblem &problem, ScheduleAttr schedule,
                   const Chip &chip);

/// Predicted time of the dense product of this shape in the vendor's library.
double predictDense(const MatmulProblem &problem, const Chip &chip);

/// Every schedule worth comparing that fits the chip, best first.
SmallVector<std::pair<ScheduleAttr, Prediction>>
rankSchedules(const MatmulProblem &problem, const Chip &chip);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_ANALYSIS_COSTMODEL_H
