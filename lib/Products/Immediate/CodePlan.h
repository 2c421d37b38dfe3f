//===- CodePlan.h - which code a constant weight becomes --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_PRODUCTS_IMMEDIATE_CODEPLAN_H
#define NM_SPARSE_LIB_PRODUCTS_IMMEDIATE_CODEPLAN_H

#include "nm_sparse/Dialect/NMSparse/Utils/ConstantWeight.h"

namespace mlir::nm_sparse {

/// A row of activations that is read once, and what it is multiplied by.
struct CodeRow {
  struct Element {
    int64_t output; ///< In its panel.
    float value;
  };

  int64_t row;
  SmallVector<Element> elements;
};

/// The rows that one warp multiplies, in order.
using CodeSection = SmallVector<CodeRow>;

/// The sections of all panels of so many outputs, each of which `shares` warps
/// divide: section `panel * shares + share`. Which elements belong to which
/// share, the weight alone says: sums are the same in every run. Rows come in
/// the given order.
class CodePlan {
public:
  CodePlan(const DenseWeight &weight, ArrayRef<int64_t> order,
           int64_t panelOutputs, int64_t shares);

  ArrayRef<CodeSection> getSections() const { return sections; }

private:
  void addPanel(const DenseWeight &weight, ArrayRef<int64_t> order,
                int64_t first, int64_t count, int64_t shares);

  SmallVector<CodeSection> sections;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_PRODUCTS_IMMEDIATE_CODEPLAN_H
