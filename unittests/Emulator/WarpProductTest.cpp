//===- WarpProductTest.cpp - mma.sync and mma.sp.sync ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Registers are filled as the PTX ISA publishes the fragments, one formula for
// each type, and products are of small integers, so that every sum is exact.
//
//===----------------------------------------------------------------------===//

#include "Ops/Matrix/WarpProduct.h"
#include "SmallIntegers.h"
#include "gtest/gtest.h"
#include <random>

using namespace mlir::nm_sparse::emulator;

namespace {

struct Position {
  unsigned row, column;
};

/// Element `i` of A in `lane`, as the PTX ISA has it for m16n8k{columns}.
Position positionA(ElementType type, unsigned columns, unsigned lane,
                   unsigned i) {
  unsigned group = lane >> 2, thread = lane % 4;
  switch (getBits(type)) {
  case 16:
    return {(i < 2 || (4 <= i && i < 6)) ? group : group + 8,
            thread * 2 + (i & 1) + (i >= 4 ? 8 : 0)};
  case 32:
    return {i % 2 == 0 ? group : group + 8, i < 2 ? thread : thread + 4};
  case 8:
    return {(i < 4 || (8 <= i && i < 12)) ? group : group + 8,
            thread * 4 + (i & 3) + (i >= 8 ? 16 : 0)};
  default: // 4
    return {(i < 8 || (16 <= i && i < 24)) ? group : group + 8,
            thread * 8 + (i & 7) + (i >= 16 ? 32 : 0)};
  }
}

/// Element `i` of B: row is k.
Position positionB(ElementType type, unsigned lane, unsigned i) {
  unsigned group = lane >> 2, thread = lane % 4;
  switch (getBits(type)) {
  case 16:
    return {thread * 2 + (i & 1) + i / 2 * 8, group};
  case 32:
    return {thread + i * 4, group};
  case 8:
    return {thread * 4 + (i & 3) + i / 4 * 16, group};
  default:
    return {thread * 8 + (i & 7) + i / 8 * 32, group};
  }
}

Position positionC(unsigned lane, unsigned i) {
  return {(lane >> 2) + (i < 2 ? 0 : 8), lane % 4 * 2 + (i & 1)};
}

/// Index pairs of random chunks, and the metadata of 32 lanes that says so,
/// with 2:4 for 8 and 16 bits and 1:2 for tf32.
struct RandomSparsity {
  std::vector<unsigned> columns; ///< The column of each kept element, by rows.
  std::vector<uint32_t> metadata = std::vector<uint32_t>(32, 0);

