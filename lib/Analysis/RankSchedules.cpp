//===- RankSchedules.cpp - the schedules that are compared ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Analysis/ProductCost.h"
#include "nm_sparse/Analysis/ScheduleEnumerator.h"
#include <map>
#include <set>
#include <tuple>

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {
/// Holds the functions that propose schedules, in the order of registration.
struct ScheduleProposers : public DialectInterface::Base<ScheduleProposers> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ScheduleProposers)

  explicit ScheduleProposers(Dialect *dialect) : Base(dialect) {}

  SmallVector<ScheduleProposer> list;
};
} // namespace

void nm_sparse::addScheduleProposer(NMTileDialect &dialect,
                                    ScheduleProposer proposer) {
  if (!dialect.getRegisteredInterface<ScheduleProposers>())
    dialect.addInterfaces<ScheduleProposers>();
  dialect.getRegisteredInterface<ScheduleProposers>()->list.push_back(proposer);
}

SmallVector<Ranked> nm_sparse::rankSchedules(const MatmulProblem &problem,
                                             const Chip &chip,
                                             Objective objective) {
  ScheduleEnumerator enumerator(problem, chip);
  MLIRContext *context = problem.encoding.getContext();
  auto *dialect = context->getLoadedDialect<NMTileDialect>();
  assert(dialect && "whoever ranks schedules loads the dialect that has them");
  if (auto *proposers = dialect->getRegisteredInterface<ScheduleProposers>())
    for (ScheduleProposer propose : proposers->list)
      propose(enumerator);
  auto &ranked = enumerator.ranked;
  if (!problem.canCopyInBulk)
    llvm::erase_if(
        ranked, [](const auto &candidate) { return candidate.first.isBulk(); });
  // Among equals the deepest ring, and then the order of consideration.
  SmallVector<unsigned> order =
      llvm::to_vector(llvm::seq<unsigned>(0, ranked.size()));
  auto key = [&](unsigned i) {
    return std::make_tuple(getScore(ranked[i].second, objective),
                           -ranked[i].first.getStages(), i);
  };
  llvm::sort(order, [&](unsigned a, unsigned b) { return key(a) < key(b); });
  SmallVector<Ranked> sorted;
  for (unsigned i : order)
    sorted.push_back(ranked[i]);
  return sorted;
}

SmallVector<Ranked> nm_sparse::takeDistinct(ArrayRef<Ranked> ranked,
                                            size_t count, bool ofEach) {
  // Without its ring and the place of its index.
  auto getKey = [](ScheduleAttr schedule) {
    return std::make_tuple(
        schedule.getTile().vec(),
        Attribute(schedule.getProduct()).getAsOpaquePointer(),
        Attribute(schedule.getGrid()).getAsOpaquePointer(),
        schedule.getProducers(), schedule.hasBulkValues(), schedule.gathersX());
  };
  std::set<decltype(getKey(ScheduleAttr()))> seen;
  std::map<StringRef, size_t> taken;
  SmallVector<Ranked> chosen;
  for (const auto &[schedule, prediction] : ranked) {
    size_t &number =
        taken[ofEach ? getCost(schedule).getFamily(schedule) : StringRef()];
    if (number == count)
      continue;
    if (!seen.insert(getKey(schedule)).second)
      continue;
    chosen.emplace_back(schedule, prediction);
    ++number;
  }
  return chosen;
}
