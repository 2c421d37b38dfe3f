//===- CombineDense.h - the time of a dense product -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// As CombineWork.h, of the vendor's library. It has kernels for tiles of some
// sizes, with and without a split contraction, and picks a good one: the least
// of what they take.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_ANALYSIS_COMBINEDENSE_H
#define NM_SPARSE_ANALYSIS_COMBINEDENSE_H

#include "nm_sparse/Support/NamedField.h"

namespace mlir::nm_sparse {

struct DenseWork {
  double batch = 1, tokens = 0, outputs = 0, rows = 0;
  double multiprocessors = 1;
  double flops = 1;   ///< Flops in a second of the chip.
  double dram = 0;    ///< Seconds of its memory for each byte once.
  double results = 0; ///< Seconds of it for a sum of each result in f32.
  /// 1 where rows begin at multiples of fewer than 16 bytes, and where they do
  /// of fewer than 4.
  double unaligned = 0, odd = 0;
  /// 1 where a matrix by a vector is a kernel of its own.
  double vector = 0;
};

struct DenseCosts {
  double launch = 0; ///< Seconds.
  /// Times the rate of large products that the units reach in a tile without
  /// end, and elements by which a tile of half that rate is larger than none.
  double rate = 1, halfTile = 0;
  /// The share of device memory's rate at which operands are read.
  double dramShare = 1;
  /// The share of the shorter one of products and bytes that adds to the time.
  double shown = 0;
  double split = 0; ///< Seconds to add the parts of a split contraction.
  /// The share of a partial last wave that counts as full.
  double lastWave = 0;
  /// The share of the rate that older kernels reach, which load rows that are
  /// unaligned, or odd; and how much longer these take for a vector.
  double unaligned = 1, odd = 1, vector = 1;
};

/// Seconds.
double combineDense(const DenseWork &work, const DenseCosts &costs);

inline constexpr NamedField<DenseWork> denseWorkFields[] = {
    {"batch", &DenseWork::batch},
    {"tokens", &DenseWork::tokens},
    {"outputs", &DenseWork::outputs},
    {"rows", &DenseWork::rows},
    {"multiprocessors", &DenseWork::multiprocessors},
    {"flops", &DenseWork::flops},
    {"dram", &DenseWork::dram},
    {"results", &DenseWork::results},
    {"unaligned", &DenseWork::unaligned},
    {"odd", &DenseWork::odd},
    {"vector", &DenseWork::vector}};
inline constexpr NamedField<DenseCosts> denseCostFields[] = {
    {"launch", &DenseCosts::launch},     {"rate", &DenseCosts::rate},
    {"halfTile", &DenseCosts::halfTile}, {"dramShare", &DenseCosts::dramShare},
    {"shown", &DenseCosts::shown},       {"split", &DenseCosts::split},
    {"lastWave", &DenseCosts::lastWave}, {"unaligned", &DenseCosts::unaligned},
    {"odd", &DenseCosts::odd},           {"vector", &DenseCosts::vector}};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_ANALYSIS_COMBINEDENSE_H
