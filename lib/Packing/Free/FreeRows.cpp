//===- FreeRows.cpp - Rows that blocks of free elements keep --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FreeRows.h"
#include "nm_sparse/Base/Fail.h"

#include <array>

using namespace nms;
using namespace nms::free_bitmap;

namespace {

/// The row behind the last one of each output, K behind the last of all.
using Rows = std::array<int64_t, blockOutputs>;

/// The words behind the bits of a block: which piece its first one is, pieces
/// in which all outputs have a row for each value, and all pieces. First rows
/// of segments follow.
struct Trailer {
  explicit Trailer(int64_t tiles)
      : words(static_cast<size_t>(tiles * (tileWords - tileBits))) {}

  void add(int64_t segment, const Rows &rows) {
    int64_t base = *std::min_element(rows.begin(), rows.end());
    auto own = words.begin() + headerWords + segment * segmentWords;
    own[0] = static_cast<uint32_t>(base);
    for (int64_t o = 0; o < blockOutputs; ++o)
      own[1 + o / 4] |= static_cast<uint32_t>(rows[o] - base) << o % 4 * 8;
  }
  void finish(int64_t first, int64_t whole, int64_t pieces) {
    words[0] = static_cast<uint32_t>(first);
    words[1] = static_cast<uint32_t>(whole);
    words[2] = static_cast<uint32_t>(pieces);
  }

  std::vector<uint32_t> words;
};

/// Checks the rows of an output, of which the block has `values`.
int checkOutput(const char *entry, const Blocks &t, const Kept &kept,
                int64_t number, int64_t o) {
  const std::vector<int64_t> &rows = kept.rows[o];
  int64_t output = t.firstOutput(number) + o, k = t.spec.k;
  auto size = static_cast<int64_t>(rows.size());
  const char *wrong = nullptr;
  int64_t row = size > 0 ? rows.back() : -1;
  if (row >= k)
    wrong = "past the end of the weight";
  else if (size < kept.pieces * t.pieceValues && row != k - 1)
    wrong = "as its last one, before others of its block end";
  for (int64_t i = 0; i < size && !wrong; ++i) {
    row = rows[static_cast<size_t>(i)];
    if (row - kept.getStart(o, i / groupValues * groupValues) >= groupRows)
      wrong = "more than 31 rows behind its last group";
  }
  if (!wrong)
    return 0;
  return fail(
      "%s: output %lld (batch %lld) keeps row %lld, %s; the bits are damaged "
      "or of another shape",
      entry, ll(output), ll(t.batchOf(number)), ll(row), wrong);
}

} // namespace

int64_t free_bitmap::chooseRows(const Blocks &t, const RowBits &live,
                                RowBits kept, uint32_t *words) {
  Trailer trailer(t.tiles);
  int64_t k = t.spec.k, whole = -1, value = 0;
  Rows rows{}, starts{}, next{};
  for (int64_t o = 0; o < blockOutputs; ++o)
    next[o] = live.next(o, 0);
  for (;; ++value) {
    if (value % t.pieceValues == 0 &&
        std::all_of(next.begin(), next.end(),
                    [&](int64_t row) { return row == k; }))
      break;
    if (value % segmentValues == 0)
      trailer.add(value / segmentValues, rows);
    if (value % groupValues == 0)
      starts = rows;
    int64_t end = *std::min_element(rows.begin(), rows.end()) + windowRows;
    for (int64_t o = 0; o < blockOutputs; ++o) {
      int64_t left = groupValues - value % groupValues;
      int64_t last = std::min({starts[o] + groupRows - left, end - 1, k - 1});
      int64_t row = next[o] <= last ? next[o] : std::max(rows[o], last);
      if (row >= k) {
        whole = whole < 0 ? value / t.pieceValues : whole;
        continue;
      }
      kept.set(o, row);
      rows[o] = row + 1;
      if (row == next[o])
        next[o] = live.next(o, row + 1);
    }
  }
  int64_t pieces = value / t.pieceValues;
  trailer.finish(0, whole < 0 ? pieces : whole, pieces);
  std::copy(trailer.words.begin(), trailer.words.end(), words);
  return pieces;
}

int free_bitmap::checkBlock(const char *entry, const Blocks &t,
                            const Kept &kept, int64_t number,
                            const uint32_t *words, int64_t first,
                            int64_t pieces) {
  int64_t batch = t.batchOf(number), block = number % t.blocks;
  for (int64_t o = 0; o < blockOutputs; ++o)
    if (checkOutput(entry, t, kept, number, o))
      return 1;
  Trailer trailer(t.tiles);
  int64_t values = kept.pieces * t.pieceValues;
  for (int64_t value = 0; value < values; value += segmentValues) {
    Rows starts;
    for (int64_t o = 0; o < blockOutputs; ++o)
      starts[o] = kept.getStart(o, value);
    auto [least, most] = std::minmax_element(starts.begin(), starts.end());
    if (*most - *least > 255)
      return fail(
          "%s: block %lld (batch %lld) has outputs whose rows are %lld apart "
          "at value %lld: legal are 255; the bits are damaged",
          entry, ll(block), ll(batch), ll(*most - *least), ll(value));
    trailer.add(value / segmentValues, starts);
  }
  trailer.finish(first, kept.whole, kept.pieces);
  for (size_t i = 0; i < trailer.words.size(); ++i)
    if (words[i] != trailer.words[i])
      return fail("%s: word %lld behind the bits of block %lld (batch %lld) is "
                  "%lld, but they say %lld; they are damaged or of another "
                  "shape",
                  entry, ll(static_cast<int64_t>(i)), ll(block), ll(batch),
                  ll(words[i]), ll(trailer.words[i]));
  if (first + kept.pieces > pieces)
    return fail("%s: block %lld (batch %lld) ends with piece %lld, but there "
                "are %lld; values and bits belong to different weights",
                entry, ll(block), ll(batch), ll(first + kept.pieces),
                ll(pieces));
  return 0;
}
