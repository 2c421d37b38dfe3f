//===- TensorReduction.cpp - updates of global memory ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// As an H200 does them: subnormal values stay, a NaN is the canonical one.
//
//===----------------------------------------------------------------------===//

#include "Ops/Memory/TensorReduction.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/bit.h"
#include <cmath>
#include <cstring>

using namespace mlir;
using namespace mlir::nm_sparse;
using namespace mlir::nm_sparse::emulator;
using llvm::APFloat;
using NVVM::TMAReduxKind;

namespace {

/// Clusters on other threads of the host may update the same element.
template <typename T, T (*combine)(T, T)>
void update(char *target, const char *source) {
  using Bits = std::conditional_t<
      sizeof(T) == 2, uint16_t,
      std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>;
  T value;
  std::memcpy(&value, source, sizeof(value));
  auto *place = reinterpret_cast<Bits *>(target);
  Bits before = __atomic_load_n(place, __ATOMIC_RELAXED);
  Bits after;
  do {
    T old;
    std::memcpy(&old, &before, sizeof(old));
    T result = combine(old, value);
    std::memcpy(&after, &result, sizeof(after));
  } while (!__atomic_compare_exchange_n(place, &before, after, /*weak=*/true,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

template <typename T>
T add(T old, T value) {
  return old + value;
}
float addFloat(float old, float value) {
  float sum = old + value;
  return std::isnan(sum) ? llvm::bit_cast<float>(0x7fffffff) : sum;
}
template <typename T>
T smaller(T old, T value) {
  return std::min(old, value);
}
template <typename T>
T larger(T old, T value) {
  return std::max(old, value);
}
template <typename T>
T bitAnd(T old, T value) {
  return old & value;
}
template <typename T>
T bitOr(T old, T value) {
  return old | value;
}
template <typename T>
T bitXor(T old, T value) {
  return old ^ value;
}
uint32_t increment(uint32_t old, uint32_t value) {
  return old >= value ? 0 : old + 1;
}
uint32_t decrement(uint32_t old, uint32_t value) {
  return old == 0 || old > value ? value : old - 1;
}

template <const llvm::fltSemantics &(*format)()>
APFloat unpack(uint16_t bits) {
  return APFloat(format(), llvm::APInt(16, bits));
}
uint16_t pack(const APFloat &value) {
  if (value.isNaN())
    return 0x7fff;
  return static_cast<uint16_t>(value.bitcastToAPInt().getZExtValue());
}
template <const llvm::fltSemantics &(*format)()>
uint16_t addHalf(uint16_t old, uint16_t value) {
  APFloat sum = unpack<format>(old);
  sum.add(unpack<format>(value), llvm::RoundingMode::NearestTiesToEven);
  return pack(sum);
}
template <const llvm::fltSemantics &(*format)()>
uint16_t smallerHalf(uint16_t old, uint16_t value) {
  return pack(llvm::minimumnum(unpack<format>(old), unpack<format>(value)));
}
template <const llvm::fltSemantics &(*format)()>
uint16_t largerHalf(uint16_t old, uint16_t value) {
  return pack(llvm::maximumnum(unpack<format>(old), unpack<format>(value)));
}

template <const llvm::fltSemantics &(*format)()>
ElementUpdate getHalfUpdate(TMAReduxKind kind) {
  switch (kind) {
  case TMAReduxKind::ADD:
    return update<uint16_t, addHalf<format>>;
  case TMAReduxKind::MIN:
    return update<uint16_t, smallerHalf<format>>;
  case TMAReduxKind::MAX:
    return update<uint16_t, largerHalf<format>>;
  default:
    return nullptr;
  }
}

template <typename T>
ElementUpdate getIntegerUpdate(TMAReduxKind kind) {
  using Unsigned = std::make_unsigned_t<T>;
  switch (kind) {
  case TMAReduxKind::ADD:
    return update<Unsigned, add<Unsigned>>;
  case TMAReduxKind::MIN:
    return update<T, smaller<T>>;
  case TMAReduxKind::MAX:
    return update<T, larger<T>>;
  case TMAReduxKind::AND:
    return update<T, bitAnd<T>>;
  case TMAReduxKind::OR:
    return update<T, bitOr<T>>;
  case TMAReduxKind::XOR:
    return update<T, bitXor<T>>;
  case TMAReduxKind::INC:
    return std::is_same_v<T, uint32_t> ? update<uint32_t, increment> : nullptr;
  case TMAReduxKind::DEC:
    return std::is_same_v<T, uint32_t> ? update<uint32_t, decrement> : nullptr;
  }
  llvm_unreachable("covered switch");
}

} // namespace

ElementUpdate emulator::getElementUpdate(TMAReduxKind kind,
                                         TensorMapType type) {
  switch (type) {
  case TensorMapType::UInt32:
    return getIntegerUpdate<uint32_t>(kind);
  case TensorMapType::Int32:
    return getIntegerUpdate<int32_t>(kind);
  case TensorMapType::UInt64:
    return getIntegerUpdate<uint64_t>(kind);
  case TensorMapType::Int64:
    return getIntegerUpdate<int64_t>(kind);
  case TensorMapType::Float16:
    return getHalfUpdate<APFloat::IEEEhalf>(kind);
  case TensorMapType::BFloat16:
    return getHalfUpdate<APFloat::BFloat>(kind);
  case TensorMapType::Float32:
    return kind == TMAReduxKind::ADD ? update<float, addFloat> : nullptr;
  case TensorMapType::Float64:
    return kind == TMAReduxKind::ADD ? update<double, add<double>> : nullptr;
  default:
    return nullptr;
  }
}
