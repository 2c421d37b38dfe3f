//===- Cholesky.cpp - solve positive definite systems ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All inner loops subtract multiples of rows from a row, which compilers
// vectorize without a change of the order of any sum.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/PruningQuality/Cholesky.h"

#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Parallel.h"
#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace mlir::nm_sparse;

/// Rows that are factored before the rest sees them; a multiple of 4.
static constexpr int64_t kBlock = 64;
/// Columns of that many rows that stay in a near cache, and rows of a task.
static constexpr int64_t kTileColumns = 256, kTaskRows = 32;

/// Factors the rows `first` to `last`, and what of them lies right of these.
static bool factorRows(double *a, int64_t n, int64_t first, int64_t last) {
  for (int64_t k = first; k < last; ++k) {
    double *pivot = a + k * n;
    if (!(pivot[k] > 0) || !std::isfinite(pivot[k]))
      return false;
    double scale = 1 / std::sqrt(pivot[k]);
    for (int64_t j = k; j < n; ++j)
      pivot[j] *= scale;
    for (int64_t i = k + 1; i < last; ++i) {
      double *row = a + i * n, factor = pivot[i];
      for (int64_t j = i; j < n; ++j)
        row[j] -= factor * pivot[j];
    }
  }
  return true;
}

/// Takes what `factored`, kBlock rows of U, make of the columns `begin` to
/// `end` of row i from that row.
static void updateRow(double *__restrict row, const double *factored, int64_t n,
                      int64_t i, int64_t begin, int64_t end) {
  for (int64_t k = 0; k < kBlock; k += 4) {
    const double *u0 = factored + k * n, *u1 = u0 + n, *u2 = u1 + n,
                 *u3 = u2 + n;
    double f0 = u0[i], f1 = u1[i], f2 = u2[i], f3 = u3[i];
    for (int64_t j = begin; j < end; ++j)
      row[j] -= (f0 * u0[j] + f1 * u1[j]) + (f2 * u2[j] + f3 * u3[j]);
  }
}

bool nm_sparse::factorCholesky(llvm::MutableArrayRef<double> matrix,
                               int64_t n) {
  double *a = matrix.data();
  for (int64_t first = 0; first < n; first += kBlock) {
    int64_t last = std::min(first + kBlock, n);
    if (!factorRows(a, n, first, last))
      return false;
    int64_t tasks = llvm::divideCeilSigned(n - last, kTaskRows);
    llvm::parallelFor(0, size_t(tasks), [&](size_t task) {
      int64_t row0 = last + int64_t(task) * kTaskRows;
      int64_t row1 = std::min(row0 + kTaskRows, n);
      for (int64_t column = row0; column < n; column += kTileColumns)
        for (int64_t i = row0; i < row1; ++i)
          updateRow(a + i * n, a + first * n, n, i, std::max(column, i),
                    std::min(column + kTileColumns, n));
    });
  }
  return true;
}

void nm_sparse::solveCholesky(llvm::ArrayRef<double> u, int64_t n,
                              llvm::MutableArrayRef<double> b) {
  // U^T y = b, then U x = y.
  for (int64_t k = 0; k < n; ++k) {
    const double *row = u.data() + k * n;
    b[k] /= row[k];
    for (int64_t j = k + 1; j < n; ++j)
      b[j] -= row[j] * b[k];
  }
  for (int64_t k = n - 1; k >= 0; --k) {
    const double *row = u.data() + k * n;
    double sum = b[k];
    for (int64_t j = k + 1; j < n; ++j)
      sum -= row[j] * b[j];
    b[k] = sum / row[k];
  }
}
