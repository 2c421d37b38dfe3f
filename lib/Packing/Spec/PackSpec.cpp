//===- PackSpec.cpp - Packing arguments and the shapes of components ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PackTile.h"
#include "nm_sparse/Base/Fail.h"

using namespace nms;

namespace {

constexpr const char *names[NMS_MAX_COMPONENTS] = {"values", "index",
                                                   "inner_index"};

int checkLevel(const NmsPackLevel &l, const char *entry) {
  constexpr int64_t limit = int64_t(1) << 31;
  if (l.m < 1 || l.m > limit || l.n < 1 || l.n > l.m)
    return fail("%s: %lld:%lld is not legal: n must be 1 to m, and m 1 to 2^31",
                entry, ll(l.n), ll(l.m));
  if (l.bk < 1 || l.bn < 1 || l.bk > limit || l.bn > limit)
    return fail("%s: block = [%lld, %lld] is not legal: both must be 1 to 2^31",
                entry, ll(l.bk), ll(l.bn));
  if (l.m * l.bk > limit)
    return fail(
        "%s: a window of m * bk = %lld rows is too large: it must be at "
        "most 2^31",
        entry, ll(l.m * l.bk));
  return 0;
}

/// Both levels can be chosen window by window.
int checkNesting(const NmsPackLevel &outer, const NmsPackLevel &inner,
                 const char *entry) {
  if (outer.bk % inner.bk != 0 || outer.bn % inner.bn != 0)
    return fail("%s: inner blocks [%lld, %lld] must divide the outer ones, "
                "[%lld, %lld]",
                entry, ll(inner.bk), ll(inner.bn), ll(outer.bk), ll(outer.bn));
  if (inner.m * inner.bk != outer.n * outer.bk)
    return fail("%s: an inner window of %lld x %lld rows must be the %lld x "
                "%lld rows that the outer level keeps of a window",
                entry, ll(inner.m), ll(inner.bk), ll(outer.n), ll(outer.bk));
  return 0;
}

} // namespace

extern "C" int32_t nmsIndexBytes(int64_t m) {
  return m <= 256 ? 1 : m <= 65536 ? 2 : 4;
}

int nms::checkSpec(const NmsPackSpec *spec, const char *entry,
                   Elements elements) {
  if (!spec)
    return fail("%s: the spec is null", entry);
  const NmsPackSpec &s = *spec;
  if (s.levelCount < 1 || s.levelCount > NMS_MAX_LEVELS)
    return fail("%s: %lld levels are not legal: use 1 or 2", entry,
                ll(s.levelCount));
  for (int64_t level = 0; level < s.levelCount; ++level)
    if (checkLevel(s.levels[level], entry))
      return 1;
  if (s.levelCount == 2 && checkNesting(s.levels[0], s.levels[1], entry))
    return 1;
  if (s.batch < 0 || s.k < 0 || s.outputs < 0)
    return fail(
        "%s: batch=%lld k=%lld outputs=%lld: sizes must not be negative", entry,
        ll(s.batch), ll(s.k), ll(s.outputs));
  auto kind = static_cast<int32_t>(s.kind);
  bool isScore = kind == NMS_F64 && elements == Elements::Scores;
  if (nmsKindBytes(kind) == 0 || kind == NMS_I32 ||
      (kind == NMS_F64 && !isScore))
    return fail("%s: element kind %s (%d) cannot be packed: use f32, f16, "
                "bf16, f8E4M3FN, f8E5M2 or i8",
                entry, nmsKindName(kind), kind);
  return 0;
}

int nms::checkArrays(const NmsPackSpec &s, const char *entry, const void *dense,
                     const void *const *components) {
  if (!dense || !components)
    return fail("%s: the dense array or the list of components is null", entry);
  for (int64_t number = 0; number <= s.levelCount; ++number)
    if (!components[number])
      return fail("%s: component %s is null", entry, names[number]);
  return 0;
}

extern "C" int nmsInnermostSpec(const NmsPackSpec *spec, NmsPackSpec *inner) {
  if (!inner)
    return fail("innermost spec: there is no place for the result");
  if (checkSpec(spec, "innermost spec"))
    return 1;
  NmsPackSpec result = *spec;
  if (spec->levelCount == 2) {
    const NmsPackLevel &outer = spec->levels[0];
    int64_t windowRows = outer.m * outer.bk;
    result.levelCount = 1;
    result.levels[0] = spec->levels[1];
    result.k = (spec->k + windowRows - 1) / windowRows * outer.n * outer.bk;
    result.outputs = (spec->outputs + outer.bn - 1) / outer.bn * outer.bn;
  }
  *inner = result;
  return 0;
}

LevelSpec nms::getLevel(const NmsPackSpec &s, int64_t number) {
  const NmsPackLevel &outer = s.levels[0];
  LevelSpec level;
  static_cast<NmsPackLevel &>(level) = s.levels[number];
  level.batch = s.batch;
  level.kind = static_cast<int32_t>(s.kind);
  if (number == 0) {
    level.k = s.k;
    level.outputs = s.outputs;
    level.strideB = s.strideB;
    level.strideK = s.strideK;
    level.strideN = s.strideN;
    return level;
  }
  PackGeometry g(getLevel(s, 0));
  level.k = g.windows * outer.n * outer.bk;
  level.outputs = g.columns;
  level.strideB = level.k * level.outputs;
  level.strideK = level.outputs;
  level.strideN = 1;
  return level;
}

extern "C" int64_t nmsComponentCount(const NmsPackSpec *spec) {
  return checkSpec(spec, "packed size") ? -1 : 1 + spec->levelCount;
}

extern "C" int nmsDescribeComponent(const NmsPackSpec *spec, int64_t number,
                                    NmsComponent *component) {
  if (checkSpec(spec, "packed size"))
    return 1;
  if (number < 0 || number > spec->levelCount || !component)
    return fail("packed size: component %lld of %p: there are components 0 to "
                "%lld",
                ll(number), static_cast<void *>(component),
                ll(spec->levelCount));
  component->name = names[number];
  component->batch = spec->batch;
  if (number == NMS_VALUES) {
    PackGeometry g(getLevel(*spec, spec->levelCount - 1));
    component->rows = g.valueRows;
    component->columns = g.columns;
    component->elementBytes = nmsKindBytes(static_cast<int32_t>(spec->kind));
    return 0;
  }
  LevelSpec level = getLevel(*spec, number - NMS_INDEX);
  PackGeometry g(level);
  component->rows = g.indexRows;
  component->columns = g.panels;
  component->elementBytes = nmsIndexBytes(level.m);
  return 0;
}
