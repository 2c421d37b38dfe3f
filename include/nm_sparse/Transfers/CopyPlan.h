//===- CopyPlan.h - which thread copies which chunk -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The threads of a CTA share a tile in chunks of up to 16 bytes, each thread
// one chunk a round. A plan says which: it is arithmetic on the number of the
// thread, written once for numbers, so that it can be tested, and for values of
// the IR, so that it can be emitted.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_TRANSFERS_COPYPLAN_H
#define NM_SPARSE_TRANSFERS_COPYPLAN_H

#include <algorithm>
#include <cstdint>
#include <optional>

namespace mlir::nm_sparse {

/// Arithmetic of a plan on plain numbers; IndexMath is that on values.
struct NumberMath {
  using Value = int64_t;
  static int64_t add(int64_t a, int64_t b) { return a + b; }
  static int64_t mul(int64_t a, int64_t b) { return a * b; }
  static int64_t div(int64_t a, int64_t b) { return a / b; }
  static int64_t rem(int64_t a, int64_t b) { return a % b; }
  static int64_t bitXor(int64_t a, int64_t b) { return a ^ b; }
  static int64_t constant(int64_t v) { return v; }
};

/// Returns the mask that is combined by exclusive or with the columns of row
/// `row`, if the 16-byte words of the row are in the order `word ^ (row % 8)`:
/// eight rows of one column lie in different banks.
template <typename Math>
typename Math::Value getSwizzleKey(const Math &math, typename Math::Value row,
                                   int64_t elementBytes) {
  return math.mul(math.rem(row, 8), 16 / elementBytes);
}

/// First element of a chunk in the destination.
template <typename V>
struct ChunkPlace {
  V row, column;
};

/// Number of a chunk along the dimension that neighbouring threads go along,
/// and along the other one.
template <typename V>
struct ChunkDigits {
  V fast, slow;
};

class CopyPlan {
public:
  /// A destination of `rows` x `columns` elements, copied by `threads` threads
  /// in chunks of `width` elements of a row.
  struct Shape {
    int64_t rows, columns, threads, width;
  };

  enum class Order {
    /// Neighbouring threads take neighbouring chunks of a row.
    ColumnsFirst,
    /// Neighbouring threads take neighbouring rows.
    RowsFirst,
    /// A warp takes 8 rows of 4 single elements, for a copy that transposes.
    /// The rows are one 32-byte sector of a source of 4-byte elements, and
    /// where rows of the destination are 4 words more than whole lines of
    /// banks, all elements lie in different banks.
    Interleaved,
    /// Each warp takes whole rows, or several at a time where they have less
    /// than 32 chunks. Then the chunks of a row have one address, and a warp
    /// looks up to 32 rows of a gather up at once, one in each lane: 2 to 5
    /// instructions a row instead of 3 to 12 a chunk.
    WholeRows,
    /// Neighbouring threads take neighbouring chunks of a line, and each thread
    /// the same chunk of all lines of its rows, however many these are: what it
    /// looks up is for the whole row, whose chunks are constants apart in the
    /// source and, where lines are blocks, in the destination.
    Lines
  };

  /// Chunk after chunk, in ColumnsFirst or RowsFirst order. The loads of
  /// `batch` rounds are in flight together, and more than twice as many rounds
  /// form a loop.
  static CopyPlan chunkByChunk(Shape shape, bool rowsFirst, int64_t batch);
  /// Returns none if the tile does not divide that way.
  static std::optional<CopyPlan> interleaved(Shape shape, int64_t batch);
  static std::optional<CopyPlan> wholeRows(Shape shape);
  /// In lines of `line` elements, `batch` rows of a thread at a time. Nothing
  /// where rows are no whole lines, or where a thread would have so many that
  /// they should be a loop.
  static std::optional<CopyPlan> lines(Shape shape, int64_t line,
                                       int64_t batch);

  const Shape &getShape() const { return shape; }
  Order getOrder() const { return order; }
  int64_t getBatch() const { return batch; }

  /// Rounds that all threads take part in, and the number of threads, the first
  /// ones, that take part in one more.
  int64_t getRounds() const { return rounds; }
  int64_t getStragglers() const { return getChunks() - rounds * getCopiers(); }
  /// The first threads, without those that would have no part of a round.
  int64_t getCopiers() const {
    return order == Order::Lines ? getLineRows() * getChunksOfLine()
                                 : shape.threads;
  }
  /// The first rounds, whole batches of them, that are a loop.
  int64_t getLoopedRounds() const;

  /// The place in a round is that in the first one and an offset that is the
  /// same for all threads.
  bool hasOffsets() const;
  ChunkPlace<int64_t> getOffset(int64_t round) const;

  /// Returns the place that `thread` copies in `round`.
  template <typename Math>
  ChunkPlace<typename Math::Value>
  getPlace(const Math &math, typename Math::Value thread, int64_t round) const;

  // In the orders that go chunk by chunk a thread copies chunk number
  // `thread + round * threads`.
  bool goesByChunk() const {
    return order == Order::ColumnsFirst || order == Order::RowsFirst;
  }
  template <typename Math>
  ChunkDigits<typename Math::Value>
  getDigits(const Math &math, typename Math::Value number) const;
  /// Returns the place of the chunk with these digits, or of the one that its
  /// thread copies `rounds` later, if places have offsets.
  template <typename Math>
  ChunkPlace<typename Math::Value>
  getPlaceOf(const Math &math, ChunkDigits<typename Math::Value> digits,
             int64_t rounds = 0) const;

