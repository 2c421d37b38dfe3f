//===- Checks.h - Checks of packed weights ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A kernel trusts its index: a position that is not legal makes it read out of
// bounds. These functions find such a position first. Each returns 0, or
// nonzero with the reason recorded; `entry` begins the message.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_PACKING_CHECKS_H
#define NM_SPARSE_PACKING_CHECKS_H

#include "nm_sparse/Packing/Packing.h"

namespace nms {

/// Elements that a weight may have: those that are packed, or NMS_F64 besides,
/// which scores have: they are pruned and put in order, too.
enum class Elements { Packed, Scores };

/// Checks a spec of n:m levels.
int checkSpec(const NmsPackSpec *spec, const char *entry,
              Elements elements = Elements::Packed);

inline bool isFree(const NmsPackSpec &spec) {
  return spec.levels[0].n == 0 && spec.levels[0].m == 0;
}

/// Checks a spec of n:m levels, or of a free one.
int checkAnySpec(const NmsPackSpec *spec, const char *entry,
                 Elements elements = Elements::Packed);

/// As nmsCheckOrder(), of a legal spec.
int checkOrder(const NmsPackSpec &spec, const uint32_t *perm,
               const char *entry);

/// An index of one n:m level, in elements of nmsIndexBytes(m) bytes.
struct IndexArray {
  const void *data;
  int64_t batch, rows, panels;
  int64_t strideBatch, strideRow, stridePanel; ///< In elements.
  bool hasBatch; ///< A message names the batch entry.
};

/// Checks that the positions of each window and panel are below `m` and
/// increase.
int checkIndex(const char *entry, int64_t n, int64_t m,
               const IndexArray &index);

/// The sizes of the bitmaps of a weight. Fails when its encoding has none.
int getBitmapShape(const NmsPackSpec *spec, const char *entry,
                   NmsBitmapShape &shape);

/// Checks bitmaps as nmsUnpackBitmap() does.
int checkBits(const char *entry, const NmsPackSpec &spec, const uint32_t *bits);

/// The weight that a kernel packed.
struct PackedCheck {
  int64_t n = 1, m = 1, batch = 1, windows = 1, panels = 1;
};

/// Fails with the sentence of nmsPack() when `found`, the word that the kernel
/// left (NMS_PACKED_COUNT_BITS), says that the weight breaks its pattern.
int checkPacked(int64_t found, const PackedCheck &check);

} // namespace nms

#endif // NM_SPARSE_PACKING_CHECKS_H
