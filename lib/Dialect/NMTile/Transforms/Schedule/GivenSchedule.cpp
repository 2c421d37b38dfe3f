//===- GivenSchedule.cpp - schedules that the model did not choose --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Analysis/CostModel.h"
#include "nm_sparse/Analysis/ProductCost.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "nm_sparse/Dialect/NMTile/Transforms/Transforms.h"

using namespace mlir;
using namespace mlir::nm_sparse;

LogicalResult nm_sparse::checkGivenSchedule(MatmulOp op,
                                            const MatmulProblem &problem,
                                            const Chip &target) {
  ScheduleAttr given = getSchedule(op);
  auto cost = dyn_cast<ProductCostInterface>(Attribute(given.getProduct()));
  if (cost && failed(cost.verifyChip([&] { return op.emitOpError(); }, problem,
                                     target)))
    return failure();
  int64_t bytes = getSharedBytes(problem, given);
  if (bytes > target.sharedBytes)
    return op.emitOpError("has a schedule that needs ")
           << bytes << " bytes of shared memory, " << target.name << " has "
           << target.sharedBytes << " for a CTA: " << given;
  if (given.getProducers() > 0 && !target.hasTryWait())
    return op.emitOpError("has a schedule with producers, which ")
           << target.name << " has no mbarrier waits for (sm_90 and newer "
           << "have): " << given;
  if (given.getClusterCTAs() > 1 && !target.hasClusters())
    return op.emitOpError("has a schedule with cluster = ")
           << given.getClusterCTAs() << ", but " << target.name
           << " has no clusters (sm_90 and newer have): " << given;
  if (given.splitsInCluster() && !target.hasClusters())
    return op.emitOpError("has a schedule with in_cluster = true, but ")
           << target.name
           << " has no clusters (sm_90 and newer have): " << given;
  return checkSchedule(op);
}
