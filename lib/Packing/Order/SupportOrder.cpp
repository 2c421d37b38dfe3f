//===- SupportOrder.cpp - Panels of outputs with the same support ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The order that an encoder takes of a shuffled weight when it is given none:
// section 2 of docs/Encoding.md.
//
//===----------------------------------------------------------------------===//

#include "Order.h"
#include "nm_sparse/Base/Fail.h"

#include <numeric>

using namespace nms;

namespace {

/// A set of rows of blocks for each output.
class Supports {
public:
  Supports(int64_t outputs, int64_t rows)
      : rows(rows), words((rows + 63) / 64),
        bits(static_cast<size_t>(outputs * words)) {}

  const uint64_t *of(int64_t output) const {
    return bits.data() + output * words;
  }
  void add(int64_t output, int64_t row) {
    bits[static_cast<size_t>(output * words + row / 64)] |= uint64_t(1)
                                                            << row % 64;
  }
  int64_t size(int64_t output) const {
    return countNew(output, std::vector<uint64_t>(static_cast<size_t>(words)));
  }
  /// Rows of the output that `known` has not.
  int64_t countNew(int64_t output, const std::vector<uint64_t> &known) const {
    const uint64_t *own = of(output);
    int64_t count = 0;
    for (int64_t word = 0; word < words; ++word)
      count +=
          __builtin_popcountll(own[word] & ~known[static_cast<size_t>(word)]);
    return count;
  }
  /// Compares the supports of two outputs, in some order.
  int compare(int64_t a, int64_t b) const {
    return words == 0 ? 0
                      : memcmp(of(a), of(b),
                               static_cast<size_t>(words) * sizeof(uint64_t));
  }

  int64_t rows, words;

private:
  std::vector<uint64_t> bits;
};

/// Forms the panels of some of the outputs that `supports` knows.
class PanelFinder {
public:
  /// `level` says what breaks the pattern, of the level whose rows these are;
  /// null where no panel but the last one may be short.
  PanelFinder(const Supports &supports, int64_t width,
              const NmsPackLevel *level)
      : supports(supports), width(width), level(level) {}

  Panels find(const std::vector<int64_t> &outputs) {
    Panels panels;
    if (width == 1) {
      for (int64_t output : outputs)
        panels.push_back({output});
      return panels;
    }
    takeWhole(outputs, panels);
    auto shortSize = static_cast<int64_t>(outputs.size()) % width;
    bool hasShort = level == nullptr;
    while (!left.empty()) {
      panels.push_back(merge(hasShort ? 0 : shortSize));
      hasShort |= static_cast<int64_t>(panels.back().size()) < width;
    }
    sortPanels(panels, width);
    return panels;
  }

private:
  /// An output that is in no panel yet.
  struct Rest {
    int64_t output, group, size;
    int64_t added = 0; ///< Rows that it would add to the panel at hand.
    bool isTaken = false;
  };

  /// Panels of outputs with the same support; all others are left.
  void takeWhole(std::vector<int64_t> outputs, Panels &panels) {
    std::sort(outputs.begin(), outputs.end(), [&](int64_t a, int64_t b) {
      int order = supports.compare(a, b);
      return order != 0 ? order < 0 : a < b;
    });
    for (size_t first = 0, end; first < outputs.size(); first = end) {
      for (end = first + 1; end < outputs.size() &&
                            supports.compare(outputs[first], outputs[end]) == 0;
           ++end) {
      }
      auto count = static_cast<size_t>(width);
      for (; end - first >= count; first += count)
        panels.emplace_back(outputs.begin() + static_cast<ptrdiff_t>(first),
                            outputs.begin() +
                                static_cast<ptrdiff_t>(first + count));
      for (; first < end; ++first)
        left.push_back({outputs[first], static_cast<int64_t>(alike.size()),
                        supports.size(outputs[first])});
      alike.push_back(0);
    }
    std::sort(left.begin(), left.end(),
              [](const Rest &a, const Rest &b) { return a.output < b.output; });
    for (const Rest &rest : left)
      ++alike[static_cast<size_t>(rest.group)];
  }

  /// The next panel out of what is left, which ends with `shortSize` outputs
  /// where the next one does not belong to it.
  std::vector<int64_t> merge(int64_t shortSize) {
    auto count = [&](const Rest &rest) {
      return alike[static_cast<size_t>(rest.group)];
    };
    // The first of equals, here and below.
    auto first = std::max_element(
        left.begin(), left.end(), [&](const Rest &a, const Rest &b) {
          return count(a) != count(b) ? count(a) < count(b) : a.size < b.size;
        });
    std::vector<uint64_t> known(static_cast<size_t>(supports.words));
    std::vector<int64_t> panel;
    take(*first, known, panel);
    auto most = std::min<int64_t>(width, static_cast<int64_t>(left.size()));
    while (static_cast<int64_t>(panel.size()) < most) {
      auto next = std::min_element(
          left.begin(), left.end(), [](const Rest &a, const Rest &b) {
            if (a.isTaken != b.isTaken)
              return b.isTaken;
            return a.added != b.added ? a.added < b.added : a.size > b.size;
          });
      if (static_cast<int64_t>(panel.size()) == shortSize &&
          isForeign(*next, known))
        break;
      take(*next, known, panel);
    }
    for (const Rest &rest : left)
      alike[static_cast<size_t>(rest.group)] -= rest.isTaken;
    left.erase(std::remove_if(left.begin(), left.end(),
                              [](const Rest &rest) { return rest.isTaken; }),
               left.end());
    std::sort(panel.begin(), panel.end());
    return panel;
  }

