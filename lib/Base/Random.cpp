//===- Random.cpp - Counter-based normal random numbers -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Box-Muller on a hash of the element's number. Libraries round logarithms and
// cosines differently, so both are evaluated here from IEEE additions,
// products, quotients and square roots alone; the build turns contraction into
// fused operations off for this file. That makes every bit the same everywhere.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Base/Random.h"
#include "nm_sparse/Base/Element.h"
#include "nm_sparse/Base/Fail.h"
#include "nm_sparse/Base/Parallel.h"

#include <cmath>
#include <type_traits>

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif

using namespace nms;

namespace {

constexpr double integerScale = 32;

/// The finalizer of splitmix64.
inline uint64_t mix(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ull;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebull;
  return value ^ (value >> 31);
}

/// log(u) for a normal positive u: exponent, and the series of atanh for a
/// mantissa between sqrt(1/2) and sqrt(2).
inline double logarithm(double u) {
  uint64_t bits = bitCast<uint64_t>(u);
  // Adding 1 - sqrt(1/2) in units of the exponent splits at sqrt(2).
  uint64_t shifted = bits + (0x3ff0000000000000ull - 0x3fe6a09e667f3bcdull);
  int64_t exponent = static_cast<int64_t>(shifted >> 52) - 0x3ff;
  double mantissa =
      bitCast<double>(bits - (static_cast<uint64_t>(exponent) << 52));
  double s = (mantissa - 1.0) / (mantissa + 1.0), q = s * s;
  double series = 1.0 / 15;
  series = series * q + 1.0 / 13;
  series = series * q + 1.0 / 11;
  series = series * q + 1.0 / 9;
  series = series * q + 1.0 / 7;
  series = series * q + 1.0 / 5;
  series = series * q + 1.0 / 3;
  series = series * q + 1.0;
  return static_cast<double>(exponent) * 0.69314718055994530942 +
         2.0 * s * series;
}

/// Sine and cosine of an angle within an eighth of a turn of zero.
inline void sineCosine(double a, double &sine, double &cosine) {
  double q = a * a;
  double s = -1.0 / 39916800;
  s = s * q + 1.0 / 362880;
  s = s * q - 1.0 / 5040;
  s = s * q + 1.0 / 120;
  s = s * q - 1.0 / 6;
  sine = a + a * q * s;
  double c = 1.0 / 479001600;
  c = c * q - 1.0 / 3628800;
  c = c * q + 1.0 / 40320;
  c = c * q - 1.0 / 720;
  c = c * q + 1.0 / 24;
  c = c * q - 1.0 / 2;
  cosine = 1.0 + q * c;
}

/// Elements 2 * pair and 2 * pair + 1 of a stream.
inline void normalPair(uint64_t key, uint64_t pair, double &first,
                       double &second) {
  uint64_t bits = mix(key + pair * 0x9e3779b97f4a7c15ull);
  double u = (static_cast<double>(bits >> 32) + 0.5) * 0x1p-32;
  double radius = std::sqrt(-2.0 * logarithm(u));
  // Two bits choose the quarter of the turn, thirty the angle in it.
  uint32_t low = static_cast<uint32_t>(bits);
  double fraction =
      static_cast<double>(static_cast<int32_t>(low << 2)) * 0x1p-32;
  double sine, cosine;
  sineCosine(fraction * 1.57079632679489661923, sine, cosine);
  bool swap = low & 0x40000000u;
  double sign = low & 0x80000000u ? -radius : radius;
  first = (swap ? -sine : cosine) * sign;
  second = (swap ? cosine : sine) * sign;
}

template <typename E>
typename E::Storage store(double value) {
  if constexpr (std::is_integral_v<typename E::Storage> &&
                std::is_signed_v<typename E::Storage>)
    return static_cast<typename E::Storage>(
        roundToInteger(value * integerScale, -127, 127));
  else if constexpr (std::is_same_v<typename E::Storage, double>)
    return value;
  else
    return E::fromFloat(static_cast<float>(value));
}

} // namespace

extern "C" int nmsRandomNormal(int32_t kind, void *data, int64_t count,
                               uint64_t seed, uint64_t stream) {
  if (count < 0 || (count > 0 && !data))
    return fail("nmsRandomNormal: %lld elements at %p: pass an array and a "
                "count that is not negative",
                static_cast<long long>(count), data);
  uint64_t key =
      mix(mix(seed + 0x9e3779b97f4a7c15ull) ^ (stream + 0x632be59bd9b4e019ull));
  bool known = dispatchKind(kind, [&](auto element) {
    using E = decltype(element);
    auto *out = static_cast<typename E::Storage *>(data);
    // An even chunk keeps both elements of a pair on one thread.
    parallelChunks(count, int64_t(1) << 15, [=](int64_t begin, int64_t end) {
      double first, second;
      int64_t i = begin;
      for (; i + 1 < end; i += 2) {
        normalPair(key, static_cast<uint64_t>(i) / 2, first, second);
        out[i] = store<E>(first);
        out[i + 1] = store<E>(second);
      }
      if (i < end) {
        normalPair(key, static_cast<uint64_t>(i) / 2, first, second);
        out[i] = store<E>(first);
      }
    });
  });
  if (!known)
    return fail("nmsRandomNormal: element kind %d is unknown: use one of "
                "NmsKind (0 to 7)",
                kind);
  return 0;
}
