//===- Reference.h - float64 product and comparison -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reference results, and comparisons with them.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_RUNTIME_REFERENCE_H
#define NM_SPARSE_RUNTIME_REFERENCE_H

#include "nm_sparse/Base/Kind.h"

#ifdef __cplusplus
extern "C" {
#endif

/// y[b,i,j] += sum over l of x[b,i,l] * w[b,l,j], in float64. Strides count
/// elements and may be anything, 0 and negative ones included, as long as the
/// elements of y are distinct. Large products go to cublasDgemm if a device and
/// cuBLAS are there. Otherwise, and if the device fails, threads of the CPU do
/// the work (NM_SPARSE_THREADS limits them). NM_SPARSE_REFERENCE=cpu keeps it
/// off the device. Returns 0, or nonzero with nmsLastError() set when an
/// argument is illegal.
NMS_API int nmsReferenceMatmul(int64_t batch, int64_t m, int64_t n, int64_t k,
                               const double *x, int64_t xsb, int64_t xsm,
                               int64_t xsk, const double *w, int64_t wsb,
                               int64_t wsk, int64_t wsn, double *y, int64_t ysb,
                               int64_t ysm, int64_t ysn);

/// The same for a pruned weight `w`: its zeros are dropped, and take no part
/// even if x is NaN or infinite.
NMS_API int nmsReferenceSparseMatmul(int64_t batch, int64_t m, int64_t n,
                                     int64_t k, const double *x, int64_t xsb,
                                     int64_t xsm, int64_t xsk, const double *w,
                                     int64_t wsb, int64_t wsk, int64_t wsn,
                                     double *y, int64_t ysb, int64_t ysm,
                                     int64_t ysn);

typedef struct NmsComparison {
  /// |got - want| / |want| in the Frobenius norm. It is infinite if an element
  /// is NaN or infinite and its counterpart differs, and if `want` is all zeros
  /// but `got` is not; never NaN: test `relativeError <= limit`.
  double relativeError;
  double maxAbsError;    // infinite under the same conditions
  int64_t nanMismatches; // elements that are NaN on one side only
  int64_t infMismatches; // elements infinite on one side, or of opposite sign
  int64_t worstIndex;    // of the first mismatch, else of the largest error
  double worstGot, worstWant;
} NmsComparison;

/// Compares `count` elements; a NaN equals a NaN. Any NmsKind is legal.
/// Returns 0, or nonzero with nmsLastError() set when an argument is illegal.
NMS_API int nmsCompare(int32_t kind, const void *got, const double *want,
                       int64_t count, NmsComparison *result);

#ifdef __cplusplus
}
#endif

#endif // NM_SPARSE_RUNTIME_REFERENCE_H
