//===- Ragged.h - Free panels in whole K steps ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Version 10 of docs/Encoding.md.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_PACKING_RAGGED_H
#define NM_SPARSE_PACKING_RAGGED_H

#include "nm_sparse/Packing/Packing.h"

namespace nms::ragged {

/// Words in a row of the component `panels`: the first row of the panel that is
/// multiplied as the row's number says, how many rows it has, which panel it
/// is, and as which number the panel of this row's number is multiplied.
constexpr int64_t panelWords = 4;

/// Rows of a part of a block at most.
constexpr int64_t mostPartRows = 16;

/// Sizes that follow from a spec.
struct Geometry {
  int64_t blockBytes() const { return blockRows * blockOutputs * elementBytes; }

  /// The weight as one of blocks that panels are filled up with whole: parts of
  /// its own where these are larger.
  NmsPackSpec spec;
  int64_t batch, k, blockRows, blockOutputs, panels; ///< Panels of a batch.
  bool isLastPartial; ///< The last panel has fewer outputs.
  int64_t rows;       ///< That panels are filled up to.
  int64_t elementBytes;
};

/// Fails when the weight of `spec` has no panels that could be filled up to
/// `rows`.
int getGeometry(const NmsPackSpec *spec, int64_t rows, const char *entry,
                Geometry &geometry);

/// Fails, naming the place, when a panel, or the row of a block, is not legal
/// in a weight of `size` rows: a kernel would read out of bounds.
int checkPanels(const char *entry, const Geometry &geometry, int64_t size,
                const uint32_t *index, const uint32_t *panels);

} // namespace nms::ragged

#endif // NM_SPARSE_PACKING_RAGGED_H
