//===- PanelSearch.cpp - Outputs of similar importance --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Steps 3 and 4 of the search of section 3 of docs/Encoding.md. Sums are of
// whole numbers, and so exact: they are made in any order, on several threads.
//
//===----------------------------------------------------------------------===//

#include "PanelSearch.h"
#include "nm_sparse/Base/Parallel.h"

#include <limits>
#include <numeric>

using namespace nms;

namespace {

constexpr int64_t multiplyLimit = int64_t(1) << 37; // products of all passes
constexpr int64_t mostPasses = 10, mostRounds = 16;
constexpr int64_t chunk = 16; // outputs of a task

/// The importance that each output would keep in each panel.
Numbers getGains(const Numbers &q, const KeptRows &keep,
                 const std::vector<int64_t> &panel, int64_t count) {
  std::vector<std::vector<int64_t>> members(static_cast<size_t>(count));
  for (int64_t output = 0; output < q.rows; ++output)
    members[static_cast<size_t>(panel[static_cast<size_t>(output)])].push_back(
        output);
  Numbers sums(count, q.columns);
  parallelTasks(count, [&](int64_t p) {
    for (int64_t output : members[static_cast<size_t>(p)])
      for (int64_t row = 0; row < q.columns; ++row)
        sums[p][row] += q[output][row];
  });
  std::vector<uint8_t> marks = keep.choose(sums);
  std::vector<std::vector<int64_t>> rows;
  rows.reserve(static_cast<size_t>(count));
  for (int64_t p = 0; p < count; ++p)
    rows.push_back(listMarked(marks.data() + p * q.columns, q.columns));
  Numbers gain(q.rows, count);
  parallelChunks(q.rows, chunk, [&](int64_t begin, int64_t end) {
    for (int64_t p = 0; p < count; ++p)
      for (int64_t output = begin; output < end; ++output)
        gain[output][p] = sumRows(q[output], rows[static_cast<size_t>(p)]);
  });
  return gain;
}

/// Swaps outputs between panels as long as that gains.
class Swapper {
public:
  Swapper(const Numbers &gain, std::vector<int64_t> &panel, int64_t count)
      : gain(gain), panel(panel), count(count) {}

  /// Returns whether any did.
  bool run() {
    bool anySwap = false;
    for (int64_t round = 0; round < mostRounds && runRound(); ++round)
      anySwap = true;
    return anySwap;
  }

private:
  int64_t getChange(int64_t output, int64_t to) const {
    int64_t own = panel[static_cast<size_t>(output)];
    return static_cast<int64_t>(gain[output][to]) -
           static_cast<int64_t>(gain[output][own]);
  }

  /// Panels that gain most from each other, of equals the first ones, swap.
  bool runRound() {
    members.assign(static_cast<size_t>(count), {});
    for (int64_t output = 0; output < gain.rows; ++output)
      members[static_cast<size_t>(panel[static_cast<size_t>(output)])]
          .push_back(output);
    std::vector<int64_t> best(static_cast<size_t>(count * count));
    parallelTasks(count, [&](int64_t from) {
      for (int64_t to = 0; to < count; ++to) {
        int64_t most = std::numeric_limits<int64_t>::min();
        for (int64_t output : members[static_cast<size_t>(from)])
          most = std::max(most, getChange(output, to));
        best[static_cast<size_t>(from * count + to)] = most;
      }
    });
    std::vector<int64_t> partner(static_cast<size_t>(count));
    std::vector<int64_t> most(partner.size());
    for (int64_t a = 0; a < count; ++a)
      for (int64_t b = 0; b < count; ++b) {
        int64_t both = a == b ? 0
                              : best[static_cast<size_t>(a * count + b)] +
                                    best[static_cast<size_t>(b * count + a)];
        if (b > 0 && both <= most[static_cast<size_t>(a)])
          continue;
        partner[static_cast<size_t>(a)] = b;
        most[static_cast<size_t>(a)] = both;
      }
    bool isSwapped = false;
    for (int64_t a = 0; a < count; ++a) {
      int64_t b = partner[static_cast<size_t>(a)];
      if (a >= b || partner[static_cast<size_t>(b)] != a ||
          most[static_cast<size_t>(a)] <= 0)
        continue;
      swap(a, b);
      isSwapped = true;
    }
    return isSwapped;
  }

