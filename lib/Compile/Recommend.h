//===- Recommend.h - which clocks for a program -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_COMPILE_RECOMMEND_H
#define NM_SPARSE_LIB_COMPILE_RECOMMEND_H

#include "Options.h"
#include "ProductClocks.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "nm_sparse/Energy/ClockModel.h"
#include "llvm/Support/JSON.h"

namespace mlir::nm_sparse {
struct Chip;

/// A sparse matmul, and the layer of a sweep that it is.
struct RecommendedProduct {
  std::string function, encoding, type, schedule;
  int64_t batch = 1, tokens = 0, outputs = 0, inputs = 0;
  const SweepLayer *layer = nullptr; ///< Null for none.
  /// None where the sweep has no such layer, and nothing that tells of others.
  std::optional<FittedKernel> fitted;
  ClockAdvice advice = {};

  bool hasOtherSchedule() const {
    return layer && !layer->schedule.empty() && layer->schedule != schedule;
  }
};

/// The predictions, as text for people and as JSON for programs.
void printRecommendation(const ClockModel &model,
                         ArrayRef<RecommendedProduct> products, double maxLoss,
                         llvm::raw_ostream &os);
llvm::json::Value toJSON(const ClockModel &model,
                         ArrayRef<RecommendedProduct> products, double maxLoss);

/// Does what --recommend asks for, with the products of `module` as the
/// schedule stage left it.
llvm::Error recommend(ModuleOp module, const CompileOptions &options);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_COMPILE_RECOMMEND_H
