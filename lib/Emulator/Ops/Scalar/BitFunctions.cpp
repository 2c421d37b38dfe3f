//===- BitFunctions.cpp - prmt, lop3, dot products of bytes ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ops/Scalar/BitFunctions.h"
#include "Ops/Scalar/Functions.h"

using namespace mlir;
using namespace mlir::nm_sparse;
using namespace mlir::nm_sparse::emulator;

/// For each mode but the first, and each value of the low two bits of the
/// selector: the bytes of the result, the highest first, as a number in hex.
static constexpr uint16_t permutations[][4] = {
    {0x3210, 0x4321, 0x5432, 0x6543}, // f4e
    {0x5670, 0x6701, 0x7012, 0x0123}, // b4e
    {0x0000, 0x1111, 0x2222, 0x3333}, // rc8
    {0x3210, 0x3211, 0x3222, 0x3333}, // ecl
    {0x0000, 0x1110, 0x2210, 0x3210}, // ecr
    {0x1010, 0x3232, 0x1010, 0x3232}, // rc16
};

uint32_t emulator::permuteBytes(Permute mode, uint32_t low, uint32_t high,
                                uint32_t selector) {
  if (mode != Permute::Default)
    selector = permutations[int(mode) - 1][selector & 3];
  uint64_t bytes = uint64_t(high) << 32 | low;
  uint32_t result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    unsigned choice = selector >> (4 * i) & 15;
    auto byte = uint8_t(bytes >> (8 * (choice & 7)));
    if (choice & 8)
      byte = byte & 0x80 ? 0xff : 0;
    result |= uint32_t(byte) << (8 * i);
  }
  return result;
}

/// Field `i` of `bits` bits.
static int32_t getField(uint32_t value, unsigned i, unsigned bits,
                        bool isSigned) {
  uint32_t field = value << (32 - bits * (i + 1));
  return isSigned ? int32_t(field) >> (32 - bits) : field >> (32 - bits);
}

uint32_t emulator::dot4(uint32_t a, bool signedA, uint32_t b, bool signedB,
                        uint32_t c) {
  for (unsigned i = 0; i < 4; ++i)
    c += uint32_t(getField(a, i, 8, signedA) * getField(b, i, 8, signedB));
  return c;
}

uint32_t emulator::dot2(uint32_t a, bool signedA, uint32_t b, bool signedB,
                        bool upper, uint32_t c) {
  for (unsigned i = 0; i < 2; ++i)
    c += uint32_t(getField(a, i, 16, signedA) *
                  getField(b, i + 2 * upper, 8, signedB));
  return c;
}

namespace {

template <Permute mode>
uint32_t permute(uint32_t a, uint32_t b, uint32_t c) {
  return permuteBytes(mode, a, b, c);
}
template <bool signedA, bool signedB>
uint32_t dotBytes(uint32_t a, uint32_t b, uint32_t c) {
  return dot4(a, signedA, b, signedB, c);
}

/// Bit 4a + 2b + c of `table` for the bits a, b and c at each position.
uint32_t combine(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
  uint32_t result = 0;
  for (unsigned i = 0; i < 8; ++i)
    if (table >> i & 1)
      result |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
  return result;
}

template <typename T>
T add(T a, T b) {
  return a + b;
}
template <typename T>
T subtract(T a, T b) {
  return a - b;
}
template <typename T>
T both(T a, T b) {
  return a & b;
}
template <typename T>
T either(T a, T b) {
  return a | b;
}
template <typename T>
T differ(T a, T b) {
  return a ^ b;
}
uint32_t truncate(uint64_t a) { return a; }
uint64_t extend(uint32_t a) { return a; }
int64_t extendSigned(int32_t a) { return a; }
uint32_t shiftLeft(uint32_t a, uint32_t n) { return n < 32 ? a << n : 0; }
uint32_t shiftRight(uint32_t a, uint32_t n) { return n < 32 ? a >> n : 0; }
/// By how much the highest bit is to be shifted to reach the last place; all
/// ones where there is none.
uint32_t findShift(uint32_t a) { return a ? llvm::countl_zero(a) : ~0u; }
/// Shifts `high`:`low` by at most 32 bits and returns the low half after a
/// shift to the right, or the high half after a shift to the left.
uint32_t funnelRight(uint32_t low, uint32_t high, uint32_t n) {
  return (uint64_t(high) << 32 | low) >> std::min(n, 32u);
}
uint32_t funnelLeft(uint32_t low, uint32_t high, uint32_t n) {
  return (uint64_t(high) << 32 | low) << std::min(n, 32u) >> 32;
}

} // namespace

ArrayRef<Function> emulator::getBitFunctions() {
  static const Function functions[] = {
      makeFunction<&permute<Permute::Default>>("prmt.b32", "llvm.nvvm.prmt"),
      makeFunction<&permute<Permute::F4E>>("prmt.b32.f4e",
                                           "llvm.nvvm.prmt.f4e"),
      makeFunction<&permute<Permute::B4E>>("prmt.b32.b4e",
                                           "llvm.nvvm.prmt.b4e"),
      makeFunction<&combine>("lop3.b32"),
      makeFunction<&dotBytes<true, true>>("dp4a.s32.s32"),
      makeFunction<&dotBytes<true, false>>("dp4a.s32.u32"),
      makeFunction<&dotBytes<false, true>>("dp4a.u32.s32"),
      makeFunction<&dotBytes<false, false>>("dp4a.u32.u32"),
      makeFunction<&findShift>("bfind.shiftamt.u32"),
      makeFunction<&add<uint32_t>>("add.u32"),
      makeFunction<&add<uint32_t>>("add.s32"),
      makeFunction<&add<uint64_t>>("add.u64"),
      makeFunction<&add<uint64_t>>("add.s64"),
      makeFunction<&subtract<uint32_t>>("sub.u32"),
      makeFunction<&subtract<uint32_t>>("sub.s32"),
      makeFunction<&both<uint32_t>>("and.b32"),
      makeFunction<&either<uint32_t>>("or.b32"),
      makeFunction<&differ<uint32_t>>("xor.b32"),
      makeFunction<&truncate>("cvt.u32.u64"),
      makeFunction<&extend>("cvt.u64.u32"),
      makeFunction<&extendSigned>("cvt.s64.s32"),
      makeFunction<&shiftLeft>("shl.b32"),
      makeFunction<&shiftRight>("shr.u32"),
      makeFunction<&shiftRight>("shr.b32"),
      makeFunction<&funnelRight>("shf.r.clamp.b32"),
      makeFunction<&funnelLeft>("shf.l.clamp.b32"),
  };
  return functions;
}
