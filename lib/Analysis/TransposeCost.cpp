//===- TransposeCost.cpp - predicted time of a transposition --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Analysis/TransposeCost.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// The linalg op that alone consumes `value`, or null.
static linalg::LinalgOp getOnlyConsumer(Value value) {
  llvm::SmallSetVector<Operation *, 2> users;
  for (Operation *user : value.getUsers())
    if (!isa<tensor::DimOp>(user))
      users.insert(user);
  return users.size() == 1 ? dyn_cast<linalg::LinalgOp>(users.front())
                           : linalg::LinalgOp();
}

bool nm_sparse::isWrittenFeatureMajor(MatmulOp op) {
  Value value = op.getResult();
  AffineExpr token = getAffineDimExpr(op.getTokenLoop(), op.getContext());
  std::optional<unsigned> dim = op.getResultMap().getResultPosition(token);
  while (linalg::LinalgOp consumer = getOnlyConsumer(value)) {
    OpOperand *read = nullptr;
    for (OpOperand *input : consumer.getDpsInputOperands())
      if (input->get() == value)
        read = input;
    if (!read || consumer->getNumResults() != 1)
      break;
    AffineExpr loop = consumer.getMatchingIndexingMap(read).getResult(*dim);
    AffineMap written =
        consumer.getIndexingMapMatchingResult(consumer->getResult(0));
    auto position = written.getResultPosition(loop);
    if (!position)
      break;
    dim = position;
    value = consumer->getResult(0);
  }
  return *dim + 1 == cast<ShapedType>(value.getType()).getRank();
}

double nm_sparse::predictTranspose(ShapedType type, int64_t dynamicExtent,
                                   const Chip &chip) {
  // A launch beside the product's, and blocks of 8 x 8 elements whose accesses
  // are whole sectors on both sides: 85 % of what a plain copy reaches.
  constexpr double launch = 3e-6, share = 0.85;
  double bytes = type.getElementTypeBitWidth() / 8.0;
  for (int64_t extent : type.getShape())
    bytes *= double(ShapedType::isDynamic(extent) ? dynamicExtent : extent);
  return launch + 2.0 * bytes / (share * chip.dramBytes);
}

std::optional<double> nm_sparse::predictProduct(MatmulProblem problem,
                                                ScheduleAttr given,
                                                bool xFeatureMajor,
                                                const Chip &chip) {
  problem.xFeatureMajor = xFeatureMajor;
  if (given)
    return predict(problem, given, chip).seconds;
  auto ranked = rankSchedules(problem, chip);
  if (ranked.empty())
    return std::nullopt;
  return ranked.front().second.seconds;
}