  RandomSparsity(ElementType type, unsigned k, unsigned selector,
                 std::mt19937 &random) {
    unsigned bits = getBits(type), chunk = bits == 32 ? 2 : 4;
    columns.resize(16 * k / 2);
    for (unsigned row = 0; row < 16; ++row)
      for (unsigned at = 0; at < k; at += chunk) {
        unsigned code;
        unsigned *kept = &columns[row * k / 2 + at / 2];
        if (bits == 32) {
          unsigned which = random() % 2;
          kept[0] = at + which;
          code = which ? 0b1110 : 0b0100;
        } else {
          static const unsigned codes[] = {0b0100, 0b1000, 0b1100,
                                           0b1001, 0b1101, 0b1110};
          code = codes[random() % 6];
          kept[0] = at + (code & 3);
          kept[1] = at + (code >> 2);
        }
        // As the figures of the PTX ISA place cell [row][at..] in "Tk: [..]".
        unsigned group = row % 8 * 4, lane, shift;
        if (bits == 8) {
          lane = group + (k == 32 ? selector * 2 : at / 32 * 2) + row / 8;
          shift = at % 32;
        } else {
          unsigned wide = bits == 32 ? at * 2 : at; // in 16-bit columns
          lane = group + wide / 16;
          lane += (bits == 32 ? k * 2 : k) == 16 ? selector : selector * 2;
          shift = wide % 16 + (row >= 8 ? 16 : 0);
        }
        metadata[lane] |= code << shift;
      }
  }
};

void expectExactProduct(WarpProduct product, unsigned selector = 0) {
  ASSERT_EQ(product.verify(), "");
  SCOPED_TRACE(getName(product.types.a).str() + " k " +
               std::to_string(product.k));
  product.numerics =
      getDotNumerics("sm_90a", false, product.types.a, product.getDepth());
  std::mt19937 random(product.k);
  bool isSigned = product.types.a != ElementType::U8;
  unsigned depth = product.getDepth(), k = product.k;
  auto number = [&] { return int(random() % 7) - (isSigned ? 3 : 0); };
  std::vector<int> a(16 * depth), b(k * 8), c(16 * 8);
  for (auto *matrix : {&a, &b, &c})
    for (int &value : *matrix)
      value = number();
  RandomSparsity sparsity(product.types.a, k, selector, random);

  auto pack = [](unsigned words, unsigned bits, unsigned lane, unsigned i,
                 uint32_t value, std::vector<uint32_t> &registers) {
    unsigned perWord = 32 / bits;
    registers[lane * words + i / perWord] |= value << (i % perWord * bits);
  };
  const ProductTypes &types = product.types;
  std::vector<uint32_t> registersA(32 * product.countA()),
      registersB(32 * product.countB()),
      registersC(32 * product.countAccumulators());
  for (unsigned lane = 0; lane < 32; ++lane) {
    for (unsigned i = 0; i < 16 * depth / 32; ++i) {
      Position at = positionA(types.a, depth, lane, i);
      pack(product.countA(), getBits(types.a), lane, i,
           encode(types.a, a[at.row * depth + at.column]), registersA);
    }
    for (unsigned i = 0; i < k * 8 / 32; ++i) {
      Position at = positionB(types.b, lane, i);
      pack(product.countB(), getBits(types.b), lane, i,
           encode(types.b, b[at.row * 8 + at.column]), registersB);
    }
    for (unsigned i = 0; i < 4; ++i) {
      Position at = positionC(lane, i);
      storeInteger(types.accumulator,
                   &registersC[lane * product.countAccumulators()], i,
                   c[at.row * 8 + at.column]);
    }
  }
  ASSERT_EQ(runWarpProduct(product, registersA.data(), registersB.data(),
                           registersC.data(), sparsity.metadata.data(),
                           selector),
            "");
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned i = 0; i < 4; ++i) {
      Position at = positionC(lane, i);
      int sum = c[at.row * 8 + at.column];
      for (unsigned j = 0; j < depth; ++j) {
        unsigned row = product.sparsity.isSparse
                           ? sparsity.columns[at.row * depth + j]
                           : j;
        sum += a[at.row * depth + j] * b[row * 8 + at.column];
      }
      const uint32_t *from = &registersC[lane * product.countAccumulators()];
      ASSERT_EQ(loadInteger(types.accumulator, from, i), sum)
          << "lane " << lane << " accumulator " << i;
    }
}

WarpProduct make(unsigned k, ElementType factor, ElementType accumulator,
                 bool isSparse = false) {
  return {16, 8, k, {factor, factor, accumulator}, {isSparse, false}, {}};
}

using Type = ElementType;

TEST(WarpProduct, Dense) {
  expectExactProduct(make(8, Type::F16, Type::F32));
  expectExactProduct(make(16, Type::F16, Type::F32));
  expectExactProduct(make(8, Type::F16, Type::F16));
  expectExactProduct(make(16, Type::F16, Type::F16));
  expectExactProduct(make(8, Type::BF16, Type::F32));
  expectExactProduct(make(16, Type::BF16, Type::F32));
  expectExactProduct(make(4, Type::TF32, Type::F32));
  expectExactProduct(make(8, Type::TF32, Type::F32));
  expectExactProduct(make(16, Type::S8, Type::S32));
  expectExactProduct(make(32, Type::S8, Type::S32));
  expectExactProduct(make(32, Type::U8, Type::S32));
  expectExactProduct(make(32, Type::S4, Type::S32));
  expectExactProduct(make(64, Type::S4, Type::S32));
  expectExactProduct(make(32, Type::E4M3, Type::F32));
  expectExactProduct(make(32, Type::E5M2, Type::F16));
}

