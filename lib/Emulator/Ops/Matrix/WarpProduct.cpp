//===- WarpProduct.cpp - mma.sync and mma.sp.sync ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ops/Matrix/WarpProduct.h"
#include "nm_sparse/Base/Element.h"
#include "llvm/ADT/Twine.h"
#include <cmath>

namespace mlir::nm_sparse::emulator {

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

namespace {

constexpr unsigned lanes = 32;

/// Words of a matrix of `elements` in one lane.
unsigned countWords(unsigned elements, ElementType type) {
  return elements * getBits(type) / (32 * lanes);
}

} // namespace

unsigned WarpProduct::countA() const {
  return countWords(m * getDepth(), types.a);
}
unsigned WarpProduct::countB() const { return countWords(k * n, types.b); }
unsigned WarpProduct::countAccumulators() const {
  return countWords(m * n, types.accumulator);
}

std::string WarpProduct::verify() const {
  // Bytes of a row of A as registers hold it; tf32 has its smaller shape at
  // half of what other types have, and sparse instructions double each.
  unsigned rowBits = getDepth() * getBits(types.a);
  bool isLegal = n == 8 && getBits(types.a) == getBits(types.b) &&
                 isInteger(types.a) == isInteger(types.b);
  ElementType accumulator = types.accumulator;
  if (types.a == ElementType::F64) {
    bool isSmall = m == 8 && k == 4;
    isLegal &= (isSmall || (m == 16 && (k == 4 || k == 8 || k == 16))) &&
               accumulator == ElementType::F64 && !sparsity.isSparse;
  } else if (isInteger(types.a)) {
    isLegal &= accumulator == ElementType::S32 &&
               (m == 16 ? rowBits == 128 || rowBits == 256
                        : m == 8 && rowBits == 128 && !sparsity.isSparse);
    if (sparsity.isSparse)
      isLegal &= getBits(types.a) == 8;
  } else {
    isLegal &=
        isSmallFloat(types.a) && m == 16 && (rowBits == 128 || rowBits == 256);
    bool isNarrow = getBits(types.a) == 8;
    if (isNarrow && sparsity.isSparse)
      isLegal &= rowBits == 256;
    if (!isNarrow)
      isLegal &= types.a == types.b;
    isLegal &= accumulator == ElementType::F32 ||
               (accumulator == ElementType::F16 &&
                (types.a == ElementType::F16 || isNarrow));
  }
  if (isLegal)
    return "";
  return ("no " + llvm::Twine(sparsity.isSparse ? "sparse " : "") + "mma of m" +
          llvm::Twine(m) + "n" + llvm::Twine(n) + "k" + llvm::Twine(k) +
          " with " + getName(types.a) + " and " + getName(types.b) +
          " factors and " + getName(accumulator) + " accumulators is emulated")
      .str();
}

//===----------------------------------------------------------------------===//
// Fragments
//===----------------------------------------------------------------------===//

FragmentPosition getFactorPosition(unsigned lane, unsigned index,
                                   unsigned perRegister, unsigned rows) {
  unsigned number = index / perRegister, halves = rows / 8;
  return {lane / 4 + 8 * (number % halves),
          (lane % 4 + 4 * (number / halves)) * perRegister +
              index % perRegister};
}

FragmentPosition getAccumulatorPosition(unsigned lane, unsigned index,
                                        unsigned rows) {
  unsigned halves = rows / 8, pair = index / 2;
  return {lane / 4 + 8 * (pair % halves),
          8 * (pair / halves) + lane % 4 * 2 + index % 2};
}

float loadAccumulator(ElementType type, const uint32_t *registers,
                      unsigned index) {
  if (type == ElementType::F32)
    return nms::bitCast<float>(registers[index]);
  return nms::f16ToF32(
      static_cast<uint16_t>(registers[index / 2] >> (index % 2 * 16)));
}

void storeAccumulator(ElementType type, uint32_t *registers, unsigned index,
                      float value) {
  if (type == ElementType::F32) {
    registers[index] = nms::bitCast<uint32_t>(value);
    return;
  }
  uint32_t half = value != value ? 0x7fffu : nms::f32ToF16(value);
  unsigned shift = index % 2 * 16;
  uint32_t &word = registers[index / 2];
  word = (word & ~(0xffffu << shift)) | (half << shift);
}

namespace {

/// Calls `function(row, column, bits)` for the elements of A, or of the
/// transpose of B, in registers.
template <typename Function>
void forEachFactor(ElementType type, unsigned rows, unsigned columns,
                   const uint32_t *registers, Function function) {
  unsigned bits = getBits(type), perRegister = 32 / bits;
  unsigned count = rows * columns / lanes;
  uint32_t mask = bits == 32 ? ~0u : (1u << bits) - 1;
  for (unsigned lane = 0; lane < lanes; ++lane)
    for (unsigned i = 0; i < count; ++i) {
      FragmentPosition at = getFactorPosition(lane, i, perRegister, rows);
      uint32_t word = registers[lane * (count / perRegister) + i / perRegister];
      function(at.row, at.column, (word >> (i % perRegister * bits)) & mask);
    }
}

struct Scratch {
  FloatMatrix a, b;
  std::vector<int32_t> integersA, integersB, integers;
  std::vector<float> floats;
  std::vector<double> doublesA, doublesB;
  std::vector<uint8_t> selected;
};

void multiplyFloatFragments(const WarpProduct &product, Scratch &scratch,
                            const uint32_t *a, const uint32_t *b,
                            uint32_t *accumulators, const uint8_t *selected) {
  const ProductTypes &types = product.types;
  scratch.a.reset(types.a, product.m, product.getDepth());
  forEachFactor(types.a, product.m, product.getDepth(), a,
                [&](unsigned row, unsigned column, uint32_t bits) {
                  scratch.a.set(row, column, bits);
                });
  scratch.b.reset(types.b, product.k, product.n);
  forEachFactor(types.b, product.n, product.k, b,
                [&](unsigned row, unsigned column, uint32_t bits) {
                  scratch.b.set(column, row, bits);
                });

  unsigned count = product.m * product.n / lanes;
  unsigned words = product.countAccumulators();
  scratch.floats.resize(product.m * product.n);
  auto getElement = [&](unsigned lane, unsigned i) -> float & {
    FragmentPosition at = getAccumulatorPosition(lane, i, product.m);
    return scratch.floats[at.row * product.n + at.column];
  };
  for (unsigned lane = 0; lane < lanes; ++lane)
    for (unsigned i = 0; i < count; ++i)
      getElement(lane, i) =
          loadAccumulator(types.accumulator, accumulators + lane * words, i);
  multiplyFloats(product.numerics, types.accumulator, scratch.a, scratch.b,
                 selected, scratch.floats.data());
  for (unsigned lane = 0; lane < lanes; ++lane)
    for (unsigned i = 0; i < count; ++i)
      storeAccumulator(types.accumulator, accumulators + lane * words, i,
                       getElement(lane, i));
}

void multiplyIntegerFragments(const WarpProduct &product, Scratch &scratch,
                              const uint32_t *a, const uint32_t *b,
                              uint32_t *accumulators, const uint8_t *selected) {
  unsigned depth = product.getDepth(), n = product.n;
  scratch.integersA.resize(product.m * depth);
  forEachFactor(product.types.a, product.m, depth, a,
                [&](unsigned row, unsigned column, uint32_t bits) {
                  scratch.integersA[row * depth + column] =
                      decodeInteger(product.types.a, bits);
                });
  scratch.integersB.resize(product.k * n);
  forEachFactor(product.types.b, n, product.k, b,
                [&](unsigned row, unsigned column, uint32_t bits) {
                  scratch.integersB[column * n + row] =
                      decodeInteger(product.types.b, bits);
                });

  unsigned count = product.m * n / lanes;
  scratch.integers.resize(product.m * n);
  auto getElement = [&](unsigned lane, unsigned i) -> int32_t & {
    FragmentPosition at = getAccumulatorPosition(lane, i, product.m);
    return scratch.integers[at.row * n + at.column];
  };
  for (unsigned lane = 0; lane < lanes; ++lane)
    for (unsigned i = 0; i < count; ++i)
      getElement(lane, i) =
          static_cast<int32_t>(accumulators[lane * count + i]);
  multiplyIntegers(product.m, n, depth, scratch.integersA.data(),
                   scratch.integersB.data(), selected, product.types.saturate,
                   scratch.integers.data());
  for (unsigned lane = 0; lane < lanes; ++lane)
    for (unsigned i = 0; i < count; ++i)
      accumulators[lane * count + i] =
          static_cast<uint32_t>(getElement(lane, i));
}

/// In double precision each product is added by one fma, in order.
void multiplyDoubleFragments(const WarpProduct &product, Scratch &scratch,
                             const uint32_t *a, const uint32_t *b,
                             uint32_t *accumulators) {
  auto unpack = [](std::vector<double> &matrix, unsigned rows, unsigned columns,
                   const uint32_t *registers) {
    matrix.resize(rows * columns);
    unsigned count = rows * columns / lanes;
    for (unsigned lane = 0; lane < lanes; ++lane)
      for (unsigned i = 0; i < count; ++i) {
        FragmentPosition at = getFactorPosition(lane, i, 1, rows);
        memcpy(&matrix[at.row * columns + at.column],
               registers + 2 * (lane * count + i), sizeof(double));
      }
  };
  unpack(scratch.doublesA, product.m, product.k, a);
  unpack(scratch.doublesB, product.n, product.k, b);
  unsigned count = product.m * product.n / lanes;
  for (unsigned lane = 0; lane < lanes; ++lane)
    for (unsigned i = 0; i < count; ++i) {
      FragmentPosition at = getAccumulatorPosition(lane, i, product.m);
      uint32_t *word = accumulators + 2 * (lane * count + i);
      double sum;
      memcpy(&sum, word, sizeof(sum));
      for (unsigned k = 0; k < product.k; ++k)
        sum = std::fma(scratch.doublesA[at.row * product.k + k],
                       scratch.doublesB[at.column * product.k + k], sum);
      memcpy(word, &sum, sizeof(sum));
    }
}

} // namespace

std::string runWarpProduct(const WarpProduct &product, const uint32_t *a,
                           const uint32_t *b, uint32_t *accumulators,
                           const uint32_t *metadata, uint32_t selector) {
  thread_local Scratch scratch;
  const uint8_t *selected = nullptr;
  if (product.sparsity.isSparse) {
    scratch.selected.resize(product.m * product.getDepth());
    std::string error =
        decodeMetadata(product.types.a, product.k, product.sparsity.isOrdered,
                       metadata, selector, scratch.selected.data());
    if (!error.empty())
      return error;
    selected = scratch.selected.data();
  }
  if (product.types.a == ElementType::F64)
    multiplyDoubleFragments(product, scratch, a, b, accumulators);
  else if (isInteger(product.types.a))
    multiplyIntegerFragments(product, scratch, a, b, accumulators, selected);
  else
    multiplyFloatFragments(product, scratch, a, b, accumulators, selected);
  return "";
}

} // namespace mlir::nm_sparse::emulator
