//===- CandidateList.h - which schedules to measure -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_TUNER_CANDIDATELIST_H
#define NM_SPARSE_TUNER_CANDIDATELIST_H

#include "mlir/IR/MLIRContext.h"
#include "nm_sparse/Analysis/CostModel.h"
#include "nm_sparse/Tuner/Tunables.h"
#include "llvm/ADT/StringSet.h"

namespace mlir::nm_sparse {

/// The schedules of a product that are legal, best predicted ones first. Each
/// is handed out once.
class CandidateList {
public:
  /// An error is one of the compiler, or says that there are none.
  static llvm::Expected<std::unique_ptr<CandidateList>>
  create(const TunableProduct &product, const TuneTarget &target);

  /// The `count` schedules to begin with: the model's choice, its best ones,
  /// and the first of each family of kernels, for where the model is wrong
  /// about all of one.
  std::vector<std::string> takeFirst(size_t count);

  /// The `count` best predicted ones that differ from `best`, which was handed
  /// out, in one of its fields; of no field more than a third.
  std::vector<std::string> takeNeighbours(StringRef best, size_t count);

  size_t size() const { return ranked.size(); }

private:
  CandidateList() = default;
  void take(ScheduleAttr schedule, std::vector<std::string> &taken);

  std::unique_ptr<MLIRContext> context;
  SmallVector<Ranked> ranked;
  llvm::StringSet<> handedOut;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_TUNER_CANDIDATELIST_H
