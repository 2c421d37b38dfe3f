//===- Im2col.h - tensor maps of a convolution's input ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuTensorMapEncodeIm2col takes these of a tensor of rank 4, which is images of
// (h, w, channels): it keeps 8 bits of a corner for each of h and w.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_BASE_IM2COL_H
#define NM_SPARSE_BASE_IM2COL_H

#include <array>
#include <cstddef>
#include <cstdint>

namespace nms {

/// The dimensions (h, w).
constexpr size_t kIm2colPixelRank = 2;
/// With images before and channels behind them.
constexpr size_t kIm2colRank = kIm2colPixelRank + 2;

/// The pixels of an image that a copy goes over: from `lower` to `upper` beyond
/// the last one, in steps of `strides`. The outermost dimension comes first.
struct Im2colPixels {
  std::array<int64_t, kIm2colPixelRank> lower, upper, strides;
};

/// Legal numbers.
struct Im2colRange {
  int64_t least, most;

  constexpr bool contains(int64_t number) const {
    return number >= least && number <= most;
  }
};

constexpr Im2colRange kIm2colCorners = {-128, 127};
constexpr Im2colRange kIm2colStrides = {1, 8};
/// One copy has so many.
constexpr Im2colRange kIm2colCopiedPixels = {1, 1024};
constexpr Im2colRange kIm2colCopiedChannels = {1, 256};

} // namespace nms

#endif // NM_SPARSE_BASE_IM2COL_H
