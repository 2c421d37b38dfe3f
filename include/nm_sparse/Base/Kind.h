//===- Kind.h - Element kinds and export macro ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shared by every header of the packing and of the runtime library. Both are
// plain C at their border, use no LLVM or MLIR header, and do not link CUDA.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_BASE_KIND_H
#define NM_SPARSE_BASE_KIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define NMS_API __attribute__((visibility("default")))
#else
#define NMS_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/// Element kinds. Functions that take a kind say which of them are legal.
typedef enum NmsKind {
  NMS_F32 = 0,
  NMS_F16 = 1,
  NMS_BF16 = 2,
  NMS_I8 = 3,
  NMS_I32 = 4,
  NMS_F64 = 5,
  NMS_F8E4M3FN = 6,
  NMS_F8E5M2 = 7
} NmsKind;

/// Bytes of one element, or 0 when `kind` is none of NmsKind.
NMS_API int64_t nmsKindBytes(int32_t kind);

/// "f32", "f16", "bf16", "i8", "i32", "f64", "f8E4M3FN", "f8E5M2", or
/// "unknown".
NMS_API const char *nmsKindName(int32_t kind);

#ifdef __cplusplus
}
#endif

#endif // NM_SPARSE_BASE_KIND_H
