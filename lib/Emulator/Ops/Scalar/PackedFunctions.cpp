//===- PackedFunctions.cpp - 16-bit floats, alone and in pairs ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ops/Scalar/Float.h"
#include "Ops/Scalar/Functions.h"
#include <array>

using namespace mlir;
using namespace mlir::nm_sparse;
using namespace mlir::nm_sparse::emulator;
using llvm::APFloat;

namespace {

struct F16 {
  static const llvm::fltSemantics &getFormat() { return APFloat::IEEEhalf(); }
};
struct BF16 {
  static const llvm::fltSemantics &getFormat() { return APFloat::BFloat(); }
};

template <typename Format>
APFloat load(uint16_t bits) {
  return APFloat(Format::getFormat(), llvm::APInt(16, bits));
}
uint16_t store(const APFloat &value, bool relu = false) {
  if (value.isNaN())
    return 0x7fff;
  if (relu && value.isNegative())
    return 0;
  return value.bitcastToAPInt().getZExtValue();
}

constexpr Rounding nearest = Rounding::NearestTiesToEven;

template <typename Format>
uint16_t add(uint16_t a, uint16_t b) {
  APFloat value = load<Format>(a);
  value.add(load<Format>(b), nearest);
  return store(value);
}
template <typename Format>
uint16_t subtract(uint16_t a, uint16_t b) {
  APFloat value = load<Format>(a);
  value.subtract(load<Format>(b), nearest);
  return store(value);
}
template <typename Format>
uint16_t multiply(uint16_t a, uint16_t b) {
  APFloat value = load<Format>(a);
  value.multiply(load<Format>(b), nearest);
  return store(value);
}
template <typename Format, bool larger, bool keepsNaN>
uint16_t select(uint16_t a, uint16_t b) {
  const llvm::fltSemantics &format = Format::getFormat();
  return convertFloat(selectFloat(larger, keepsNaN, convertToFloat(a, format),
                                  convertToFloat(b, format)),
                      format, nearest);
}
template <typename Format, bool relu>
uint16_t fuse(uint16_t a, uint16_t b, uint16_t c) {
  APFloat value = load<Format>(a);
  value.fusedMultiplyAdd(load<Format>(b), load<Format>(c), nearest);
  return store(value, relu);
}

/// To [0, 1]; a NaN becomes 0.
template <typename Format>
uint16_t fuseSaturated(uint16_t a, uint16_t b, uint16_t c) {
  APFloat value = load<Format>(fuse<Format, false>(a, b, c));
  APFloat one = APFloat::getOne(Format::getFormat());
  if (value.isNaN() || value.isNegative())
    return 0;
  return store(value > one ? one : value);
}

/// In memory and in a register the first is the lower half.
using Pair = std::array<uint16_t, 2>;

template <uint16_t (*function)(uint16_t, uint16_t)>
Pair both(Pair a, Pair b) {
  return {function(a[0], b[0]), function(a[1], b[1])};
}
template <uint16_t (*function)(uint16_t, uint16_t, uint16_t)>
Pair both3(Pair a, Pair b, Pair c) {
  return {function(a[0], b[0], c[0]), function(a[1], b[1], c[1])};
}

} // namespace

ArrayRef<Function> emulator::getPackedFunctions() {
  static const Function functions[] = {
      makeFunction<&fuse<F16, false>>("fma.rn.f16", "llvm.nvvm.fma.rn.f16"),
      makeFunction<&fuse<BF16, false>>("fma.rn.bf16", "llvm.nvvm.fma.rn.bf16"),
      makeFunction<&fuse<F16, true>>("fma.rn.relu.f16",
                                     "llvm.nvvm.fma.rn.relu.f16"),
      makeFunction<&fuse<BF16, true>>("fma.rn.relu.bf16",
                                      "llvm.nvvm.fma.rn.relu.bf16"),
      makeFunction<&both3<fuse<F16, false>>>("fma.rn.f16x2",
                                             "llvm.nvvm.fma.rn.f16x2"),
      makeFunction<&both3<fuse<BF16, false>>>("fma.rn.bf16x2",
                                              "llvm.nvvm.fma.rn.bf16x2"),
      makeFunction<&both3<fuse<F16, true>>>("fma.rn.relu.f16x2",
                                            "llvm.nvvm.fma.rn.relu.f16x2"),
      makeFunction<&both3<fuse<BF16, true>>>("fma.rn.relu.bf16x2",
                                             "llvm.nvvm.fma.rn.relu.bf16x2"),
      makeFunction<&fuseSaturated<F16>>("fma.rn.sat.f16",
                                        "llvm.nvvm.fma.rn.sat.f16"),
      makeFunction<&both3<fuseSaturated<F16>>>("fma.rn.sat.f16x2",
                                               "llvm.nvvm.fma.rn.sat.f16x2"),

      makeFunction<&add<F16>>("add.f16"),
      makeFunction<&add<F16>>("add.rn.f16"),
      makeFunction<&add<BF16>>("add.rn.bf16"),
      makeFunction<&both<add<F16>>>("add.f16x2"),
      makeFunction<&both<add<F16>>>("add.rn.f16x2"),
      makeFunction<&both<add<BF16>>>("add.rn.bf16x2"),
      makeFunction<&both<subtract<F16>>>("sub.f16x2"),
      makeFunction<&both<subtract<F16>>>("sub.rn.f16x2"),
      makeFunction<&both<subtract<BF16>>>("sub.rn.bf16x2"),
      makeFunction<&both<multiply<F16>>>("mul.f16x2"),
      makeFunction<&both<multiply<F16>>>("mul.rn.f16x2"),
      makeFunction<&both<multiply<BF16>>>("mul.rn.bf16x2"),

      makeFunction<&select<F16, false, false>>("min.f16", "llvm.nvvm.fmin.f16"),
      makeFunction<&select<F16, true, false>>("max.f16", "llvm.nvvm.fmax.f16"),
      makeFunction<&select<BF16, false, false>>("min.bf16",
                                                "llvm.nvvm.fmin.bf16"),
      makeFunction<&select<BF16, true, false>>("max.bf16",
                                               "llvm.nvvm.fmax.bf16"),
      makeFunction<&both<select<F16, false, false>>>("min.f16x2",
                                                     "llvm.nvvm.fmin.f16x2"),
      makeFunction<&both<select<F16, true, false>>>("max.f16x2",
                                                    "llvm.nvvm.fmax.f16x2"),
      makeFunction<&both<select<BF16, false, false>>>("min.bf16x2",
                                                      "llvm.nvvm.fmin.bf16x2"),
      makeFunction<&both<select<BF16, true, false>>>("max.bf16x2",
                                                     "llvm.nvvm.fmax.bf16x2"),
      makeFunction<&both<select<F16, true, true>>>("max.NaN.f16x2",
                                                   "llvm.nvvm.fmax.nan.f16x2"),
      makeFunction<&both<select<BF16, true, true>>>(
          "max.NaN.bf16x2", "llvm.nvvm.fmax.nan.bf16x2"),
  };
  return functions;
}
