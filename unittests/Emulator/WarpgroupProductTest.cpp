//===- WarpgroupProductTest.cpp - wgmma.mma_async -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operands are put into shared memory as the copies of tensors swizzle them: in
// row r of eight, piece p of 16 bytes is at p ^ r (128 bytes), p ^ r / 2 (64)
// or p ^ r / 4 (32). Products are of small integers, so that every sum is
// exact.
//
//===----------------------------------------------------------------------===//

#include "Ops/Matrix/WarpgroupProduct.h"
#include "Ops/Matrix/MatrixDescriptor.h"
#include "SmallIntegers.h"
#include "gtest/gtest.h"
#include <random>

using namespace mlir::nm_sparse::emulator;
using Type = ElementType;

namespace {

/// One operand in shared memory.
struct Placement {
  unsigned width; ///< Bytes of the swizzle; 16: none.
  bool isMNMajor;
  unsigned base, leading, stride;
  unsigned offset = 0; ///< Byte offset of the first k in its row.

  unsigned swizzle(unsigned row, unsigned byte) const {
    unsigned turn = width == 128  ? row % 8
                    : width == 64 ? row % 8 / 2
                    : width == 32 ? row % 8 / 4
                                  : 0;
    return row % 8 * width + ((byte / 16 ^ turn) * 16) + byte % 16;
  }
  unsigned getAddress(unsigned mn, unsigned k, unsigned bytes) const {
    if (isMNMajor) {
      unsigned byte = mn * bytes;
      unsigned blocks = width == 16 ? byte / 16 * stride + k / 8 * leading
                                    : byte / width * leading + k / 8 * stride;
      return base + blocks + swizzle(k, byte % width);
    }
    unsigned byte = k * bytes + offset;
    unsigned blocks = mn / 8 * stride + (width == 16 ? byte / 16 * leading : 0);
    return base + blocks + swizzle(mn, width == 16 ? byte % 16 : byte);
  }
  uint64_t getDescriptor() const {
    uint64_t mode = width == 128 ? 1 : width == 64 ? 2 : width == 32 ? 3 : 0;
    return uint64_t((base + offset) >> 4) | uint64_t(leading >> 4) << 16 |
           uint64_t(stride >> 4) << 32 | mode << 62;
  }
};

struct Case {
  WarpgroupProduct product;
  Placement a, b;
  unsigned selector = 0;
  bool accumulate = true;
};

void expectExactProduct(const Case &test) {
  const WarpgroupProduct &product = test.product;
  const ProductTypes &types = product.types;
  ASSERT_EQ(product.verify(), "");
  unsigned depth = product.getDepth(), k = product.k, n = product.n;
  unsigned bits = getBits(types.a), bytes = bits / 8;
  SCOPED_TRACE(getName(types.a).str() + " n " + std::to_string(n) + " widths " +
               std::to_string(test.a.width) + ", " +
               std::to_string(test.b.width));
  std::mt19937 random(n);
  std::vector<int> a(64 * depth), b(k * n), c(64 * n);
  for (auto *matrix : {&a, &b, &c})
    for (int &value : *matrix)
      value = static_cast<int>(random() % 7) -
              (types.a == Type::U8 || types.b == Type::U8 ? 0 : 3);

  std::vector<char> shared(1 << 18);
  auto put = [&](const Placement &where, unsigned mn, unsigned at,
                 uint32_t value) {
    memcpy(&shared[where.getAddress(mn, at, bytes)], &value, bytes);
  };
  std::vector<uint32_t> registersA(128 * product.countA());
  for (unsigned row = 0; row < 64; ++row)
    for (unsigned column = 0; column < depth; ++column) {
      uint32_t value = encode(types.a, a[row * depth + column]);
      if (!product.isRegisterA) {
        put(test.a, row, column, value);
        continue;
      }
      // Each register has 32 bits of a row; 8 rows below follow in the next.
      unsigned word = column * bits / 32;
      unsigned thread = row / 16 * 32 + row % 8 * 4 + word % 4;
      registersA[thread * 4 + word / 4 * 2 + row % 16 / 8] |=
          value << (column * bits % 32);
    }
  for (unsigned row = 0; row < k; ++row)
    for (unsigned column = 0; column < n; ++column)
      put(test.b, column, row, encode(types.b, b[row * n + column]));

  // The first and last of four, or the second of two, are kept.
  std::vector<uint32_t> metadata(128);
  std::vector<unsigned> kept(64 * depth);
  if (product.sparsity.isSparse) {
    unsigned chunk = bits == 32 ? 2 : 4;
    for (unsigned row = 0; row < 64; ++row)
      for (unsigned at = 0; at < k; at += chunk) {
        bool isFirst = random() % 2;
        unsigned code, *to = &kept[row * depth + at / 2];
        if (bits == 32) {
          code = isFirst ? 4 : 14;
          to[0] = at + !isFirst;
        } else {
          code = isFirst ? 0b1100 : 0b1001;
          to[0] = at + !isFirst;
          to[1] = at + (isFirst ? 3 : 2);
        }
        unsigned thread = row / 16 * 32 + row % 8 * 4, half = row % 16 / 8;
        if (bits == 8) {
          metadata[thread + half + at / 32 * 2] |= code << at % 32;
          continue;
        }
        unsigned wide = bits == 32 ? at * 2 : at;
        metadata[thread + test.selector * 2 + wide / 16] |=
            code << (wide % 16 + half * 16);
      }
  }

  unsigned count = product.countAccumulators();
  std::vector<uint32_t> accumulators(128 * count);
  auto forEach = [&](auto function) {
    for (unsigned thread = 0; thread < 128; ++thread)
      for (unsigned i = 0; i < n / 2; ++i)
        function((thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8) * n +
                     i / 4 * 8 + thread % 4 * 2 + i % 2,
                 &accumulators[thread * count], i);
  };
  forEach([&](unsigned element, uint32_t *to, unsigned i) {
    storeInteger(types.accumulator, to, i, c[element]);
  });
  WarpgroupOperands operands;
  operands.descriptorA = test.a.getDescriptor();
  operands.descriptorB = test.b.getDescriptor();
  operands.a = product.isRegisterA ? registersA.data() : nullptr;
  operands.metadata = metadata.data();
  operands.selector = test.selector;
  operands.accumulate = test.accumulate;
  operands.accumulators = accumulators.data();
  ASSERT_EQ(multiplyWarpgroup(
                product, getDotNumerics("sm_90a", true, types.a, depth),
                operands, [&](uint32_t address) { return &shared[address]; }),
            "");

  int sign = product.negateA != product.negateB ? -1 : 1;
  forEach([&](unsigned element, uint32_t *from, unsigned i) {
    unsigned row = element / n, column = element % n;
    int sum = test.accumulate ? c[element] : 0;
    for (unsigned j = 0; j < depth; ++j)
      sum += sign * a[row * depth + j] *
             b[(product.sparsity.isSparse ? kept[row * depth + j] : j) * n +
               column];
    ASSERT_EQ(loadInteger(types.accumulator, from, i), sum)
        << "row " << row << " column " << column;
  });
}

Placement kMajor(unsigned width, unsigned base, unsigned offset = 0) {
  if (width == 16)
    return {16, false, base, 0x8000, 128, 0};
  return {width, false, base, 16, width * 16, offset};
}

Placement mnMajor(unsigned width, unsigned base) {
  if (width == 16)
    return {16, true, base, 0x2000, 128, 0};
  return {width, true, base, 0x2000, width * 8, 0};
}

WarpgroupProduct make(Type factor, Type accumulator, unsigned n,
                      bool isSparse = false) {
  WarpgroupProduct product;
  product.n = n;
  product.k = 256 / getBits(factor) * (isSparse ? 2 : 1);
  product.types = {factor, factor, accumulator};
  product.sparsity.isSparse = isSparse;
  return product;
}

constexpr unsigned baseA = 0x10000, baseB = 0x20000;

TEST(WarpgroupProduct, KMajor) {
  for (unsigned width : {16u, 32u, 64u, 128u})
    for (auto [type, accumulator] :
         {std::pair(Type::F16, Type::F32), std::pair(Type::F16, Type::F16),
          std::pair(Type::BF16, Type::F32), std::pair(Type::TF32, Type::F32),
          std::pair(Type::E4M3, Type::F32), std::pair(Type::E5M2, Type::F16),
          std::pair(Type::S8, Type::S32), std::pair(Type::U8, Type::S32)})
      for (unsigned n : {8u, 64u, 256u}) {
        unsigned offset = width == 16 ? 0 : width - 32;
        expectExactProduct({make(type, accumulator, n),
                            kMajor(width, baseA, offset),
                            kMajor(width, baseB)});
      }
}

TEST(WarpgroupProduct, MNMajor) {
  for (unsigned widthA : {16u, 32u, 64u, 128u})
    for (unsigned widthB : {16u, 32u, 64u, 128u})
      for (unsigned n : {24u, 128u}) {
        WarpgroupProduct product = make(Type::F16, Type::F32, n);
        product.transposeB = true;
        expectExactProduct(
            {product, kMajor(widthA, baseA), mnMajor(widthB, baseB)});
        product.transposeA = true;
        expectExactProduct(
            {product, mnMajor(widthA, baseA), mnMajor(widthB, baseB)});
      }
}

TEST(WarpgroupProduct, RegistersAndSigns) {
  WarpgroupProduct product = make(Type::BF16, Type::F32, 40);
  product.isRegisterA = true;
  product.negateA = true;
  expectExactProduct({product, {}, kMajor(128, baseB, 64)});
  product.negateB = true;
  Case test{product, {}, kMajor(128, baseB, 64)};
  test.accumulate = false;
  expectExactProduct(test);
  product = make(Type::S8, Type::S32, 48);
  product.isRegisterA = true;
  product.types.b = Type::U8;
  expectExactProduct({product, {}, kMajor(64, baseB)});
  product = make(Type::TF32, Type::F32, 16);
  product.isRegisterA = true;
  expectExactProduct({product, {}, kMajor(32, baseB)});
}

TEST(WarpgroupProduct, Sparse) {
  for (Type type : {Type::F16, Type::BF16, Type::TF32, Type::E4M3, Type::S8})
    for (unsigned selector : {0u, 1u}) {
      bool isNarrow = getBits(type) == 8;
      if (isNarrow && selector)
        continue;
      Case test{make(type, type == Type::S8 ? Type::S32 : Type::F32, 32, true),
                kMajor(128, baseA, 32), kMajor(128, baseB, 64), selector};
      expectExactProduct(test);
      test.product.isRegisterA = true;
      expectExactProduct(test);
    }
}

TEST(WarpgroupProduct, Descriptors) {
  // The operands of a kernel that ran on an H200: 64 columns of f16 swizzled by
  // 128 bytes, the second step of 16 along k.
  MatrixDescriptor descriptor((uint64_t(1) << 62) | uint64_t(1024 >> 4) << 32 |
                              uint64_t(8192 >> 4) << 16 | (0x400 + 2048) >> 4);
  EXPECT_EQ(descriptor.width, 128u);
  EXPECT_EQ(descriptor.getMNMajorPiece(9, 3),
            0x400u + 2048 + 8192 + 3 * 128 + (1 ^ 3) * 16);
  EXPECT_EQ(descriptor.getKMajorPiece(9, 1),
            0x400u + 2048 + 1024 + 128 + (1 ^ 1) * 16);
  EXPECT_NE(MatrixDescriptor(uint64_t(3) << 62)
                .verify(false, 64)
                .find("do not fit the swizzle of 32 bytes"),
            std::string::npos);
  EXPECT_NE(MatrixDescriptor(uint64_t(1) << 62 | uint64_t(3) << 49)
                .verify(false, 32)
                .find("align the tile to 1024 bytes"),
            std::string::npos);
}

TEST(WarpgroupProduct, Refuses) {
  WarpgroupProduct product = make(Type::TF32, Type::F32, 16);
  product.transposeB = true;
  EXPECT_EQ(product.verify(),
            "an operand of tf32 is not K-major; only f16 and bf16 may be M- or "
            "N-major");
  EXPECT_NE(make(Type::F16, Type::F32, 260).verify(), "");
  EXPECT_NE(make(Type::S8, Type::S32, 40).verify(), "");
}

} // namespace
