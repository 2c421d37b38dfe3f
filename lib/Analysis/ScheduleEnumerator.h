//===- ScheduleEnumerator.h - schedules of one tile -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For a tile and the warps over it, which ScheduleCandidates.cpp proposes, all
// that the later stages can lower and that is not known to lose.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_ANALYSIS_SCHEDULEENUMERATOR_H
#define NM_SPARSE_LIB_ANALYSIS_SCHEDULEENUMERATOR_H

#include "nm_sparse/Analysis/CostModel.h"

namespace mlir::nm_sparse {

class ScheduleEnumerator {
public:
  /// A CTA tile and the warps over it.
  struct Shape {
    int64_t tokens, outputs, warpsTokens, warpsOutputs;
  };

  /// Who copies.
  struct Role {
    int64_t producers;
    bool persistent;
  };

  struct Modes {
    OperandMode operands;
    IndexMode index;
  };

  ScheduleEnumerator(const MatmulProblem &problem, const Chip &chip)
      : problem(problem), chip(chip), encoding(problem.encoding) {}

  SmallVector<std::pair<ScheduleAttr, Prediction>> ranked;

protected:
  /// Windows of a K step that make `low` to `high` kept rows.
  SmallVector<int64_t> getWindows(int64_t low, int64_t high) const;
  void addShape(ScheduleKind kind, Shape shape, Role role,
                ArrayRef<int64_t> windows, ArrayRef<Modes> modes,
                ArrayRef<int64_t> ring = {4, 3, 2});

  const MatmulProblem &problem;
  const Chip &chip;
  EncodingAttr encoding;

private:
  void add(ScheduleKind kind, Shape shape, Role role, int64_t windows,
           int64_t stages, int64_t splitK, Modes modes);
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_ANALYSIS_SCHEDULEENUMERATOR_H
