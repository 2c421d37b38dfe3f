//===- MathFunctions.cpp - f32 --------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Computes PTX's .approx functions as well as the host can, so they differ from
// a GPU in the last bits; but tanh.approx.f32 is rounded to the 11 bits that
// PTX promises, and div.approx.f32 has the range that it has there, or kernels
// that need more would pass here and fail on a GPU.
//
//===----------------------------------------------------------------------===//

#include "Ops/Scalar/Float.h"
#include "Ops/Scalar/Functions.h"
#include "llvm/ADT/bit.h"
#include <cmath>

using namespace mlir;
using namespace mlir::nm_sparse;
using namespace mlir::nm_sparse::emulator;

namespace {

using Unary = float (*)(float);
using Binary = float (*)(float, float);

float exp2Of(float x) { return std::exp2(x); }
float log2Of(float x) { return std::log2(x); }
float sinOf(float x) { return std::sin(x); }
float cosOf(float x) { return std::cos(x); }
float sqrtOf(float x) { return std::sqrt(x); }
float rsqrtOf(float x) { return float(1.0 / std::sqrt(double(x))); }
float reciprocalOf(float x) { return 1.0f / x; }
/// To nearest, 11 bits: the low 13 of f32's 24 are dropped.
float tanhOf(float x) {
  if (std::isnan(x))
    return x;
  auto bits = llvm::bit_cast<uint32_t>(std::tanh(x));
  return llvm::bit_cast<float>((bits + 0x1000) & ~uint32_t(0x1fff));
}
float add(float a, float b) { return a + b; }
float subtract(float a, float b) { return a - b; }
float multiply(float a, float b) { return a * b; }
float divide(float a, float b) { return a / b; }
/// Divisors above 2^126 count as infinite.
float divideInRange(float a, float b) {
  return a / (std::fabs(b) > 0x1p126f ? std::copysign(INFINITY, b) : b);
}

template <Unary function>
float flushed(float x) {
  return flushSubnormal(function(flushSubnormal(x)));
}
template <Binary function>
float flushed2(float a, float b) {
  return flushSubnormal(function(flushSubnormal(a), flushSubnormal(b)));
}

template <bool larger, bool keepsNaN>
float select(float a, float b) {
  return selectFloat(larger, keepsNaN, a, b);
}

float fuse(float a, float b, float c) { return std::fma(a, b, c); }
float fuseFlushed(float a, float b, float c) {
  return flushSubnormal(
      std::fma(flushSubnormal(a), flushSubnormal(b), flushSubnormal(c)));
}

float absolute(float x) { return std::fabs(x); }
float negate(float x) { return -x; }

} // namespace

ArrayRef<Function> emulator::getMathFunctions() {
  static const Function functions[] = {
      makeFunction<&exp2Of>("ex2.approx.f32", "llvm.nvvm.ex2.approx"),
      makeFunction<&flushed<exp2Of>>("ex2.approx.ftz.f32",
                                     "llvm.nvvm.ex2.approx.ftz"),
      makeFunction<&log2Of>("lg2.approx.f32", "llvm.nvvm.lg2.approx.f"),
      makeFunction<&flushed<log2Of>>("lg2.approx.ftz.f32",
                                     "llvm.nvvm.lg2.approx.ftz.f"),
      makeFunction<&sinOf>("sin.approx.f32", "llvm.nvvm.sin.approx.f"),
      makeFunction<&flushed<sinOf>>("sin.approx.ftz.f32",
                                    "llvm.nvvm.sin.approx.ftz.f"),
      makeFunction<&cosOf>("cos.approx.f32", "llvm.nvvm.cos.approx.f"),
      makeFunction<&flushed<cosOf>>("cos.approx.ftz.f32",
                                    "llvm.nvvm.cos.approx.ftz.f"),
      makeFunction<&tanhOf>("tanh.approx.f32"),
      makeFunction<&sqrtOf>("sqrt.approx.f32", "llvm.nvvm.sqrt.approx.f"),
      makeFunction<&flushed<sqrtOf>>("sqrt.approx.ftz.f32",
                                     "llvm.nvvm.sqrt.approx.ftz.f"),
      makeFunction<&sqrtOf>("sqrt.rn.f32", "llvm.nvvm.sqrt.rn.f"),
      makeFunction<&flushed<sqrtOf>>("sqrt.rn.ftz.f32",
                                     "llvm.nvvm.sqrt.rn.ftz.f"),
      makeFunction<&rsqrtOf>("rsqrt.approx.f32", "llvm.nvvm.rsqrt.approx.f"),
      makeFunction<&flushed<rsqrtOf>>("rsqrt.approx.ftz.f32",
                                      "llvm.nvvm.rsqrt.approx.ftz.f"),
      makeFunction<&reciprocalOf>("rcp.approx.f32"),
      makeFunction<&flushed<reciprocalOf>>("rcp.approx.ftz.f32",
                                           "llvm.nvvm.rcp.approx.ftz.f"),
      makeFunction<&reciprocalOf>("rcp.rn.f32", "llvm.nvvm.rcp.rn.f"),
      makeFunction<&flushed<reciprocalOf>>("rcp.rn.ftz.f32",
                                           "llvm.nvvm.rcp.rn.ftz.f"),

      makeFunction<&add>("add.f32"),
      makeFunction<&add>("add.rn.f32", "llvm.nvvm.add.rn.f"),
      makeFunction<&flushed2<add>>("add.rn.ftz.f32", "llvm.nvvm.add.rn.ftz.f"),
      makeFunction<&subtract>("sub.f32"),
      makeFunction<&subtract>("sub.rn.f32"),
      makeFunction<&multiply>("mul.f32"),
      makeFunction<&multiply>("mul.rn.f32", "llvm.nvvm.mul.rn.f"),
      makeFunction<&flushed2<multiply>>("mul.rn.ftz.f32",
                                        "llvm.nvvm.mul.rn.ftz.f"),
      makeFunction<&divide>("div.rn.f32", "llvm.nvvm.div.rn.f"),
      makeFunction<&divideInRange>("div.approx.f32", "llvm.nvvm.div.approx.f"),
      makeFunction<&flushed2<divideInRange>>("div.approx.ftz.f32",
                                             "llvm.nvvm.div.approx.ftz.f"),
      makeFunction<&divide>("div.full.f32", "llvm.nvvm.div.full"),
      makeFunction<&fuse>("fma.rn.f32", "llvm.nvvm.fma.rn.f"),
      makeFunction<&fuseFlushed>("fma.rn.ftz.f32", "llvm.nvvm.fma.rn.ftz.f"),
      makeFunction<&absolute>("abs.f32", "llvm.nvvm.fabs"),
      makeFunction<&negate>("neg.f32"),

      makeFunction<&select<false, false>>("min.f32", "llvm.nvvm.fmin.f"),
      makeFunction<&select<true, false>>("max.f32", "llvm.nvvm.fmax.f"),
      makeFunction<&select<false, true>>("min.NaN.f32", "llvm.nvvm.fmin.nan.f"),
      makeFunction<&select<true, true>>("max.NaN.f32", "llvm.nvvm.fmax.nan.f"),
      makeFunction<&flushed2<select<false, false>>>("min.ftz.f32",
                                                    "llvm.nvvm.fmin.ftz.f"),
      makeFunction<&flushed2<select<true, false>>>("max.ftz.f32",
                                                   "llvm.nvvm.fmax.ftz.f"),
  };
  return functions;
}
