//===- FreeBitmap.h - Tiles of free elements --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Version 5 of docs/Encoding.md.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_RUNTIME_FREEBITMAP_H
#define NM_SPARSE_LIB_RUNTIME_FREEBITMAP_H

#include <cstdint>

namespace nms::free_bitmap {

constexpr int64_t blockOutputs = 32; // the lanes of a warp
constexpr int64_t tileRows = 256, wordRows = 32, words = tileRows / wordRows;
constexpr int64_t headerAt = blockOutputs * words, headerWords = 4;
constexpr int64_t tileWords = headerAt + headerWords;
constexpr int64_t pieceValues = 4; // that a lane reads at once

} // namespace nms::free_bitmap

#endif // NM_SPARSE_LIB_RUNTIME_FREEBITMAP_H
