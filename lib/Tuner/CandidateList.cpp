//===- CandidateList.cpp - which schedules to measure ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Tuner/CandidateList.h"

#include "LayoutStage.h"
#include "nm_sparse/Analysis/MatmulProblem.h"
#include "nm_sparse/Analysis/ProductCost.h"
#include "nm_sparse/Chip/Chip.h"
#include "nm_sparse/Dialect/NMTile/Utils/RowOrigin.h"
#include "llvm/Support/FormatVariadic.h"
#include <array>

using namespace mlir;
using namespace mlir::nm_sparse;

llvm::Expected<std::unique_ptr<CandidateList>>
CandidateList::create(const TunableProduct &product, const TuneTarget &target) {
  std::unique_ptr<CandidateList> list(new CandidateList());
  list->context = makeCompilerContext();
  int64_t tokens = product.problem.tokens;
  auto module = runToLayout(*list->context, product.program, target, tokens,
                            product.storage);
  if (!module)
    return module.takeError();
  (*module)->walk([&](MatmulOp op) {
    MatmulProblem problem = MatmulProblem::get(op, tokens);
    problem.canCopyInBulk = canCopyInBulk(op.getX());
    list->ranked = rankSchedules(problem, *target.chip, target.objective);
  });
  if (list->ranked.empty())
    return llvm::createStringError(
        llvm::formatv("no schedule is legal for {0} tokens on {1}", tokens,
                      target.chip->gpu));
  return std::move(list);
}

void CandidateList::take(ScheduleAttr schedule,
                         std::vector<std::string> &taken) {
  std::string text;
  llvm::raw_string_ostream(text) << schedule;
  if (handedOut.insert(text).second)
    taken.push_back(std::move(text));
}

std::vector<std::string> CandidateList::takeFirst(size_t count) {
  SmallVector<Ranked> distinct = takeDistinct(ranked, count, /*ofEach=*/true);
  size_t half = std::max<size_t>(1, count / 2);
  SmallVector<ScheduleAttr> order;
  for (const Ranked &one : ArrayRef(distinct).take_front(half))
    order.push_back(one.first);
  llvm::StringSet<> families;
  for (const auto &[schedule, prediction] : distinct)
    if (families.insert(getCost(schedule).getFamily(schedule)).second)
      order.push_back(schedule);
  for (const Ranked &one : distinct)
    order.push_back(one.first);
  std::vector<std::string> taken;
  for (ScheduleAttr schedule : order)
    if (taken.size() < count)
      take(schedule, taken);
  return taken;
}

/// The fields of a schedule that one may change alone.
static std::array<const void *, 7> getFields(ScheduleAttr schedule) {
  auto getExtent = [&](unsigned dim) {
    return reinterpret_cast<const void *>(schedule.getTile()[dim]);
  };
  return {getExtent(0),
          getExtent(1),
          getExtent(2),
          Attribute(schedule.getProduct()).getAsOpaquePointer(),
          Attribute(schedule.getTransfers()).getAsOpaquePointer(),
          Attribute(schedule.getPipeline()).getAsOpaquePointer(),
          Attribute(schedule.getGrid()).getAsOpaquePointer()};
}

std::vector<std::string> CandidateList::takeNeighbours(StringRef best,
                                                       size_t count) {
  ScheduleAttr centre;
  for (const auto &[schedule, prediction] : ranked) {
    std::string text;
    llvm::raw_string_ostream(text) << schedule;
    if (text == best)
      centre = schedule;
  }
  std::vector<std::string> taken;
  if (!centre)
    return taken;
  auto fields = getFields(centre);
  std::array<size_t, fields.size()> ofField = {};
  size_t most = std::max<size_t>(1, count / 3);
  for (const auto &[schedule, prediction] : ranked) {
    if (taken.size() == count)
      break;
    auto own = getFields(schedule);
    size_t changed = 0, field = 0;
    for (size_t i = 0; i < own.size(); ++i)
      if (own[i] != fields[i]) {
        ++changed;
        field = i;
      }
    if (changed != 1 || ofField[field] == most)
      continue;
    size_t before = taken.size();
    take(schedule, taken);
    ofField[field] += taken.size() - before;
  }
  return taken;
}