TEST(WarpProduct, Sparse) {
  for (unsigned selector = 0; selector < 4; ++selector) {
    expectExactProduct(make(16, Type::F16, Type::F32, true), selector);
    expectExactProduct(make(8, Type::TF32, Type::F32, true), selector);
  }
  for (unsigned selector = 0; selector < 2; ++selector) {
    expectExactProduct(make(32, Type::F16, Type::F16, true), selector);
    expectExactProduct(make(32, Type::BF16, Type::F32, true), selector);
    expectExactProduct(make(16, Type::TF32, Type::F32, true), selector);
    expectExactProduct(make(32, Type::S8, Type::S32, true), selector);
  }
  expectExactProduct(make(64, Type::U8, Type::S32, true));
  expectExactProduct(make(64, Type::E4M3, Type::F32, true));
}

TEST(WarpProduct, MetadataErrors) {
  std::vector<uint8_t> selected(16 * 16);
  std::vector<uint32_t> metadata(32, 0x44444444);
  auto decode = [&](Type type, unsigned k, bool isOrdered, unsigned selector) {
    return decodeMetadata(type, k, isOrdered, metadata.data(), selector,
                          selected.data());
  };
  EXPECT_EQ(decode(Type::F16, 32, true, 1), "");
  EXPECT_EQ(decode(Type::TF32, 16, true, 1), "");
  EXPECT_NE(decode(Type::F16, 32, true, 2).find("legal are 0 to 1"),
            std::string::npos);
  metadata[4] = 0x44444414;
  EXPECT_EQ(decode(Type::F16, 32, false, 0), "");
  EXPECT_NE(decode(Type::F16, 32, true, 0).find("row 1, columns 4 to 7, is 1"),
            std::string::npos);
  EXPECT_NE(decode(Type::TF32, 16, false, 0).find("legal are 4"),
            std::string::npos);
  metadata[4] = 0x44a44444;
  EXPECT_NE(decode(Type::F16, 32, false, 0).find("row 9, columns 4 to 7"),
            std::string::npos);
}

TEST(WarpProduct, IntegersOverflow) {
  WarpProduct product = make(32, Type::S8, Type::S32);
  std::vector<uint32_t> a(32 * 4, 0x7f7f7f7f), b(32 * 2, 0x7f7f7f7f),
      c(32 * 4, 0x7fffff00);
  std::vector<uint32_t> wrapped = c;
  runWarpProduct(product, a.data(), b.data(), wrapped.data());
  EXPECT_EQ(wrapped[0], 0x7fffff00u + 32 * 127 * 127);
  product.types.saturate = true;
  runWarpProduct(product, a.data(), b.data(), c.data());
  EXPECT_EQ(c[0], 0x7fffffffu);
}

TEST(WarpProduct, Doubles) {
  WarpProduct product{8, 8, 4, {Type::F64, Type::F64, Type::F64}, {}, {}};
  ASSERT_EQ(product.verify(), "");
  std::vector<double> a(32), b(32), c(64);
  for (unsigned lane = 0; lane < 32; ++lane) {
    a[lane] = 1.0 / (1 + lane);
    b[lane] = 3.0 + lane;
    c[2 * lane] = lane;
    c[2 * lane + 1] = -1.0 * lane;
  }
  std::vector<double> d = c;
  runWarpProduct(product, reinterpret_cast<uint32_t *>(a.data()),
                 reinterpret_cast<uint32_t *>(b.data()),
                 reinterpret_cast<uint32_t *>(d.data()));
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned i = 0; i < 2; ++i) {
      unsigned row = lane / 4, column = lane % 4 * 2 + i;
      double sum = c[2 * lane + i];
      for (unsigned k = 0; k < 4; ++k)
        sum = std::fma(a[row * 4 + k], b[column * 4 + k], sum);
      EXPECT_EQ(d[2 * lane + i], sum);
    }
}

TEST(WarpProduct, Refuses) {
  EXPECT_NE(make(24, Type::F16, Type::F32).verify(), "");
  EXPECT_NE(make(16, Type::BF16, Type::F16).verify(), "");
  WarpProduct mixed = make(16, Type::F16, Type::F32);
  mixed.types.b = Type::BF16;
  EXPECT_EQ(mixed.verify(),
            "no mma of m16n8k16 with f16 and bf16 factors and f32 "
            "accumulators is emulated");
}

} // namespace
