//===- Convert.h - Conversion of elements -----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_BASE_CONVERT_H
#define NM_SPARSE_BASE_CONVERT_H

#include "nm_sparse/Base/Kind.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Round to nearest even; overflow gives infinity, a NaN stays a quiet NaN.
NMS_API uint16_t nmsF32ToF16(float value);
NMS_API float nmsF16ToF32(uint16_t bits);
NMS_API uint16_t nmsF32ToBF16(float value);
NMS_API float nmsBF16ToF32(uint16_t bits);

/// Arrays of any NmsKind. Integers are rounded to nearest even and saturated, a
/// NaN becomes 0. nmsFromDouble rounds once. Return 0, or nonzero with
/// nmsLastError() set when an argument is illegal.
NMS_API int nmsToDouble(int32_t kind, const void *src, double *dst,
                        int64_t count);
NMS_API int nmsFromDouble(int32_t kind, const double *src, void *dst,
                          int64_t count);
NMS_API int nmsToFloat(int32_t kind, const void *src, float *dst,
                       int64_t count);
NMS_API int nmsFromFloat(int32_t kind, const float *src, void *dst,
                         int64_t count);

#ifdef __cplusplus
}
#endif

#endif // NM_SPARSE_BASE_CONVERT_H
