//===- PruneElements.h - Keeping the largest elements -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Blocks of one element need no sums. Small keys stand for their squares, and
// an element stays when fewer than n others of its window come before it: many
// columns are compared at once, without branches.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_PACKING_NM_PRUNEELEMENTS_H
#define NM_SPARSE_LIB_PACKING_NM_PRUNEELEMENTS_H

#include "../Spec/PackTile.h"
#include "nm_sparse/Base/Element.h"

#include <limits>
#include <type_traits>

namespace nms {

/// Numbers in the order of the squares of elements; each NaN counts as
/// infinite. Those of floats are their bits without the sign, which infinity
/// limits.
template <typename Integer, Integer Infinity>
struct FloatKey {
  using Key = Integer;
  template <typename T>
  static Key get(T value) {
    using Bits = std::make_unsigned_t<Integer>;
    constexpr auto magnitude = static_cast<Bits>(static_cast<Bits>(-1) >> 1);
    return std::min(static_cast<Key>(bitCast<Bits>(value) & magnitude),
                    Infinity);
  }
};

template <typename E>
struct ElementKey;
template <>
struct ElementKey<Element<NMS_F32>> : FloatKey<int32_t, 0x7f800000> {};
template <>
struct ElementKey<Element<NMS_F16>> : FloatKey<int16_t, 0x7c00> {};
template <>
struct ElementKey<Element<NMS_BF16>> : FloatKey<int16_t, 0x7f80> {};
template <>
struct ElementKey<Element<NMS_F8E5M2>> : FloatKey<int8_t, 0x7c> {};
template <>
struct ElementKey<Element<NMS_F8E4M3FN>> : FloatKey<int8_t, 0x7f> {};
template <>
struct ElementKey<Element<NMS_I8>> {
  using Key = int16_t;
  static Key get(int8_t value) {
    return static_cast<Key>(value < 0 ? -value : value);
  }
};
/// The square of a small double is 0, so that its bits would say too much.
template <>
struct ElementKey<Element<NMS_F64>> {
  using Key = double;
  static Key get(double value) {
    double square = value * value;
    return square == square ? square : std::numeric_limits<double>::infinity();
  }
};

/// Windows in which each element is compared with each other one; of longer
/// ones a selection is faster.
constexpr int64_t mostComparedElements = 64;

template <typename E>
constexpr bool hasElementKey = !std::is_same_v<E, Element<NMS_I32>>;

/// Chooses n of every m elements of tiles.
template <typename E>
class ElementPruner {
public:
  using T = typename E::Storage;

  ElementPruner(const LevelSpec &spec, const PackGeometry &g)
      : n(spec.n), m(spec.m),
        columns((g.tileColumns + lanes - 1) / lanes * lanes),
        keys(static_cast<size_t>(m * columns)) {}

  /// Clears what does not stay in `target`, which may be `tile` itself.
  template <typename U>
  void prune(const WindowTile<T> &tile, int64_t tileColumns,
             WindowTile<U> &target) {
    for (int64_t position = 0; position < m; ++position)
      std::transform(tile.row(position), tile.row(position) + tileColumns,
                     row(position),
                     [](T value) { return ElementKey<E>::get(value); });
    for (int64_t column = 0; column < tileColumns; column += lanes)
      for (int64_t position = 0; position < m; ++position)
        keepOrClear(target.row(position) + column, position, column,
                    std::min(tileColumns - column, lanes));
  }

private:
  using Key = typename ElementKey<E>::Key;
  static constexpr int64_t lanes = 64 / sizeof(Key);
  // Loops over arrays are not always made vectors of.
  typedef Key Keys __attribute__((vector_size(64)));
  using Counts = decltype(Keys() < Keys()); // -1 where it is true

  Key *row(int64_t position) { return keys.data() + position * columns; }

  void load(int64_t position, int64_t column, Keys &loaded) {
    memcpy(&loaded, row(position) + column, sizeof(loaded));
  }

  template <typename U>
  void keepOrClear(U *elements, int64_t position, int64_t column,
                   int64_t count) {
    Keys own, key;
    load(position, column, own);
    Counts before = {};
    // The first of equal ones wins.
    for (int64_t other = 0; other < position; ++other) {
      load(other, column, key);
      before -= key >= own;
    }
    for (int64_t other = position + 1; other < m; ++other) {
      load(other, column, key);
      before -= key > own;
    }
    Counts stays = before < static_cast<Key>(n);
    std::remove_reference_t<decltype(stays[0])> marks[lanes];
    memcpy(marks, &stays, sizeof(marks));
    if (count == lanes)
      clearOthers(elements, marks, lanes);
    else
      clearOthers(elements, marks, count);
  }

  template <typename U, typename Mark>
  static void clearOthers(U *elements, const Mark *marks, int64_t count) {
    for (int64_t lane = 0; lane < count; ++lane)
      elements[lane] = marks[lane] ? elements[lane] : U(0);
  }

  int64_t n, m, columns;
  std::vector<Key> keys;
};

} // namespace nms

#endif // NM_SPARSE_LIB_PACKING_NM_PRUNEELEMENTS_H
