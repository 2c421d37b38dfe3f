//===- Packing.h - Packing calls of compiled host code ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compiled host code holds arrays as memref descriptors and looks at no status.
// These functions read the descriptors, check that they fit the encoding, and
// call the functions of nm_sparse/Packing/Packing.h.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_RUNTIME_PACKING_H
#define NM_SPARSE_RUNTIME_PACKING_H

#include "nm_sparse/Packing/Packing.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Pack, unpack and prune for compiled host code. The arrays are ranked memref
/// descriptors (allocated, aligned, offset, sizes[rank], strides[rank]) of rank
/// 2, or 3 with a leading batch dimension; all have rank `rank`. `params` is
/// [dim, kind, number of levels] and [n, m, bk, bn] of each level, where `dim`
/// is the contraction dimension of the dense array: one of its last two. A
/// failure goes to the error policy (Error.h).
NMS_API void nmsRuntimePack(int64_t rank, void *denseDesc,
                            void *const *componentDescs, const int64_t *params);
NMS_API void nmsRuntimeUnpack(int64_t rank, void *denseDesc,
                              void *const *componentDescs,
                              const int64_t *params);
NMS_API void nmsRuntimePrune(int64_t rank, void *denseDesc, void *prunedDesc,
                             const int64_t *params);

/// The same of a free level, and of a shuffled weight, for which `density` says
/// what a free level keeps.
NMS_API void nmsRuntimePruneFree(int64_t rank, void *denseDesc,
                                 void *prunedDesc, const int64_t *params,
                                 double density);
NMS_API void nmsRuntimePruneShuffled(int64_t rank, void *denseDesc,
                                     void *prunedDesc, const int64_t *params,
                                     double density);

/// The same for a shuffled weight of n:m levels. Its last component is `perm`,
/// a memref of rank `rank` - 1.
NMS_API void nmsRuntimePackShuffled(int64_t rank, void *denseDesc,
                                    void *const *componentDescs,
                                    const int64_t *params);
NMS_API void nmsRuntimeUnpackShuffled(int64_t rank, void *denseDesc,
                                      void *const *componentDescs,
                                      const int64_t *params);

/// Fails as nmsRuntimePack does if a kernel found a window of that kind; for
/// compiled host code. The weight is `batch` times windows x panels.
NMS_API void nmsRuntimeCheckPacked(int64_t found, int64_t n, int64_t m,
                                   int64_t batch, int64_t windows,
                                   int64_t panels);

/// Between `values`, `index` of the canonical form and `values`, `bits` of
/// bitmaps, for compiled host code. All are contiguous memrefs: the canonical
/// ones of rank `rank`, which is that of the weight, the others of rank `rank`
/// + 1. `params` is [dim, kind, 1, n, m, bk, bn, K, N], with the K and N of the
/// weight, since the canonical form is padded.
NMS_API void nmsRuntimePackBitmap(int64_t rank, void *const *canonicalDescs,
                                  void *const *bitmapDescs,
                                  const int64_t *params);
NMS_API void nmsRuntimeUnpackBitmap(int64_t rank, void *const *bitmapDescs,
                                    void *const *canonicalDescs,
                                    const int64_t *params);

/// The same of free elements, for compiled host code: the dense weight and
/// `params` as for nmsRuntimePack, and contiguous `values` of rank 1 and `bits`
/// of rank `rank` + 1. The size of `values` is that of the first call, which is
/// 0 when it fails.
NMS_API int64_t nmsRuntimeCountFreeBitmap(int64_t rank, void *denseDesc,
                                          const int64_t *params);
NMS_API void nmsRuntimePackFreeBitmap(int64_t rank, void *denseDesc,
                                      void *const *componentDescs,
                                      const int64_t *params);
NMS_API void nmsRuntimeUnpackFreeBitmap(int64_t rank, void *denseDesc,
                                        void *const *componentDescs,
                                        const int64_t *params);

/// The same for ragged panels: `values` and `index` have rank 2, and `panels`
/// has rank `rank`. After the level, `params` has the number of rows to which
/// panels are padded.
NMS_API int64_t nmsRuntimeCountRagged(int64_t rank, void *denseDesc,
                                      const int64_t *params);
NMS_API void nmsRuntimePackRagged(int64_t rank, void *denseDesc,
                                  void *const *componentDescs,
                                  const int64_t *params);
NMS_API void nmsRuntimeUnpackRagged(int64_t rank, void *denseDesc,
                                    void *const *componentDescs,
                                    const int64_t *params);

/// The same for a shuffled weight. Its last component is `perm`, a memref of
/// rank `rank` - 1.
NMS_API int64_t nmsRuntimeCountRaggedShuffled(int64_t rank, void *denseDesc,
                                              const int64_t *params);
NMS_API void nmsRuntimePackRaggedShuffled(int64_t rank, void *denseDesc,
                                          void *const *componentDescs,
                                          const int64_t *params);
NMS_API void nmsRuntimeUnpackRaggedShuffled(int64_t rank, void *denseDesc,
                                            void *const *componentDescs,
                                            const int64_t *params);

/// nmsRuntimePack into bitmaps, which are contiguous memrefs of rank `rank`
/// + 1.
NMS_API void nmsRuntimePackDenseBitmap(int64_t rank, void *denseDesc,
                                       void *const *bitmapDescs,
                                       const int64_t *params);

/// Checks every position of one level, a memref of rank 2, or 3 with a leading
/// batch dimension, in host memory: below m, and increasing in each window and
/// panel. `params` is [n, m, argument], where `argument` is the number that a
/// failure names.
NMS_API void nmsRuntimeCheckIndex(int64_t rank, void *indexDesc,
                                  const int64_t *params);

/// Checks a permutation of outputs, a contiguous memref of rank 1, or 2 with a
/// leading batch dimension, in host memory, as nmsCheckOrder does. `params` is
/// the number of the argument, which a failure names.
NMS_API void nmsRuntimeCheckPerm(int64_t rank, void *permDesc,
                                 const int64_t *params);

/// Checks the bits of a weight that is stored as bitmaps, a contiguous memref
/// of rank 3, or 4 with a leading batch dimension, in host memory, as
/// nmsUnpackBitmap does. `params` has the spec and the number that a failure
/// names: [kind, n, m, bk, bn, K, N, argument].
NMS_API void nmsRuntimeCheckBits(int64_t rank, void *bitsDesc,
                                 const int64_t *params);

/// The same for free elements, as nmsUnpackFreeBitmap does. It takes the memref
/// of rank 1 of their values, and reads only its size. `params` is [kind, K, N,
/// argument].
NMS_API void nmsRuntimeCheckFreeBits(int64_t rank, void *bitsDesc,
                                     void *valuesDesc, const int64_t *params);

/// Checks ragged panels, a memref of rank 2, or 3 with a leading batch
/// dimension, with the memrefs of their values and of their index. Only the
/// sizes of the values are read. `params` is [bk, bn, K, N, rows, argument].
NMS_API void nmsRuntimeCheckRagged(int64_t rank, void *panelsDesc,
                                   void *valuesDesc, void *indexDesc,
                                   const int64_t *params);

#ifdef __cplusplus
}
#endif

#endif // NM_SPARSE_RUNTIME_PACKING_H
