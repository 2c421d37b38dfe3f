//===- PanelSearch.cpp - Outputs of similar importance --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Steps 2 to 4 of the search of section 3 of docs/Encoding.md. Sums are of
// whole numbers, and so exact: they are made in any order, on several threads.
//
//===----------------------------------------------------------------------===//

#include "PanelSearch.h"
#include "Parallel.h"

#include <limits>
#include <numeric>

using namespace nms;

namespace {

// Elements that the first stage reads at most, and products of the second one.
constexpr int64_t readLimit = int64_t(1) << 33;
constexpr int64_t multiplyLimit = int64_t(1) << 37;
constexpr int64_t leastRows = 64, mostPasses = 10, mostRounds = 16;
constexpr int64_t chunk = 16; // outputs or panels of a task

int64_t divideCeil(int64_t a, int64_t b) { return (a + b - 1) / b; }

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

/// The sum of the numbers of an output in some rows.
uint64_t sumRows(const uint64_t *numbers, const std::vector<int64_t> &rows) {
  uint64_t sum = 0;
  for (int64_t row : rows)
    sum += numbers[row];
  return sum;
}

std::vector<int64_t> listMarked(const uint8_t *marks, int64_t count) {
  std::vector<int64_t> marked;
  for (int64_t i = 0; i < count; ++i)
    if (marks[i])
      marked.push_back(i);
  return marked;
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

/// What each output would keep in each panel.
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
    Numbers sampled = sample(q, keep, width, seed);
    Grower(sampled, keep, width).run(panel, report);
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
