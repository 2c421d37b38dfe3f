//===- DenseCost.cpp - predicted time of a dense product ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Analysis/CostModel.h"
#include "nm_sparse/Analysis/CostTable.h"

#include <numeric>

using namespace mlir;
using namespace mlir::nm_sparse;

/// Elements of 8 bits are multiplied on tensor cores, too.
static bool isOnTensorCores(const MatmulProblem &problem) {
  return problem.tensorCores || problem.elementBytes == 1;
}

DenseWork nm_sparse::countDenseWork(const MatmulProblem &problem,
                                    const Chip &chip) {
  bool onCores = isOnTensorCores(problem);
  int64_t rows = problem.getDenseRows();
  // One of x's rows, of the weight's, and of the result's is as long as these.
  int64_t alignment = std::gcd(
      std::gcd(rows, problem.outputs) * problem.elementBytes, int64_t(16));
  DenseWork work;
  work.batch = double(problem.batch);
  work.tokens = double(problem.tokens);
  work.outputs = double(problem.outputs);
  work.rows = double(rows);
  work.multiprocessors = double(chip.multiprocessors);
  // Elements of 8 bits are twice as fast, by their nominal rate.
  work.flops = onCores ? chip.dense * (problem.elementBytes == 1 ? 2 : 1)
                       : chip.denseFFMA;
  double x = work.tokens * work.rows * problem.patchShare.value_or(1);
  work.dram = double(problem.elementBytes) *
              (x + work.rows * work.outputs + work.tokens * work.outputs) /
              chip.dramBytes;
  work.results = 4.0 * work.tokens * work.outputs / chip.dramBytes;
  work.unaligned = onCores && alignment < 16;
  work.odd = onCores && alignment < 4;
  // Elements are loaded one by one.
  work.vector = problem.tokens == 1 && (work.unaligned > 0 || !onCores);
  return work;
}

double nm_sparse::predictDense(const MatmulProblem &problem, const Chip &chip) {
  return combineDense(countDenseWork(problem, chip),
                      getDenseCosts(isOnTensorCores(problem), chip));
}
