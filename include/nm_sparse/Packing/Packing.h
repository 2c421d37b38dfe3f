//===- Packing.h - Prune, pack and unpack on the host -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The canonical packed layout (docs/Encoding.md is normative) of n:m encodings
// of one level or two, with blocks of bk x bn. The runtime, the compiler and
// the Python package call these functions: there is no other implementation but
// python/nm_sparse/reference.py, which tests compare with. With K the
// contraction size, N the number of outputs, W = ceil(K / (m * bk)) windows and
// P = ceil(N / bn) panels, a weight of one level is two arrays, its components:
//
//   values  [B x] (W*n*bk) x (P*bn): row (w*n + s)*bk + i, column p*bn + j is
//           element (i, j) of the block kept in slot s of window w, panel p;
//   index   [B x] (W*n) x P: the position 0..m-1 of that block, unsigned.
//
// Positions of one window and panel strictly increase. Slots without a nonzero
// block hold, first, blocks with a -0, then the smallest other positions.
// Padding is +0. All arrays are contiguous and row-major.
//
// The inner one of two levels packs the values of the outer one, and its
// positions are the third component, inner_index.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_PACKING_PACKING_H
#define NM_SPARSE_PACKING_PACKING_H

#include "nm_sparse/Base/Kind.h"

#ifdef __cplusplus
extern "C" {
#endif

/// n:m, block = [bk, bn]
typedef struct NmsPackLevel {
  int64_t n, m, bk, bn;
} NmsPackLevel;

/// Most levels of an encoding.
#define NMS_MAX_LEVELS 2

typedef struct NmsPackSpec {
  NmsPackLevel levels[NMS_MAX_LEVELS]; // of the encoding, the outer one first
  int64_t levelCount;                  // 1 or 2
  int64_t batch, k, outputs;           // sizes of the dense array
  int64_t strideB, strideK, strideN;   // its strides, in elements
  int64_t kind; // NmsKind of a float of 8, 16 or 32 bits, or NMS_I8
} NmsPackSpec;

/// The components of a packed weight, by their place in an array of them. The
/// last one is there when the encoding has two levels.
enum { NMS_VALUES = 0, NMS_INDEX = 1, NMS_INNER_INDEX = 2 };

/// Most components of a packed weight.
#define NMS_MAX_COMPONENTS 3

typedef struct NmsComponent {
  const char *name;             // "values", "index" or "inner_index"
  int64_t batch, rows, columns; // batch is that of the spec
  int64_t elementBytes;
} NmsComponent;

/// Returns the bytes of one position in the canonical layout: 1 up to m = 256,
/// 2 up to m = 65536, otherwise 4.
NMS_API int32_t nmsIndexBytes(int64_t m);

/// Number of components, or -1 with nmsLastError() set.
NMS_API int64_t nmsComponentCount(const NmsPackSpec *spec);

/// Describes component `number`.
NMS_API int nmsDescribeComponent(const NmsPackSpec *spec, int64_t number,
                                 NmsComponent *component);

/// Fills the arrays `components`. Fails, naming the place, when a window holds
/// more than n nonzero blocks.
NMS_API int nmsPack(const NmsPackSpec *spec, const void *dense,
                    void *const *components);

/// Writes every element of the dense array. Fails, naming the place, when a
/// position is not below m or positions do not increase.
NMS_API int nmsUnpack(const NmsPackSpec *spec, const void *const *components,
                      void *dense);

/// Sets all elements to +0 except those of the n blocks with the largest sums
/// of squares in each window of a panel. If sums are equal, the smaller
/// position wins. A NaN counts as infinite. docs/Encoding.md says how two
/// levels are chosen together. Both arrays have the strides of `spec`; they may
/// be the same one. Elements may also be NMS_F64, as scores are.
NMS_API int nmsPrune(const NmsPackSpec *spec, const void *dense, void *pruned);

/// Says of each element of `scores`, with 1 or 0, whether nmsPrune() of them
/// keeps it. Both arrays have the strides of `spec`, in elements.
NMS_API int nmsPruneMask(const NmsPackSpec *spec, const void *scores,
                         uint8_t *mask);

/// Blocks that a weight of one free level keeps, `spec` with n = m = 0: every
/// block with an element other than +0. -1 with nmsLastError() set.
NMS_API int64_t nmsCountFree(const NmsPackSpec *spec, const void *dense);

/// Fills the components of such a weight, which docs/Encoding.md specifies:
/// with R = ceil(K / bk) rows of blocks, P panels and S = nmsCountFree(),
/// `values` has (S * bk) x bn elements, `index` S rows of nmsIndexBytes(R)
/// bytes each, and `offsets` batch * P + 1 numbers.
NMS_API int nmsPackFree(const NmsPackSpec *spec, const void *dense,
                        void *values, void *index, uint32_t *offsets);

/// Writes every element of the dense array from components of `kept` blocks.
/// Fails, naming the place, when an offset or a row is not legal.
NMS_API int nmsUnpackFree(const NmsPackSpec *spec, int64_t kept,
                          const void *values, const void *index,
                          const uint32_t *offsets, void *dense);

/// Sets all elements to +0 except those of the blocks with the largest sums of
/// squares, a share `density` (0 to 1) of all blocks. If sums are equal, the
/// first batch entry wins, then the first panel, then the first row.
NMS_API int nmsPruneFree(const NmsPackSpec *spec, double density,
                         const void *dense, void *pruned);

/// The same as nmsPruneMask() of nmsPruneFree().
NMS_API int nmsPruneFreeMask(const NmsPackSpec *spec, double density,
                             const void *scores, uint8_t *mask);

/// Order of outputs: place j of the packed outputs holds output perm[j] of the
/// weight, in each entry of a batch. These functions take specs of n:m levels
/// and of a free one, and `perm` as batch x outputs numbers.

/// Fails, naming the place, unless `perm` holds each number below `outputs` of
/// `spec` once in each batch entry.
NMS_API int nmsCheckOrder(const NmsPackSpec *spec, const uint32_t *perm);

/// The order that an encoder takes when it is given none, in which outputs of
/// the same support are neighbours (docs/Encoding.md).
NMS_API int nmsFindOrder(const NmsPackSpec *spec, const void *dense,
                         uint32_t *perm);

/// Reports that `done` of `steps` steps are done.
typedef void (*NmsProgress)(void *context, int64_t done, int64_t steps);

/// Finds an order in which pruning keeps much of the weight. If the weight has
/// the pattern in the order of nmsFindOrder(), that order is used. `density` is
/// the share of the blocks that a free level keeps; other levels ignore it. If
/// there are too many windows, `seed` chooses those that are looked at. The
/// choice does not depend on the number of threads. `progress` may be null.
NMS_API int nmsSearchOrder(const NmsPackSpec *spec, double density,
                           uint64_t seed, const void *dense, uint32_t *perm,
                           NmsProgress progress, void *context);

/// The weight whose outputs are in order: batch x k x outputs elements, one
/// after the other.
NMS_API int nmsOrderedSpec(const NmsPackSpec *spec, NmsPackSpec *ordered);

/// Fills that weight, or the one of `spec` from it. Fails as nmsCheckOrder().
NMS_API int nmsPutInOrder(const NmsPackSpec *spec, const uint32_t *perm,
                          const void *dense, void *ordered);
NMS_API int nmsPutBack(const NmsPackSpec *spec, const uint32_t *perm,
                       const void *ordered, void *dense);

/// nmsPack() of a shuffled weight of n:m levels, whose order it finds and fills
/// in unless `isGiven`; and nmsUnpack().
NMS_API int nmsPackShuffled(const NmsPackSpec *spec, int isGiven,
                            const void *dense, void *const *components,
                            uint32_t *perm);
NMS_API int nmsUnpackShuffled(const NmsPackSpec *spec,
                              const void *const *components,
                              const uint32_t *perm, void *dense);

/// nmsPrune() or nmsPruneFree() in the order of `perm`, or, if that is null, in
/// the one of nmsSearchOrder().
NMS_API int nmsPruneShuffled(const NmsPackSpec *spec, double density,
                             uint64_t seed, const uint32_t *perm,
                             const void *dense, void *pruned);

/// Returns the number of elements of `values` of such a weight, with blocks of
/// one element, as bitmaps: those of its pieces, each of 16 bytes. Returns -1
/// with nmsLastError() set on failure.
NMS_API int64_t nmsCountFreeBitmap(const NmsPackSpec *spec, const void *dense);

/// Fills these bitmaps, which docs/Encoding.md specifies: nmsCountFreeBitmap()
/// values, and 296 words of bits for each of batch x ceil(outputs / 32) x
/// ceil(k / 256) tiles.
NMS_API int nmsPackFreeBitmap(const NmsPackSpec *spec, const void *dense,
                              void *values, uint32_t *bits);

/// Writes every element of the dense array from `size` values and their bits.
/// Fails and names the place if rows are kept that the weight does not have or
/// that a kernel does not find, if words behind the bits contradict them, or if
/// a value without an element is not +0.
NMS_API int nmsUnpackFreeBitmap(const NmsPackSpec *spec, int64_t size,
                                const void *values, const uint32_t *bits,
                                void *dense);

/// Rows that the panels of a free weight have in all, each filled up to a
/// multiple of `rows`. Blocks are kept in parts, of the largest number of rows
/// that divides theirs, `rows` and 16. -1 with nmsLastError() set.
NMS_API int64_t nmsCountRagged(const NmsPackSpec *spec, int64_t rows,
                               const void *dense);

/// Fills the components of such a weight, which docs/Encoding.md specifies:
/// with S = nmsCountRagged(), P panels and sub-blocks of u rows, `values` has S
/// x bn elements, `index` S / u rows, and `panels` batch x P x 4 words.
NMS_API int nmsPackRagged(const NmsPackSpec *spec, int64_t rows,
                          const void *dense, void *values, uint32_t *index,
                          uint32_t *panels);

/// Writes every element of the dense array from components of `size` rows.
/// Fails, naming the place, when a panel or a row is not legal.
NMS_API int nmsUnpackRagged(const NmsPackSpec *spec, int64_t rows, int64_t size,
                            const void *values, const uint32_t *index,
                            const uint32_t *panels, void *dense);

/// Sizes of a weight of one n:m level that is stored as bitmaps, which
/// docs/Encoding.md specifies.
typedef struct NmsBitmapShape {
  int64_t blocks;     // of 32 outputs
  int64_t tiles;      // along the contraction
  int64_t tileRows;   // contraction steps of a tile
  int64_t tileValues; // elements that each output keeps of a tile
  int64_t words;      // of 32 bits, for the rows of a tile
} NmsBitmapShape;

/// Computes the weight that the innermost level of `spec` chooses from: with
/// two n:m levels, the weight that the outer one keeps, in whole windows and
/// panels; otherwise `spec` itself. Its values and index are those of the
/// innermost level; its strides mean nothing. Both arguments may be the same.
NMS_API int nmsInnermostSpec(const NmsPackSpec *spec, NmsPackSpec *inner);

/// The shape depends only on the level, k, outputs and kind of `spec`.
NMS_API int nmsBitmapShape(const NmsPackSpec *spec, NmsBitmapShape *shape);

/// Fills bitmaps from the components of the canonical form. The first array has
/// batch x blocks x tiles x (tileValues * 32) elements, the second one batch x
/// blocks x tiles x (32 * words). Strides of `spec` are not used. Fails, naming
/// the place, when a position is not legal or the padding is not +0.
NMS_API int nmsPackBitmap(const NmsPackSpec *spec, const void *values,
                          const void *index, void *bitmapValues,
                          uint32_t *bits);

/// Writes every element of the canonical form, the same that was packed. Fails
/// and names the place unless the bits are legal: n * bk rows of each window,
/// in whole blocks, the same in all outputs of a panel, and the first ones past
/// the end of the weight, where values are +0.
NMS_API int nmsUnpackBitmap(const NmsPackSpec *spec, const void *bitmapValues,
                            const uint32_t *bits, void *values, void *index);

/// A kernel that packs leaves a word of 64 bits: of the windows with more than
/// n nonzero blocks the first, as
/// ((batch * windows + window) * panels + panel) << NMS_PACKED_COUNT_BITS
/// plus the number of its nonzero blocks, so that the first is the least; or
/// that there was none.
#define NMS_PACKED_COUNT_BITS 16
#define NMS_PACKED_NOTHING_FOUND (-1)

#ifdef __cplusplus
}
#endif

#endif // NM_SPARSE_PACKING_PACKING_H
