//===- Shuffled.cpp - Packing and pruning of shuffled weights -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Order.h"
#include "nm_sparse/Base/Fail.h"

using namespace nms;

/// Bytes of a weight.
static size_t denseBytes(const NmsPackSpec &spec) {
  return static_cast<size_t>(spec.batch * spec.k * spec.outputs *
                             nmsKindBytes(static_cast<int32_t>(spec.kind)));
}

/// Null unless the levels are n:m ones.
static int checkLevels(const NmsPackSpec *spec, const char *entry) {
  if (spec && isFree(*spec))
    return fail("%s: a free level has components of its own: put the weight in "
                "order, and pack that",
                entry);
  return checkSpec(spec, entry);
}

extern "C" int nmsPackShuffled(const NmsPackSpec *spec, int isGiven,
                               const void *dense, void *const *components,
                               uint32_t *perm) {
  NmsPackSpec ordered;
  if (checkLevels(spec, "pack") || nmsOrderedSpec(spec, &ordered))
    return 1;
  if (isGiven ? checkOrder(*spec, perm, "pack")
              : nmsFindOrder(spec, dense, perm))
    return 1;
  std::vector<char> copy(denseBytes(*spec));
  return nmsPutInOrder(spec, perm, dense, copy.data()) ||
         packInOrder(&ordered, copy.data(), components,
                     isGiven ? " in the order that was given"
                             : " in the order that was found");
}

extern "C" int nmsUnpackShuffled(const NmsPackSpec *spec,
                                 const void *const *components,
                                 const uint32_t *perm, void *dense) {
  NmsPackSpec ordered;
  if (checkLevels(spec, "unpack") || nmsOrderedSpec(spec, &ordered) ||
      checkOrder(*spec, perm, "unpack"))
    return 1;
  std::vector<char> copy(denseBytes(*spec));
  return nmsUnpack(&ordered, components, copy.data()) ||
         nmsPutBack(spec, perm, copy.data(), dense);
}

extern "C" int nmsPruneShuffled(const NmsPackSpec *spec, double density,
                                uint64_t seed, const uint32_t *perm,
                                const void *dense, void *pruned) {
  NmsPackSpec ordered;
  if (checkAnySpec(spec, "prune", Elements::Scores) ||
      nmsOrderedSpec(spec, &ordered))
    return 1;
  std::vector<uint32_t> found;
  if (!perm) {
    found.resize(static_cast<size_t>(spec->batch * spec->outputs));
    if (nmsSearchOrder(spec, density, seed, dense, found.data(), nullptr,
                       nullptr))
      return 1;
    perm = found.data();
  } else if (checkOrder(*spec, perm, "prune")) {
    return 1;
  }
  std::vector<char> copy(denseBytes(*spec));
  if (nmsPutInOrder(spec, perm, dense, copy.data()))
    return 1;
  int status = isFree(*spec)
                   ? nmsPruneFree(&ordered, density, copy.data(), copy.data())
                   : nmsPrune(&ordered, copy.data(), copy.data());
  return status || nmsPutBack(spec, perm, copy.data(), pruned);
}
