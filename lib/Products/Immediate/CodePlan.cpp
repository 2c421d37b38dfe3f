//===- CodePlan.cpp - which code a constant weight becomes ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Warps that divide a panel take rows that follow each other, with as many
// instructions each as a whole row allows.
//
//===----------------------------------------------------------------------===//

#include "CodePlan.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// Instructions of a row, one of which reads it.
static int64_t countInstructions(const CodeRow &row) {
  return 1 + static_cast<int64_t>(row.elements.size());
}

void CodePlan::addPanel(const DenseWeight &weight, ArrayRef<int64_t> order,
                        int64_t first, int64_t count, int64_t shares) {
  CodeSection rows;
  int64_t all = 0;
  for (int64_t row : order) {
    CodeRow own{row, {}};
    for (int64_t output = 0; output < count; ++output)
      if (weight.getBits(row, first + output) != 0)
        own.elements.push_back({output, weight.get(row, first + output)});
    if (own.elements.empty())
      continue;
    all += countInstructions(own);
    rows.push_back(std::move(own));
  }
  size_t begin = sections.size();
  sections.resize(begin + shares);
  int64_t before = 0;
  for (CodeRow &row : rows) {
    // A row belongs to the share that its middle is in.
    int64_t size = countInstructions(row);
    int64_t share = (2 * before + size) * shares / (2 * all);
    before += size;
    sections[begin + share].push_back(std::move(row));
  }
}

CodePlan::CodePlan(const DenseWeight &weight, ArrayRef<int64_t> order,
                   int64_t panelOutputs, int64_t shares) {
  for (int64_t first = 0; first < weight.outputs; first += panelOutputs)
    addPanel(weight, order, first,
             std::min(panelOutputs, weight.outputs - first), shares);
}
