//===- Packing.h - Prune, pack and unpack on the host -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The canonical packed layout, version 1 (docs/Encoding.md is normative), for
// n:m encodings with blocks of bk x bn. With K the contraction size, N the
// number of outputs, W = ceil(K / (m * bk)) windows and P = ceil(N / bn)
// panels:
//
//   values  [B x] (W*n*bk) x (P*bn): row (w*n + s)*bk + i, column p*bn + j is
//           element (i, j) of the block kept in slot s of window w, panel p;
//   index   [B x] (W*n) x P: the position 0..m-1 of that block, unsigned.
//
// Positions of one window and panel strictly increase. Slots without a nonzero
// block hold, first, blocks with a -0, then the smallest other positions.
// Padding is +0. Both arrays are contiguous and row-major.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_RUNTIME_PACKING_H
#define NM_SPARSE_RUNTIME_PACKING_H

#include "nm_sparse/Runtime/Base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct NmsPackSpec {
  int64_t n, m, bk, bn;              // encoding n:m, block = [bk, bn]
  int64_t batch, k, outputs;         // sizes of the dense array
  int64_t strideB, strideK, strideN; // its strides, in elements
  int32_t kind;                      // NMS_F32, NMS_F16, NMS_BF16 or NMS_I8
  int32_t indexBytes;                // 1, 2 or 4
} NmsPackSpec;

/// Bytes of one position in the canonical layout: 1 up to m = 256, 2 up to
/// m = 65536, else 4.
NMS_API int32_t nmsIndexBytes(int64_t m);

/// Elements of the packed arrays, or -1 with nmsLastError() set.
NMS_API int64_t nmsPackedValuesCount(const NmsPackSpec *spec);
NMS_API int64_t nmsPackedIndexCount(const NmsPackSpec *spec);

/// Fails, naming the place, when a window holds more than n nonzero blocks.
NMS_API int nmsPack(const NmsPackSpec *spec, const void *dense, void *values,
                    void *index);

/// Writes every element of the dense array. Fails, naming the place, when a
/// position is not below m or positions do not increase.
NMS_API int nmsUnpack(const NmsPackSpec *spec, const void *values,
                      const void *index, void *dense);

/// Keeps the n blocks of largest sum of squares in each window and panel, and
/// sets all other elements to +0. Of equals the smaller position wins, and a
/// NaN counts as infinite. Both arrays have the strides of `spec`; they may be
/// the same one.
NMS_API int nmsPrune(const NmsPackSpec *spec, const void *dense, void *pruned);

/// The same for compiled host code. The arrays are ranked memref descriptors
/// (allocated, aligned, offset, sizes[rank], strides[rank]) of rank 2, or 3
/// with a leading batch dimension; all have rank `rank`. `params` is [n, m, bk,
/// bn, dim, kind, indexBytes], where `dim` is the contraction dimension of the
/// dense array: one of its last two. indexBytes is ignored by nmsRuntimePrune.
/// A failure goes to the error policy (Error.h).
NMS_API void nmsRuntimePack(int64_t rank, void *denseDesc, void *valuesDesc,
                            void *indexDesc, const int64_t *params);
NMS_API void nmsRuntimeUnpack(int64_t rank, void *denseDesc, void *valuesDesc,
                              void *indexDesc, const int64_t *params);
NMS_API void nmsRuntimePrune(int64_t rank, void *denseDesc, void *prunedDesc,
                             const int64_t *params);

/// Checks every position of an index, a memref of rank 2, or 3 with a leading
/// batch dimension, in host memory: below m, and increasing in each window and
/// panel. `params` is [n, m, indexBytes, argument], where `argument` is the
/// number that a failure names.
NMS_API void nmsRuntimeCheckIndex(int64_t rank, void *indexDesc,
                                  const int64_t *params);

#ifdef __cplusplus
}
#endif

#endif // NM_SPARSE_RUNTIME_PACKING_H
