//===- PanelGrowth.cpp - The first panels of a search ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Step 2 of the search of section 3 of docs/Encoding.md.
//
//===----------------------------------------------------------------------===//

#include "PanelSearch.h"
#include "nm_sparse/Base/Parallel.h"

#include <numeric>

using namespace nms;

namespace {

constexpr int64_t readLimit = int64_t(1) << 33; // elements that are read
constexpr int64_t leastRows = 64;
constexpr int64_t chunk = 16; // outputs of a task

/// Draws numbers as SplitMix64 does.
class Draws {
public:
  explicit Draws(uint64_t seed) : state(seed) {}

  uint64_t next() {
    uint64_t z = state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

private:
  uint64_t state;
};

/// Some windows, so many that growing panels ends soon: all of them, mostly.
Numbers sample(const Numbers &q, const KeptRows &keep, int64_t width,
               uint64_t seed) {
  int64_t doublings = 0;
  while (int64_t(1) << doublings < width)
    ++doublings;
  int64_t work = divideCeil(q.rows, width) * q.rows * doublings;
  int64_t windows = q.columns / keep.m;
  int64_t wanted =
      std::max<int64_t>(std::max(2 * readLimit / work, leastRows) / keep.m, 1);
  if (wanted >= windows)
    return q;
  std::vector<int64_t> numbers(static_cast<size_t>(windows));
  std::iota(numbers.begin(), numbers.end(), 0);
  Draws draws(seed);
  for (int64_t at = 0; at < wanted; ++at)
    std::swap(numbers[static_cast<size_t>(at)],
              numbers[static_cast<size_t>(at) +
                      draws.next() % static_cast<uint64_t>(windows - at)]);
  numbers.resize(static_cast<size_t>(wanted));
  std::sort(numbers.begin(), numbers.end());
  Numbers chosen(q.rows, wanted * keep.m);
  for (int64_t output = 0; output < q.rows; ++output)
    for (int64_t at = 0; at < wanted; ++at)
      std::copy_n(q[output] + numbers[static_cast<size_t>(at)] * keep.m, keep.m,
                  chosen[output] + at * keep.m);
  return chosen;
}

/// Grows panels one after the other.
class Grower {
public:
  Grower(const Numbers &q, const KeptRows &keep, int64_t width)
      : q(q), keep(keep), width(width), left(static_cast<size_t>(q.rows)),
        total(left.size()) {
    std::iota(left.begin(), left.end(), 0);
    for (int64_t output = 0; output < q.rows; ++output)
      total[static_cast<size_t>(output)] =
          std::accumulate(q[output], q[output] + q.columns, uint64_t(0));
  }

  /// Fills in the panel of each output.
  void run(std::vector<int64_t> &panel, const std::function<void()> &step) {
    int64_t number = 0;
    for (; static_cast<int64_t>(left.size()) > width; ++number, step())
      for (int64_t output : grow())
        panel[static_cast<size_t>(output)] = number;
    for (int64_t output : left)
      panel[static_cast<size_t>(output)] = number;
    step();
  }

private:
  /// From the most important output that is left, twice as many in each step:
  /// those of whose importance the largest share is in the rows that the panel
  /// would keep so far.
  std::vector<int64_t> grow() {
    auto isLess = [&](int64_t a, int64_t b) { return totalOf(a) < totalOf(b); };
    auto first = std::max_element(left.begin(), left.end(), isLess);
    std::vector<int64_t> panel = {*first};
    left.erase(first);
    Numbers sums(1, q.columns);
    add(panel.front(), sums);
    while (static_cast<int64_t>(panel.size()) < width) {
      std::vector<uint8_t> marks = keep.choose(sums);
      std::vector<double> share =
          getShares(listMarked(marks.data(), q.columns));
      std::vector<int64_t> order(left.size());
      std::iota(order.begin(), order.end(), 0);
      auto size = static_cast<int64_t>(panel.size());
      auto more = order.begin() + std::min(size, width - size);
      std::nth_element(order.begin(), more, order.end(),
                       [&](int64_t a, int64_t b) {
                         double of = share[static_cast<size_t>(a)];
                         double other = share[static_cast<size_t>(b)];
                         return of != other ? of > other : a < b;
                       });
      for (auto it = order.begin(); it != more; ++it) {
        panel.push_back(left[static_cast<size_t>(*it)]);
        add(panel.back(), sums);
        left[static_cast<size_t>(*it)] = -1;
      }
      left.erase(std::remove(left.begin(), left.end(), -1), left.end());
    }
    return panel;
  }

  uint64_t totalOf(int64_t output) const {
    return total[static_cast<size_t>(output)];
  }

  void add(int64_t output, Numbers &sums) const {
    for (int64_t row = 0; row < q.columns; ++row)
      sums[0][row] += q[output][row];
  }

  std::vector<double> getShares(const std::vector<int64_t> &rows) const {
    std::vector<double> share(left.size());
    parallelChunks(static_cast<int64_t>(left.size()), chunk,
                   [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i) {
                       int64_t output = left[static_cast<size_t>(i)];
                       share[static_cast<size_t>(i)] =
                           static_cast<double>(sumRows(q[output], rows)) /
                           static_cast<double>(
                               std::max<uint64_t>(totalOf(output), 1));
                     }
                   });
    return share;
  }

  const Numbers &q;
  const KeptRows &keep;
  int64_t width;
  std::vector<int64_t> left;
  std::vector<uint64_t> total;
};

} // namespace

std::vector<int64_t> nms::growPanels(const Numbers &importance,
                                     const KeptRows &keep, int64_t width,
                                     uint64_t seed,
                                     const std::function<void()> &step) {
  std::vector<int64_t> panel(static_cast<size_t>(importance.rows));
  Numbers sampled = sample(importance, keep, width, seed);
  Grower(sampled, keep, width).run(panel, step);
  return panel;
}