  // In WholeRows order, `rowRound` counts rounds that have rows of their own:
  // each is getRoundsOfRow() rounds, of which the columns differ.
  int64_t getRoundsOfRow() const {
    return std::max<int64_t>(1, getChunksOfRow() / kWarp);
  }
  int64_t getRowRounds() const { return rounds / getRoundsOfRow(); }
  /// Rows of a warp in each round.
  int64_t getRowsTogether() const {
    return std::max<int64_t>(1, kWarp / getChunksOfRow());
  }
  /// Row rounds whose rows the lanes of a warp look up for each other at once.
  int64_t getRowRoundsOfLookup() const { return kWarp / getRowsTogether(); }
  /// The row that `thread` looks up for row round `rowRound` and those behind
  /// it that share the look-up.
  template <typename Math>
  typename Math::Value getLookedUpRow(const Math &math,
                                      typename Math::Value thread,
                                      int64_t rowRound) const;
  /// The lane that has looked up the row of `thread` in the first row round of
  /// a look-up; in each one after it, getRowsTogether() further.
  template <typename Math>
  typename Math::Value getLookupLane(const Math &math,
                                     typename Math::Value thread) const;

  // In Lines order, the lines of a row follow each other.
  int64_t getLinesOfRow() const { return shape.columns / line; }
  /// Rows of a round: the most that the threads can share evenly.
  int64_t getLineRows() const {
    int64_t most = std::min(shape.rows, shape.threads / getChunksOfLine());
    while (shape.rows % most != 0)
      --most;
    return most;
  }

private:
  CopyPlan(Shape shape, Order order, int64_t batch, int64_t rounds)
      : shape(shape), order(order), batch(batch), rounds(rounds) {}

  static constexpr int64_t kWarp = 32;

  int64_t getChunksOfRow() const { return shape.columns / shape.width; }
  int64_t getChunks() const { return shape.rows * getChunksOfRow(); }
  /// Chunks along the dimension that neighbouring threads go along.
  int64_t getFastChunks() const {
    return order == Order::RowsFirst ? shape.rows : getChunksOfRow();
  }
  /// Rows and columns of one round in Interleaved order.
  int64_t getRoundRows() const {
    return std::min(shape.rows, shape.threads / 4);
  }
  int64_t getRoundColumns() const { return shape.threads / getRoundRows(); }
  /// Rows from one round to the next in WholeRows order.
  int64_t getRowStep() const {
    return shape.threads / kWarp * getRowsTogether();
  }
  int64_t getChunksOfLine() const { return line / shape.width; }

  Shape shape;
  Order order;
  int64_t batch, rounds;
  /// Elements of a line in Lines order.
  int64_t line = 0;
};

template <typename Math>
ChunkDigits<typename Math::Value>
CopyPlan::getDigits(const Math &math, typename Math::Value number) const {
  typename Math::Value fast = math.rem(number, getFastChunks());
  return {fast, math.div(number, getFastChunks())};
}

template <typename Math>
ChunkPlace<typename Math::Value>
CopyPlan::getPlaceOf(const Math &math, ChunkDigits<typename Math::Value> digits,
                     int64_t rounds) const {
  int64_t step = shape.threads / getFastChunks();
  typename Math::Value slow = math.add(digits.slow, rounds * step);
  if (order == Order::RowsFirst)
    return {digits.fast, math.mul(slow, shape.width)};
  return {slow, math.mul(digits.fast, shape.width)};
}

template <typename Math>
ChunkPlace<typename Math::Value> CopyPlan::getPlace(const Math &math,
                                                    typename Math::Value thread,
                                                    int64_t round) const {
  using V = typename Math::Value;
  if (goesByChunk() && hasOffsets())
    return getPlaceOf(math, getDigits(math, thread), round);
  if (goesByChunk())
    return getPlaceOf(math,
                      getDigits(math, math.add(thread, round * shape.threads)));
  V warp = math.div(thread, kWarp), lane = math.rem(thread, kWarp);
  V row, column;
  if (order == Order::Lines) {
    row = math.div(thread, getChunksOfLine());
    column = math.mul(math.rem(thread, getChunksOfLine()), shape.width);
  } else if (order == Order::Interleaved) {
    int64_t across = getRoundRows() / 8;
    row = math.add(math.rem(thread, 8), math.mul(math.rem(warp, across), 8));
    column = math.add(math.div(lane, 8), math.mul(math.div(warp, across), 4));
  } else {
    V laneRow = math.div(lane, getChunksOfRow());
    column = math.mul(math.rem(lane, getChunksOfRow()), shape.width);
    row = math.add(math.mul(warp, getRowsTogether()), laneRow);
  }
  ChunkPlace<int64_t> offset = getOffset(round);
  return {math.add(row, offset.row), math.add(column, offset.column)};
}

template <typename Math>
typename Math::Value CopyPlan::getLookedUpRow(const Math &math,
                                              typename Math::Value thread,
                                              int64_t rowRound) const {
  using V = typename Math::Value;
  int64_t together = getRowsTogether();
  // The last lanes repeat the first ones where fewer rows are left.
  int64_t left =
      std::min(getRowRoundsOfLookup(), getRowRounds() - rowRound) * together;
  V lane = math.rem(thread, kWarp), warp = math.div(thread, kWarp);
  V mine = math.rem(lane, left);
  V row =
      math.add(math.mul(math.div(mine, together), getRowStep()),
               math.add(math.mul(warp, together), math.rem(mine, together)));
  return math.add(row, math.constant(rowRound * getRowStep()));
}

template <typename Math>
typename Math::Value
CopyPlan::getLookupLane(const Math &math, typename Math::Value thread) const {
  return math.div(math.rem(thread, kWarp), getChunksOfRow());
}

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_TRANSFERS_COPYPLAN_H