  /// The outputs that gain most, as long as both together do.
  void swap(int64_t a, int64_t b) {
    std::vector<int64_t> ours = rank(a, b), theirs = rank(b, a);
    for (size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i) {
      if (getChange(ours[i], b) + getChange(theirs[i], a) <= 0)
        break;
      panel[static_cast<size_t>(ours[i])] = b;
      panel[static_cast<size_t>(theirs[i])] = a;
    }
  }

  std::vector<int64_t> rank(int64_t from, int64_t to) const {
    std::vector<int64_t> outputs = members[static_cast<size_t>(from)];
    std::sort(outputs.begin(), outputs.end(), [&](int64_t x, int64_t y) {
      int64_t first = getChange(x, to), second = getChange(y, to);
      return first != second ? first > second : x < y;
    });
    return outputs;
  }

  const Numbers &gain;
  std::vector<int64_t> &panel;
  int64_t count;
  std::vector<std::vector<int64_t>> members;
};

/// Marks the `count` largest of `size` numbers, of equals the first ones.
void markLargest(const uint64_t *numbers, int64_t size, int64_t count,
                 uint8_t *marks) {
  std::vector<int64_t> order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  std::nth_element(order.begin(), order.begin() + count, order.end(),
                   [&](int64_t a, int64_t b) {
                     return numbers[a] != numbers[b] ? numbers[a] > numbers[b]
                                                     : a < b;
                   });
  for (int64_t i = 0; i < count; ++i)
    marks[order[static_cast<size_t>(i)]] = 1;
}

} // namespace

/// The sum of the numbers of an output in some rows.
uint64_t nms::sumRows(const uint64_t *numbers,
                      const std::vector<int64_t> &rows) {
  uint64_t sum = 0;
  for (int64_t row : rows)
    sum += numbers[row];
  return sum;
}

std::vector<int64_t> nms::listMarked(const uint8_t *marks, int64_t count) {
  std::vector<int64_t> marked;
  for (int64_t i = 0; i < count; ++i)
    if (marks[i])
      marked.push_back(i);
  return marked;
}

std::vector<uint8_t> KeptRows::choose(const Numbers &sums) const {
  std::vector<uint8_t> marks(sums.data.size());
  auto size = static_cast<int64_t>(marks.size());
  if (n == 0) {
    markLargest(sums.data.data(), size, countKept(density, size), marks.data());
    return marks;
  }
  for (int64_t first = 0; first < size; first += m)
    markLargest(sums.data.data() + first, m, n, marks.data() + first);
  return marks;
}

Numbers nms::padColumns(const Numbers &numbers, int64_t multiple) {
  int64_t columns = divideCeil(numbers.columns, multiple) * multiple;
  if (columns == numbers.columns)
    return numbers;
  Numbers padded(numbers.rows, columns);
  for (int64_t row = 0; row < numbers.rows; ++row)
    std::copy_n(numbers[row], numbers.columns, padded[row]);
  return padded;
}

Panels nms::searchPanels(const Numbers &importance, const KeptRows &keep,
                         int64_t width, uint64_t seed,
                         const std::function<void(int64_t)> &step) {
  int64_t outputs = importance.rows, count = divideCeil(outputs, width);
  std::vector<int64_t> panel(static_cast<size_t>(outputs));
  if (width == 1 || count <= 1) {
    for (int64_t output = 0; output < outputs; ++output)
      panel[static_cast<size_t>(output)] = output / width;
  } else {
    Numbers q = padColumns(importance, keep.m);
    int64_t products = std::max<int64_t>(q.rows * q.columns * count, 1);
    int64_t passes = std::min(mostPasses, multiplyLimit / products);
    auto report = [&] { step(count + passes); };
    panel = growPanels(q, keep, width, seed, report);
    for (int64_t pass = 0; pass < passes; ++pass) {
      report();
      Numbers gain = getGains(q, keep, panel, count);
      if (!Swapper(gain, panel, count).run())
        break;
    }
  }
  Panels panels(static_cast<size_t>(count));
  for (int64_t output = 0; output < outputs; ++output)
    panels[static_cast<size_t>(panel[static_cast<size_t>(output)])].push_back(
        output);
  sortPanels(panels, width);
  return panels;
}
