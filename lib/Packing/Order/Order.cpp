//===- Order.cpp - Outputs of a weight in another order -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A shuffled weight is one that has its pattern when its outputs are put in the
// order of a permutation. So it is copied in that order, and everything else
// works on the copy.
//
//===----------------------------------------------------------------------===//

#include "Order.h"
#include "nm_sparse/Base/Fail.h"

#include <cmath>
#include <string>

using namespace nms;

int nms::checkAnySpec(const NmsPackSpec *spec, const char *entry,
                      Elements elements) {
  LevelSpec rows;
  return spec && isFree(*spec) ? getFreeRows(spec, entry, rows, elements)
                               : checkSpec(spec, entry, elements);
}

int nms::checkOrder(const NmsPackSpec &spec, const uint32_t *perm,
                    const char *entry) {
  if (spec.batch * spec.outputs == 0)
    return 0;
  if (!perm)
    return fail("%s: perm is null", entry);
  std::vector<int64_t> places;
  for (int64_t batch = 0; batch < spec.batch; ++batch) {
    const uint32_t *row = perm + batch * spec.outputs;
    places.assign(static_cast<size_t>(spec.outputs), -1);
    for (int64_t place = 0; place < spec.outputs; ++place) {
      int64_t output = row[place];
      bool isBelow = output < spec.outputs;
      if (isBelow && places[static_cast<size_t>(output)] < 0) {
        places[static_cast<size_t>(output)] = place;
        continue;
      }
      std::string reason =
          isBelow
              ? "place " + std::to_string(places[static_cast<size_t>(output)]) +
                    " holds, too"
              : "is not below " + std::to_string(spec.outputs);
      return fail("%s: perm of batch %lld has %lld at place %lld, which %s: "
                  "legal is each number below %lld once; it is damaged or of "
                  "another weight",
                  entry, ll(batch), ll(output), ll(place), reason.c_str(),
                  ll(spec.outputs));
    }
  }
  return 0;
}

void nms::sortPanels(Panels &panels, int64_t width) {
  std::sort(panels.begin(), panels.end(), [&](const auto &a, const auto &b) {
    auto isShort = [&](const std::vector<int64_t> &panel) {
      return static_cast<int64_t>(panel.size()) < width;
    };
    return isShort(a) != isShort(b) ? isShort(b) : a.front() < b.front();
  });
}

int64_t nms::countKept(double density, int64_t count) {
  return static_cast<int64_t>(
      std::floor(density * static_cast<double>(count) + 0.5));
}

extern "C" int nmsCheckOrder(const NmsPackSpec *spec, const uint32_t *perm) {
  return checkAnySpec(spec, "check order", Elements::Scores) ||
         checkOrder(*spec, perm, "check order");
}

extern "C" int nmsOrderedSpec(const NmsPackSpec *spec, NmsPackSpec *ordered) {
  if (!ordered)
    return fail("ordered spec: there is no place for the result");
  if (checkAnySpec(spec, "ordered spec", Elements::Scores))
    return 1;
  *ordered = *spec;
  ordered->strideB = spec->k * spec->outputs;
  ordered->strideK = spec->outputs;
  ordered->strideN = 1;
  return 0;
}

/// Calls `body(T(), inWeight, inOrder)` for each element of the weight and its
/// place, in elements.
template <typename Body>
static void forEachElement(const NmsPackSpec &spec, const uint32_t *perm,
                           Body body) {
  for (int64_t batch = 0; batch < spec.batch; ++batch)
    for (int64_t k = 0; k < spec.k; ++k) {
      int64_t row = (batch * spec.k + k) * spec.outputs;
      int64_t start = batch * spec.strideB + k * spec.strideK;
      const uint32_t *outputs = perm + batch * spec.outputs;
      for (int64_t place = 0; place < spec.outputs; ++place)
        body(start + outputs[place] * spec.strideN, row + place);
    }
}

/// Copies the elements of a weight into their order, or back.
static int copyElements(const NmsPackSpec *spec, const uint32_t *perm,
                        const void *from, void *to, bool isBack) {
  const char *entry = "put in order";
  if (checkAnySpec(spec, entry, Elements::Scores) ||
      checkOrder(*spec, perm, entry))
    return 1;
  if (spec->batch * spec->k * spec->outputs == 0)
    return 0;
  if (!from || !to)
    return fail("%s: an array is null", entry);
  return dispatchBits(static_cast<int32_t>(spec->kind), [&](auto type, auto) {
    using T = decltype(type);
    auto *source = static_cast<const T *>(from);
    auto *target = static_cast<T *>(to);
    forEachElement(*spec, perm, [&](int64_t inWeight, int64_t inOrder) {
      target[isBack ? inWeight : inOrder] = source[isBack ? inOrder : inWeight];
    });
    return 0;
  });
}

extern "C" int nmsPutInOrder(const NmsPackSpec *spec, const uint32_t *perm,
                             const void *dense, void *ordered) {
  return copyElements(spec, perm, dense, ordered, /*isBack=*/false);
}

extern "C" int nmsPutBack(const NmsPackSpec *spec, const uint32_t *perm,
                          const void *ordered, void *dense) {
  return copyElements(spec, perm, ordered, dense, /*isBack=*/true);
}
