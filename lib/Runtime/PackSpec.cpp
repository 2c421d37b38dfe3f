//===- PackSpec.cpp - Checks of packing arguments -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ErrorState.h"
#include "PackTile.h"

using namespace nms;

extern "C" int32_t nmsIndexBytes(int64_t m) {
  return m <= 256 ? 1 : m <= 65536 ? 2 : 4;
}

int nms::checkSpec(const NmsPackSpec &s, const char *entry, bool usesIndex) {
  auto ll = [](int64_t value) { return static_cast<long long>(value); };
  constexpr int64_t limit = int64_t(1) << 31;
  if (s.m < 1 || s.m > limit || s.n < 1 || s.n > s.m)
    return fail("%s: %lld:%lld is not legal: n must be 1 to m, and m 1 to 2^31",
                entry, ll(s.n), ll(s.m));
  if (s.bk < 1 || s.bn < 1 || s.bk > limit || s.bn > limit)
    return fail("%s: block = [%lld, %lld] is not legal: both must be 1 to 2^31",
                entry, ll(s.bk), ll(s.bn));
  if (s.m * s.bk > limit)
    return fail(
        "%s: a window of m * bk = %lld rows is too large: it must be at "
        "most 2^31",
        entry, ll(s.m * s.bk));
  if (s.batch < 0 || s.k < 0 || s.outputs < 0)
    return fail(
        "%s: batch=%lld k=%lld outputs=%lld: sizes must not be negative", entry,
        ll(s.batch), ll(s.k), ll(s.outputs));
  if (s.kind != NMS_F32 && s.kind != NMS_F16 && s.kind != NMS_BF16 &&
      s.kind != NMS_I8)
    return fail("%s: element kind %s (%d) cannot be packed: use f32, f16, bf16 "
                "or i8",
                entry, nmsKindName(s.kind), s.kind);
  if (!usesIndex)
    return 0;
  if (s.indexBytes != 1 && s.indexBytes != 2 && s.indexBytes != 4)
    return fail("%s: %d bytes a position are not legal: use 1, 2 or 4", entry,
                s.indexBytes);
  if (s.indexBytes < nmsIndexBytes(s.m))
    return fail("%s: positions of m=%lld do not fit in %d bytes: use %d", entry,
                ll(s.m), s.indexBytes, nmsIndexBytes(s.m));
  return 0;
}

extern "C" int64_t nmsPackedValuesCount(const NmsPackSpec *spec) {
  if (!spec)
    return -fail("packed size: the spec is null");
  if (checkSpec(*spec, "packed size", /*usesIndex=*/false))
    return -1;
  PackGeometry g(*spec);
  return spec->batch * g.valueRows * g.columns;
}

extern "C" int64_t nmsPackedIndexCount(const NmsPackSpec *spec) {
  if (!spec)
    return -fail("packed size: the spec is null");
  if (checkSpec(*spec, "packed size", /*usesIndex=*/false))
    return -1;
  PackGeometry g(*spec);
  return spec->batch * g.indexRows * g.panels;
}
