//===- Random.h - Random inputs and element conversion ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Inputs for tests and measurements that are the same on every machine.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_RUNTIME_RANDOM_H
#define NM_SPARSE_RUNTIME_RANDOM_H

#include "nm_sparse/Runtime/Base.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Fills `count` elements with standard normal numbers, rounded to `kind`; for
/// NMS_I8 and NMS_I32 with 32 times such a number, rounded and held in
/// -127..127. Element i depends on (seed, stream, i) alone, not on the machine,
/// the number of threads or `count`. Returns 0, or nonzero with nmsLastError()
/// set when an argument is illegal.
NMS_API int nmsRandomNormal(int32_t kind, void *data, int64_t count,
                            uint64_t seed, uint64_t stream);

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

#endif // NM_SPARSE_RUNTIME_RANDOM_H
