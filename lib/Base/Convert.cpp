//===- Element.cpp - Element kinds and conversion -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Base/Convert.h"
#include "nm_sparse/Base/Element.h"
#include "nm_sparse/Base/Fail.h"
#include "nm_sparse/Base/Parallel.h"

using namespace nms;

namespace {

constexpr int64_t chunk = 1 << 16;

int checkArray(const char *entry, int32_t kind, const void *a, const void *b,
               int64_t count) {
  if (nmsKindBytes(kind) == 0)
    return fail("%s: element kind %d is unknown: use one of NmsKind (0 to 7)",
                entry, kind);
  if (count < 0 || (count > 0 && (!a || !b)))
    return fail("%s: %lld elements from %p to %p: pass arrays and a count that "
                "is not negative",
                entry, static_cast<long long>(count), a, b);
  return 0;
}

/// Runs `body(E, begin, end)` over pieces of the array.
template <typename Body>
int convert(const char *entry, int32_t kind, const void *src, const void *dst,
            int64_t count, Body body) {
  if (checkArray(entry, kind, src, dst, count))
    return 1;
  dispatchKind(kind, [&](auto element) {
    parallelChunks(count, chunk, [&](int64_t begin, int64_t end) {
      body(element, begin, end);
    });
  });
  return 0;
}

} // namespace

extern "C" int64_t nmsKindBytes(int32_t kind) {
  int64_t bytes = 0;
  dispatchKind(kind, [&](auto element) {
    bytes = sizeof(typename decltype(element)::Storage);
  });
  return bytes;
}

extern "C" const char *nmsKindName(int32_t kind) {
  static const char *const names[] = {"f32", "f16", "bf16",     "i8",
                                      "i32", "f64", "f8E4M3FN", "f8E5M2"};
  return kind >= 0 && kind < 8 ? names[kind] : "unknown";
}

extern "C" uint16_t nmsF32ToF16(float value) { return f32ToF16(value); }
extern "C" float nmsF16ToF32(uint16_t bits) { return f16ToF32(bits); }
extern "C" uint16_t nmsF32ToBF16(float value) { return f32ToBF16(value); }
extern "C" float nmsBF16ToF32(uint16_t bits) { return bf16ToF32(bits); }

extern "C" int nmsToDouble(int32_t kind, const void *src, double *dst,
                           int64_t count) {
  return convert("nmsToDouble", kind, src, dst, count,
                 [=](auto element, int64_t begin, int64_t end) {
                   using E = decltype(element);
                   auto *from = static_cast<const typename E::Storage *>(src);
                   for (int64_t i = begin; i < end; ++i)
                     dst[i] = E::toDouble(from[i]);
                 });
}

extern "C" int nmsFromDouble(int32_t kind, const double *src, void *dst,
                             int64_t count) {
  return convert("nmsFromDouble", kind, src, dst, count,
                 [=](auto element, int64_t begin, int64_t end) {
                   using E = decltype(element);
                   auto *to = static_cast<typename E::Storage *>(dst);
                   for (int64_t i = begin; i < end; ++i)
                     to[i] = E::fromDouble(src[i]);
                 });
}

extern "C" int nmsToFloat(int32_t kind, const void *src, float *dst,
                          int64_t count) {
  return convert("nmsToFloat", kind, src, dst, count,
                 [=](auto element, int64_t begin, int64_t end) {
                   using E = decltype(element);
                   auto *from = static_cast<const typename E::Storage *>(src);
                   for (int64_t i = begin; i < end; ++i)
                     dst[i] = E::toFloat(from[i]);
                 });
}

extern "C" int nmsFromFloat(int32_t kind, const float *src, void *dst,
                            int64_t count) {
  return convert("nmsFromFloat", kind, src, dst, count,
                 [=](auto element, int64_t begin, int64_t end) {
                   using E = decltype(element);
                   auto *to = static_cast<typename E::Storage *>(dst);
                   for (int64_t i = begin; i < end; ++i)
                     to[i] = E::fromFloat(src[i]);
                 });
}
