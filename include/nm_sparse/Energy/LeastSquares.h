//===- LeastSquares.h - fits with coefficients of one sign ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_ENERGY_LEASTSQUARES_H
#define NM_SPARSE_ENERGY_LEASTSQUARES_H

#include <cstddef>
#include <vector>

namespace mlir::nm_sparse {

/// The coefficients, none of them negative, for which `rows` times them is
/// closest to `wanted`: by active sets (Lawson and Hanson, Solving Least
/// Squares Problems, 1974). `rows` is row-major, `columns` wide, and has as
/// many rows as `wanted` has numbers. For few columns: it solves the normal
/// equations. If columns are linearly dependent, only one of them gets a
/// coefficient.
std::vector<double> solveNonNegative(const std::vector<double> &rows,
                                     size_t columns,
                                     const std::vector<double> &wanted);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_ENERGY_LEASTSQUARES_H
