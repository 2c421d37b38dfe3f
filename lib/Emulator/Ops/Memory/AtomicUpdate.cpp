//===- AtomicUpdate.cpp - atomic updates of memory ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ops/Memory/AtomicUpdate.h"

#include "Ops/Scalar/Functions.h"
#include "llvm/ADT/bit.h"
#include <algorithm>

using namespace mlir;
using namespace mlir::nm_sparse;
using namespace mlir::nm_sparse::emulator;

//===----------------------------------------------------------------------===//
// Updates
//===----------------------------------------------------------------------===//

namespace {

template <typename T>
uint64_t add(uint64_t old, uint64_t operand, uint64_t) {
  return T(T(old) + T(operand));
}
template <typename T>
uint64_t smaller(uint64_t old, uint64_t operand, uint64_t) {
  return uint64_t(std::min(T(old), T(operand)));
}
template <typename T>
uint64_t larger(uint64_t old, uint64_t operand, uint64_t) {
  return uint64_t(std::max(T(old), T(operand)));
}
uint64_t bothBits(uint64_t old, uint64_t operand, uint64_t) {
  return old & operand;
}
uint64_t eitherBits(uint64_t old, uint64_t operand, uint64_t) {
  return old | operand;
}
uint64_t differentBits(uint64_t old, uint64_t operand, uint64_t) {
  return old ^ operand;
}
uint64_t exchange(uint64_t, uint64_t operand, uint64_t) { return operand; }
uint64_t compareAndSwap(uint64_t old, uint64_t operand, uint64_t other) {
  return old == operand ? other : old;
}
uint64_t increment(uint64_t old, uint64_t operand, uint64_t) {
  return old >= operand ? 0 : old + 1;
}
uint64_t decrement(uint64_t old, uint64_t operand, uint64_t) {
  return old == 0 || old > operand ? operand : old - 1;
}

uint64_t addFloat(uint64_t old, uint64_t operand, uint64_t) {
  return llvm::bit_cast<uint32_t>(llvm::bit_cast<float>(uint32_t(old)) +
                                  llvm::bit_cast<float>(uint32_t(operand)));
}
uint64_t addDouble(uint64_t old, uint64_t operand, uint64_t) {
  return llvm::bit_cast<uint64_t>(llvm::bit_cast<double>(old) +
                                  llvm::bit_cast<double>(operand));
}

/// As the instruction `index` of the list below on 16-bit floats does it.
constexpr StringRef halfInstructions[] = {
    "add.rn.f16", "add.rn.bf16", "min.f16", "min.bf16", "max.f16", "max.bf16",
};
template <unsigned index>
uint16_t updateHalf(uint16_t old, uint16_t operand) {
  static const Function *function = findFunction(halfInstructions[index]);
  void *operands[] = {&old, &operand};
  uint16_t result = 0;
  function->run(operands, &result);
  return result;
}
template <unsigned index>
uint64_t updateOne(uint64_t old, uint64_t operand, uint64_t) {
  return updateHalf<index>(old, operand);
}
template <unsigned index>
uint64_t updatePair(uint64_t old, uint64_t operand, uint64_t) {
  return uint64_t(updateHalf<index>(old >> 16, operand >> 16)) << 16 |
         updateHalf<index>(old, operand);
}

struct Entry {
  StringRef name, type;
  AtomicUpdate update;
};

constexpr Entry entries[] = {
    {"add", "u32", add<uint32_t>},    {"add", "s32", add<uint32_t>},
    {"add", "u64", add<uint64_t>},    {"add", "f32", addFloat},
    {"add", "f64", addDouble},        {"add", "f16", updateOne<0>},
    {"add", "bf16", updateOne<1>},    {"add", "f16x2", updatePair<0>},
    {"add", "bf16x2", updatePair<1>}, {"min", "u32", smaller<uint32_t>},
    {"min", "s32", smaller<int32_t>}, {"min", "u64", smaller<uint64_t>},
    {"min", "s64", smaller<int64_t>}, {"min", "f16", updateOne<2>},
    {"min", "bf16", updateOne<3>},    {"min", "f16x2", updatePair<2>},
    {"min", "bf16x2", updatePair<3>}, {"max", "u32", larger<uint32_t>},
    {"max", "s32", larger<int32_t>},  {"max", "u64", larger<uint64_t>},
    {"max", "s64", larger<int64_t>},  {"max", "f16", updateOne<4>},
    {"max", "bf16", updateOne<5>},    {"max", "f16x2", updatePair<4>},
    {"max", "bf16x2", updatePair<5>}, {"and", "b32", bothBits},
    {"and", "b64", bothBits},         {"or", "b32", eitherBits},
    {"or", "b64", eitherBits},        {"xor", "b32", differentBits},
    {"xor", "b64", differentBits},    {"exch", "b32", exchange},
    {"exch", "b64", exchange},        {"cas", "b16", compareAndSwap},
    {"cas", "b32", compareAndSwap},   {"cas", "b64", compareAndSwap},
    {"inc", "u32", increment},        {"dec", "u32", decrement},
};

} // namespace

bool emulator::isAtomicUpdate(StringRef name) {
  return llvm::any_of(entries,
                      [&](const Entry &entry) { return entry.name == name; });
}

unsigned emulator::getAtomicTypeBytes(StringRef type) {
  if (type == "f16x2" || type == "bf16x2")
    return 4;
  if (type == "bf16")
    return 2;
  unsigned bits = 0;
  if (type.size() < 2 || !StringRef("busf").contains(type[0]) ||
      type.drop_front().getAsInteger(10, bits))
    return 0;
  return bits == 8 || bits == 16 || bits == 32 || bits == 64 ? bits / 8 : 0;
}

AtomicUpdate emulator::findAtomicUpdate(StringRef name, StringRef type) {
  for (const Entry &entry : entries)
    if (entry.name == name && entry.type == type)
      return entry.update;
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Calls `body` with a pointer to the unsigned type of `bytes` bytes.
template <typename Body>
static auto dispatch(void *where, unsigned bytes, Body body) {
  switch (bytes) {
  case 1:
    return body(static_cast<uint8_t *>(where));
  case 2:
    return body(static_cast<uint16_t *>(where));
  case 4:
    return body(static_cast<uint32_t *>(where));
  default:
    return body(static_cast<uint64_t *>(where));
  }
}

uint64_t emulator::loadAtomically(const void *from, unsigned bytes) {
  return dispatch(const_cast<void *>(from), bytes, [](auto *p) -> uint64_t {
    return __atomic_load_n(p, __ATOMIC_ACQUIRE);
  });
}

void emulator::storeAtomically(void *to, unsigned bytes, uint64_t value) {
  dispatch(to, bytes,
           [=](auto *p) { __atomic_store_n(p, value, __ATOMIC_RELEASE); });
}

uint64_t emulator::updateAtomically(void *where, unsigned bytes,
                                    AtomicUpdate update, uint64_t operand,
                                    uint64_t other) {
  return dispatch(where, bytes, [=](auto *p) -> uint64_t {
    auto old = __atomic_load_n(p, __ATOMIC_ACQUIRE);
    decltype(old) wanted;
    do
      wanted = update(old, operand, other);
    while (!__atomic_compare_exchange_n(p, &old, wanted, /*weak=*/false,
                                        __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
    return old;
  });
}
