//===- LeastSquares.cpp - fits with coefficients of one sign --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Energy/LeastSquares.h"

#include <algorithm>
#include <cmath>
#include <utility>

using namespace mlir::nm_sparse;

namespace {

/// The normal equations of columns that are scaled to length 1.
struct Normal {
  size_t n;
  std::vector<double> gram, right, scale;

  Normal(const std::vector<double> &rows, size_t columns,
         const std::vector<double> &wanted)
      : n(columns), gram(columns * columns), right(columns), scale(columns) {
    for (size_t r = 0; r < wanted.size(); ++r)
      for (size_t i = 0; i < n; ++i) {
        double value = rows[r * n + i];
        right[i] += value * wanted[r];
        for (size_t j = 0; j < n; ++j)
          gram[i * n + j] += value * rows[r * n + j];
      }
    for (size_t i = 0; i < n; ++i)
      scale[i] = gram[i * n + i] > 0 ? std::sqrt(gram[i * n + i]) : 0;
    for (size_t i = 0; i < n; ++i) {
      right[i] = scale[i] > 0 ? right[i] / scale[i] : 0;
      for (size_t j = 0; j < n; ++j)
        if (scale[i] > 0 && scale[j] > 0)
          gram[i * n + j] /= scale[i] * scale[j];
    }
  }

  /// How fast the error falls with each coefficient.
  double getGradient(size_t i, const std::vector<double> &x) const {
    double sum = right[i];
    for (size_t j = 0; j < n; ++j)
      sum -= gram[i * n + j] * x[j];
    return sum;
  }

  /// The solution of the equations of `set` alone; false where they have none.
  bool solve(const std::vector<size_t> &set, std::vector<double> &x) const {
    size_t m = set.size();
    std::vector<double> a(m * (m + 1));
    for (size_t i = 0; i < m; ++i) {
      for (size_t j = 0; j < m; ++j)
        a[i * (m + 1) + j] = gram[set[i] * n + set[j]];
      a[i * (m + 1) + m] = right[set[i]];
    }
    for (size_t k = 0; k < m; ++k) {
      double *pivot = &a[k * (m + 1)];
      // The matrix is positive definite, so that no rows are exchanged.
      if (!(pivot[k] > 1e-12))
        return false;
      for (size_t i = 0; i < m; ++i) {
        double factor = a[i * (m + 1) + k] / pivot[k];
        for (size_t j = k; j <= m && i != k; ++j)
          a[i * (m + 1) + j] -= factor * pivot[j];
      }
    }
    x.assign(n, 0);
    for (size_t i = 0; i < m; ++i)
      x[set[i]] = a[i * (m + 1) + m] / a[i * (m + 1) + i];
    return true;
  }
};

} // namespace

/// Moves from `x` towards `wanted` until the first coefficient is 0, and takes
/// those that are out of `set`.
static void retreat(std::vector<double> &x, const std::vector<double> &wanted,
                    std::vector<size_t> &set) {
  double step = 1;
  for (size_t i : set)
    if (wanted[i] <= 0)
      step = std::min(step, x[i] / (x[i] - wanted[i]));
  for (size_t i : set) {
    x[i] += step * (wanted[i] - x[i]);
    if (wanted[i] <= 0 && x[i] < 1e-15)
      x[i] = 0;
  }
  set.erase(std::remove_if(set.begin(), set.end(),
                           [&](size_t i) { return x[i] <= 0; }),
            set.end());
}

std::vector<double>
mlir::nm_sparse::solveNonNegative(const std::vector<double> &rows,
                                  size_t columns,
                                  const std::vector<double> &wanted) {
  Normal normal(rows, columns, wanted);
  std::vector<double> x(columns), candidate;
  std::vector<size_t> set;
  std::vector<bool> isUseless(columns);
  double most = 0;
  for (double value : normal.right)
    most = std::max(most, std::fabs(value));
  while (set.size() < columns) {
    size_t best = columns;
    double gradient = 1e-10 * most;
    for (size_t i = 0; i < columns; ++i)
      if (!isUseless[i] && std::find(set.begin(), set.end(), i) == set.end() &&
          normal.getGradient(i, x) > gradient) {
        gradient = normal.getGradient(i, x);
        best = i;
      }
    if (best == columns)
      break;
    set.push_back(best);
    if (!normal.solve(set, candidate) || candidate[best] <= 0) {
      // It says what others say.
      set.pop_back();
      isUseless[best] = true;
      continue;
    }
    while (std::any_of(set.begin(), set.end(),
                       [&](size_t i) { return candidate[i] <= 0; })) {
      retreat(x, candidate, set);
      if (!normal.solve(set, candidate))
        break;
    }
    x = candidate;
  }
  for (size_t i = 0; i < columns; ++i)
    x[i] = normal.scale[i] > 0 ? x[i] / normal.scale[i] : 0;
  return x;
}
