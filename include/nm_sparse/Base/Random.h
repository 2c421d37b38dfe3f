//===- Random.h - Random inputs ---------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Inputs for tests and measurements that are the same on every machine.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_BASE_RANDOM_H
#define NM_SPARSE_BASE_RANDOM_H

#include "nm_sparse/Base/Kind.h"

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

#ifdef __cplusplus
}
#endif

#endif // NM_SPARSE_BASE_RANDOM_H