  void take(Rest &rest, std::vector<uint64_t> &known,
            std::vector<int64_t> &panel) {
    bool isFirst = panel.empty();
    panel.push_back(rest.output);
    rest.isTaken = true;
    bool grows = isFirst || supports.countNew(rest.output, known) > 0;
    for (int64_t word = 0; word < supports.words; ++word)
      known[static_cast<size_t>(word)] |= supports.of(rest.output)[word];
    if (!grows)
      return;
    for (Rest &other : left)
      if (!other.isTaken)
        other.added = supports.countNew(other.output, known);
  }

  /// True when an output does not belong to a panel that keeps the rows
  /// `known`.
  bool isForeign(const Rest &rest, const std::vector<uint64_t> &known) const {
    if (level->m == 0)
      return 4 * rest.added > rest.size;
    const uint64_t *own = supports.of(rest.output);
    int64_t count = 0;
    for (int64_t row = 0; row < supports.rows; ++row) {
      if (row % level->m == 0)
        count = 0;
      auto both = own[row / 64] | known[static_cast<size_t>(row / 64)];
      count += static_cast<int64_t>(both >> row % 64 & 1);
      if (count > level->n)
        return true;
    }
    return false;
  }

  const Supports &supports;
  int64_t width;
  const NmsPackLevel *level;
  std::vector<Rest> left;
  std::vector<int64_t> alike; ///< Outputs that are left, by their group.
};

/// The rows of blocks of `blockRows` with an element whose bits `mask` leaves.
template <typename T>
Supports getSupports(const NmsPackSpec &spec, const T *dense, int64_t blockRows,
                     T mask) {
  Supports supports(spec.outputs, (spec.k + blockRows - 1) / blockRows);
  auto see = [&](int64_t k, int64_t output) {
    if (static_cast<T>(dense[k * spec.strideK + output * spec.strideN] & mask))
      supports.add(output, k / blockRows);
  };
  if (std::abs(spec.strideK) < std::abs(spec.strideN))
    for (int64_t output = 0; output < spec.outputs; ++output)
      for (int64_t k = 0; k < spec.k; ++k)
        see(k, output);
  else
    for (int64_t k = 0; k < spec.k; ++k)
      for (int64_t output = 0; output < spec.outputs; ++output)
        see(k, output);
  return supports;
}

template <typename T>
void findOrder(const NmsPackSpec &spec, const T *dense, T sign,
               uint32_t *perm) {
  // A free level keeps a -0, too.
  T mask = static_cast<T>(isFree(spec) ? ~T(0) : ~sign);
  const NmsPackLevel &outer = spec.levels[0];
  std::vector<int64_t> all(static_cast<size_t>(spec.outputs));
  std::iota(all.begin(), all.end(), 0);
  Supports blocks = getSupports(spec, dense, outer.bk, mask);
  Panels panels = PanelFinder(blocks, outer.bn, &outer).find(all);
  if (spec.levelCount == 2 && spec.levels[1].bn > 1) {
    Supports strips = getSupports(spec, dense, spec.levels[1].bk, mask);
    for (std::vector<int64_t> &panel : panels) {
      Panels parts =
          PanelFinder(strips, spec.levels[1].bn, nullptr).find(panel);
      panel.clear();
      for (const std::vector<int64_t> &part : parts)
        panel.insert(panel.end(), part.begin(), part.end());
    }
  }
  for (const std::vector<int64_t> &panel : panels)
    for (int64_t output : panel)
      *perm++ = static_cast<uint32_t>(output);
}

} // namespace

extern "C" int nmsFindOrder(const NmsPackSpec *spec, const void *dense,
                            uint32_t *perm) {
  if (checkAnySpec(spec, "find order", Elements::Scores))
    return 1;
  if (spec->batch * spec->outputs == 0)
    return 0;
  if (!perm || (spec->k > 0 && !dense))
    return fail("find order: an array is null");
  return dispatchBits(static_cast<int32_t>(spec->kind), [&](auto, auto sign) {
    using T = decltype(sign);
    for (int64_t batch = 0; batch < spec->batch; ++batch)
      findOrder<T>(*spec, static_cast<const T *>(dense) + batch * spec->strideB,
                   sign, perm + batch * spec->outputs);
    return 0;
  });
}
