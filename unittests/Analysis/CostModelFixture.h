//===- CostModelFixture.h - products and schedules of a model ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_UNITTESTS_ANALYSIS_COSTMODELFIXTURE_H
#define NM_SPARSE_UNITTESTS_ANALYSIS_COSTMODELFIXTURE_H

#include "nm_sparse/Analysis/CostModel.h"
#include "nm_sparse/Analysis/ProductCost.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/MLIRContext.h"
#include "nm_sparse/Products/Registration.h"
#include "nm_sparse/Transfers/Registration.h"
#include "gtest/gtest.h"

namespace mlir::nm_sparse {

class CostModel : public ::testing::Test {
protected:
  CostModel() : context(getRegistry()) {
    context.loadDialect<NMSparseDialect, NMTileDialect>();
  }

  static DialectRegistry getRegistry() {
    DialectRegistry registry;
    registry.insert<NMSparseDialect, NMTileDialect>();
    registerTransfers(registry);
    registerProducts(registry);
    return registry;
  }

  EncodingAttr encoding(int64_t n, int64_t m, int64_t panel) {
    return EncodingAttr::get(&context, n, m, 1, panel, 0,
                             OutputOrder::Identity);
  }
  /// A schedule from its text, without `#nm_tile.schedule`.
  ScheduleAttr schedule(const std::string &text) {
    return cast<ScheduleAttr>(
        parseAttribute("#nm_tile.schedule<" + text + ">", &context));
  }
  /// A schedule of `product` with a tile of 64 tokens.
  ScheduleAttr schedule(const std::string &product, int64_t outputs,
                        int64_t rows) {
    return schedule("tile = [64, " + std::to_string(outputs) + ", " +
                    std::to_string(rows) + "], product = " + product +
                    "<warps = [2, 2]>, pipeline = async_groups<stages = 3>");
  }
  MatmulProblem problem(EncodingAttr encoding, int64_t tokens, bool f16) {
    MatmulProblem result = {encoding, 1,     tokens, 4096, 128, f16 ? 2 : 4,
                            f16,      false, false,  true, 32};
    if (!encoding.isFree())
      result.density = encoding.getDensity();
    return result;
  }

  Work count(const MatmulProblem &problem, ScheduleAttr schedule,
             const Chip &chip) {
    return getCost(schedule).countWork(problem, schedule, chip);
  }
  /// Returns true if one of the schedules that a tuner would measure, the first
  /// 12 of an H200, is as `isWanted` says.
  bool isRankedFirst(const MatmulProblem &problem,
                     function_ref<bool(ScheduleAttr)> isWanted) {
    auto ranked = rankSchedules(problem, *findChip("sm_90a", "h200"));
    return llvm::any_of(ArrayRef(ranked).take_front(12),
                        [&](auto &entry) { return isWanted(entry.first); });
  }

  MLIRContext context;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_UNITTESTS_ANALYSIS_COSTMODELFIXTURE_H
