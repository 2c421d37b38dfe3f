//===- ConversionFunctions.cpp - cvt --------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// With two operands, or a pair, the first operand becomes the upper half.
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

using Pair = std::array<uint16_t, 2>;
using Bytes = std::array<uint8_t, 2>;
using Format = const llvm::fltSemantics &(*)();

constexpr Format f16 = APFloat::IEEEhalf, bf16 = APFloat::BFloat,
                 e4m3 = APFloat::Float8E4M3FN, e5m2 = APFloat::Float8E5M2;
constexpr Rounding rn = Rounding::NearestTiesToEven, rz = Rounding::TowardZero,
                   rna = Rounding::NearestTiesToAway;

template <Format format, Rounding rounding, bool relu = false,
          bool satfinite = false>
uint16_t narrow(float value) {
  return convertFloat(value, format(), rounding, {relu, satfinite});
}
template <Format format, Rounding rounding, bool relu = false,
          bool satfinite = false>
Pair narrow2(float upper, float lower) {
  return {narrow<format, rounding, relu, satfinite>(lower),
          narrow<format, rounding, relu, satfinite>(upper)};
}
template <Format format, bool relu = false>
Bytes narrowToBytes(float upper, float lower) {
  return {uint8_t(narrow<format, rn, relu, true>(lower)),
          uint8_t(narrow<format, rn, relu, true>(upper))};
}
template <Format format, bool relu = false>
Bytes narrowHalves(Pair pair) {
  return narrowToBytes<format, relu>(convertToFloat(pair[1], f16()),
                                     convertToFloat(pair[0], f16()));
}
template <Format format, bool relu = false>
Pair widenBytes(Bytes bytes) {
  return narrow2<f16, rn, relu>(convertToFloat(bytes[1], format()),
                                convertToFloat(bytes[0], format()));
}
template <Format format>
float widen(uint16_t value) {
  return convertToFloat(value, format());
}
template <Rounding rounding, bool relu = false, bool satfinite = false>
uint32_t toTF32(float value) {
  return convertToTF32(value, rounding, {relu, satfinite});
}

} // namespace

ArrayRef<Function> emulator::getConversionFunctions() {
  static const Function functions[] = {
      makeFunction<&narrow<f16, rn>>("cvt.rn.f16.f32", "llvm.nvvm.f2f16.rn"),
      makeFunction<&narrow<f16, rz>>("cvt.rz.f16.f32", "llvm.nvvm.f2f16.rz"),
      makeFunction<&narrow<bf16, rn>>("cvt.rn.bf16.f32", "llvm.nvvm.f2bf16.rn"),
      makeFunction<&narrow<bf16, rz>>("cvt.rz.bf16.f32", "llvm.nvvm.f2bf16.rz"),
      makeFunction<&narrow<bf16, rn, true>>("cvt.rn.relu.bf16.f32",
                                            "llvm.nvvm.f2bf16.rn.relu"),
      makeFunction<&widen<f16>>("cvt.f32.f16"),
      makeFunction<&widen<bf16>>("cvt.f32.bf16"),

      makeFunction<&narrow2<f16, rn>>("cvt.rn.f16x2.f32",
                                      "llvm.nvvm.ff2f16x2.rn"),
      makeFunction<&narrow2<f16, rz>>("cvt.rz.f16x2.f32",
                                      "llvm.nvvm.ff2f16x2.rz"),
      makeFunction<&narrow2<f16, rn, true>>("cvt.rn.relu.f16x2.f32",
                                            "llvm.nvvm.ff2f16x2.rn.relu"),
      makeFunction<&narrow2<f16, rn, false, true>>(
          "cvt.rn.satfinite.f16x2.f32", "llvm.nvvm.ff2f16x2.rn.satfinite"),
      makeFunction<&narrow2<bf16, rn>>("cvt.rn.bf16x2.f32",
                                       "llvm.nvvm.ff2bf16x2.rn"),
      makeFunction<&narrow2<bf16, rz>>("cvt.rz.bf16x2.f32",
                                       "llvm.nvvm.ff2bf16x2.rz"),
      makeFunction<&narrow2<bf16, rn, true>>("cvt.rn.relu.bf16x2.f32",
                                             "llvm.nvvm.ff2bf16x2.rn.relu"),
      makeFunction<&narrow2<bf16, rn, false, true>>(
          "cvt.rn.satfinite.bf16x2.f32", "llvm.nvvm.ff2bf16x2.rn.satfinite"),

      makeFunction<&narrowToBytes<e4m3>>("cvt.rn.satfinite.e4m3x2.f32",
                                         "llvm.nvvm.ff.to.e4m3x2.rn"),
      makeFunction<&narrowToBytes<e5m2>>("cvt.rn.satfinite.e5m2x2.f32",
                                         "llvm.nvvm.ff.to.e5m2x2.rn"),
      makeFunction<&narrowToBytes<e4m3, true>>(
          "cvt.rn.satfinite.relu.e4m3x2.f32", "llvm.nvvm.ff.to.e4m3x2.rn.relu"),
      makeFunction<&narrowToBytes<e5m2, true>>(
          "cvt.rn.satfinite.relu.e5m2x2.f32", "llvm.nvvm.ff.to.e5m2x2.rn.relu"),
      makeFunction<&narrowHalves<e4m3>>("cvt.rn.satfinite.e4m3x2.f16x2",
                                        "llvm.nvvm.f16x2.to.e4m3x2.rn"),
      makeFunction<&narrowHalves<e5m2>>("cvt.rn.satfinite.e5m2x2.f16x2",
                                        "llvm.nvvm.f16x2.to.e5m2x2.rn"),
      makeFunction<&widenBytes<e4m3>>("cvt.rn.f16x2.e4m3x2",
                                      "llvm.nvvm.e4m3x2.to.f16x2.rn"),
      makeFunction<&widenBytes<e5m2>>("cvt.rn.f16x2.e5m2x2",
                                      "llvm.nvvm.e5m2x2.to.f16x2.rn"),
      makeFunction<&widenBytes<e4m3, true>>(
          "cvt.rn.relu.f16x2.e4m3x2", "llvm.nvvm.e4m3x2.to.f16x2.rn.relu"),
      makeFunction<&widenBytes<e5m2, true>>(
          "cvt.rn.relu.f16x2.e5m2x2", "llvm.nvvm.e5m2x2.to.f16x2.rn.relu"),

      makeFunction<&toTF32<rna>>("cvt.rna.tf32.f32", "llvm.nvvm.f2tf32.rna"),
      makeFunction<&toTF32<rna, false, true>>("cvt.rna.satfinite.tf32.f32",
                                              "llvm.nvvm.f2tf32.rna.satfinite"),
      makeFunction<&toTF32<rn>>("cvt.rn.tf32.f32", "llvm.nvvm.f2tf32.rn"),
      makeFunction<&toTF32<rn, true>>("cvt.rn.relu.tf32.f32",
                                      "llvm.nvvm.f2tf32.rn.relu"),
      makeFunction<&toTF32<rz>>("cvt.rz.tf32.f32", "llvm.nvvm.f2tf32.rz"),
      makeFunction<&toTF32<rz, true>>("cvt.rz.relu.tf32.f32",
                                      "llvm.nvvm.f2tf32.rz.relu"),
  };
  return functions;
}
