//===- AgreeSchedules.cpp - schedules that can share a launch -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Query is wider than key and value, so that other numbers of warps are best
// for it, by a few percent. One launch takes one size of CTA, and a launch less
// is worth more. Only products that read global memory themselves are meant:
// others are not launched together (--nm-sparse-merge-launches).
//
//===----------------------------------------------------------------------===//

#include "AgreeSchedules.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "nm_sparse/Analysis/EnergyModel.h"
#include "nm_sparse/Analysis/Objective.h"
#include "nm_sparse/Energy/EnergyCosts.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// Seconds that a launch less is worth: not quite the 2.7e-6 and 3.4e-6 that a
/// launch takes in the fits of products that read memory themselves.
static constexpr double kSharedLaunch = 2.5e-6;

namespace {

/// The properties in which schedules that share a launch agree: the product,
/// the warps of a CTA, and the tokens of a tile, by which the grid is divided.
using Shape = std::tuple<StringRef, int64_t, int64_t>;

} // namespace

static Shape getShape(ScheduleAttr schedule) {
  return {schedule.getProduct().getProductName(),
          schedule.getProduct().getNumWarps(), schedule.getTileTokens()};
}

/// Products that read global memory themselves, weights included.
static bool mayShare(ScheduleAttr schedule) {
  return schedule.isDirect() && !schedule.getOperandTiles().isInCode();
}

/// The users of the result of `op` up to other products, `op` included.
static SetVector<Operation *> findUsers(MatmulOp op) {
  ForwardSliceOptions options;
  options.inclusive = true;
  options.filter = [&](Operation *user) {
    return user == op || !isa<MatmulOp>(user);
  };
  SetVector<Operation *> users;
  getForwardSlice(op.getOperation(), &users, options);
  users.remove_if(
      [](Operation *user) { return user->hasTrait<OpTrait::IsTerminator>(); });
  return users;
}

/// Returns true if one waits for the other, or an operation that may become
/// part of either kernel uses both.
static bool areDependent(const SetVector<Operation *> &users, MatmulOp other) {
  return llvm::any_of(findUsers(other),
                      [&](Operation *user) { return users.contains(user); }) ||
         llvm::any_of(other->getOperands(), [&](Value operand) {
           return users.contains(operand.getDefiningOp());
         });
}

/// Schedules of one shape for all of `products`, if they are worth a launch.
static void agree(ArrayRef<const RankedProduct *> products, Objective objective,
                  const Chip &chip) {
  llvm::MapVector<Shape, std::pair<size_t, Prediction>> shapes;
  llvm::SmallSet<Shape, 4> own;
  Prediction best{};
  auto findBest = [](const RankedProduct &product, Shape shape) {
    return llvm::find_if(product.ranked, [&](const auto &candidate) {
      return mayShare(candidate.first) && getShape(candidate.first) == shape;
    });
  };
  for (const RankedProduct *product : products) {
    add(best, product->ranked.front().second);
    own.insert(getShape(product->ranked.front().first));
    llvm::SmallSet<Shape, 16> seen;
    for (const auto &[schedule, prediction] : product->ranked)
      if (mayShare(schedule) && seen.insert(getShape(schedule)).second) {
        auto &[count, sum] = shapes[getShape(schedule)];
        ++count;
        add(sum, prediction);
      }
  }
  const Shape *chosen = nullptr;
  double launches = kSharedLaunch * double(own.size() - 1);
  best.seconds += launches;
  best.sustained += launches;
  if (const EnergyCosts *costs = findEnergyCosts(chip))
    best.joules += costs->idle * launches;
  double least = getScore(best, objective);
  for (const auto &[shape, sum] : shapes)
    if (sum.first == products.size() &&
        getScore(sum.second, objective) < least) {
      least = getScore(sum.second, objective);
      chosen = &shape;
    }
  if (!chosen || own.size() == 1)
    return;
  for (const RankedProduct *product : products)
    MatmulOp(product->op).setConfigAttr(findBest(*product, *chosen)->first);
}

void nm_sparse::agreeOnSchedules(ArrayRef<RankedProduct> products,
                                 Objective objective, const Chip &chip) {
  llvm::MapVector<std::pair<Block *, Value>, SmallVector<const RankedProduct *>>
      byActivations;
  for (const RankedProduct &product : products) {
    MatmulOp op = product.op;
    if (mayShare(product.ranked.front().first))
      byActivations[{op->getBlock(), op.getX()}].push_back(&product);
  }
  for (auto &[key, alike] : byActivations) {
    if (alike.size() == 1)
      continue;
    SmallVector<const RankedProduct *> independent;
    SetVector<Operation *> users;
    for (const RankedProduct *product : alike) {
      if (areDependent(users, product->op))
        continue;
      users.insert_range(findUsers(product->op));
      independent.push_back(product);
    }
    agree(independent, objective, chip);
  }
}
