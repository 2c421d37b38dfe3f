//===- Arithmetic.cpp - nvvm operations that only compute -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ops/OpTable.h"
#include "Ops/Scalar/BitFunctions.h"
#include "Ops/Scalar/Float.h"
#include "Ops/Scalar/Functions.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include <cstring>

using namespace mlir;
using namespace mlir::nm_sparse;
using namespace mlir::nm_sparse::emulator;

namespace {

template <typename T>
T load(void *pointer) {
  return *static_cast<T *>(pointer);
}
template <typename T>
void store(void *pointer, T value) {
  *static_cast<T *>(pointer) = value;
}

std::optional<Rounding> getRounding(NVVM::FPRoundingMode mode) {
  switch (mode) {
  case NVVM::FPRoundingMode::RN:
    return Rounding::NearestTiesToEven;
  case NVVM::FPRoundingMode::RZ:
    return Rounding::TowardZero;
  case NVVM::FPRoundingMode::RM:
    return Rounding::TowardNegative;
  case NVVM::FPRoundingMode::RP:
    return Rounding::TowardPositive;
  case NVVM::FPRoundingMode::RNA:
    return Rounding::NearestTiesToAway;
  case NVVM::FPRoundingMode::NONE:
  case NVVM::FPRoundingMode::RS:
    return std::nullopt;
  }
  llvm_unreachable("unknown rounding mode");
}

template <typename Op>
FailureOr<Rounding> readRounding(Op op) {
  if (std::optional<Rounding> rounding = getRounding(op.getRnd()))
    return *rounding;
  return op->emitError() << "has the rounding mode "
                         << NVVM::stringifyFPRoundingMode(op.getRnd())
                         << ": emulated are rn, rz, rm, rp and rna";
}

template <typename Op>
Clamp readClamp(Op op) {
  return {op.getRelu(), op.getSat() == NVVM::SaturationMode::SATFINITE};
}

FailureOr<Handler> prepareToTF32(Operation *op) {
  auto convert = cast<NVVM::ConvertFloatToTF32Op>(op);
  FailureOr<Rounding> rounding = readRounding(convert);
  if (failed(rounding))
    return failure();
  Clamp clamp = readClamp(convert);
  return Handler([=](Thread &, Values operands, Values results) {
    store(results[0],
          convertToTF32(load<float>(operands[0]), *rounding, clamp));
  });
}

/// Two f32 operands to a pair of `format`.
template <typename Op>
FailureOr<Handler> prepareToHalves(Operation *op) {
  auto convert = cast<Op>(op);
  FailureOr<Rounding> rounding = readRounding(convert);
  if (failed(rounding))
    return failure();
  Clamp clamp = readClamp(convert);
  const llvm::fltSemantics *format =
      &cast<FloatType>(
           cast<VectorType>(op->getResult(0).getType()).getElementType())
           .getFloatSemantics();
  return Handler([=](Thread &, Values operands, Values results) {
    uint32_t upper =
        convertFloat(load<float>(operands[0]), *format, *rounding, clamp);
    uint32_t lower =
        convertFloat(load<float>(operands[1]), *format, *rounding, clamp);
    store(results[0], upper << 16 | lower);
  });
}

/// The 8-bit format of a conversion, null and an error when it is not emulated.
const llvm::fltSemantics *readByteFormat(Operation *op, Type type) {
  if (isa<Float8E4M3FNType, Float8E5M2Type>(type))
    return &cast<FloatType>(type).getFloatSemantics();
  op->emitError() << "converts with " << type
                  << ": emulated are f8E4M3FN and f8E5M2";
  return nullptr;
}

uint16_t packBytes(float upper, float lower, const llvm::fltSemantics &format,
                   bool relu) {
  auto convert = [&](float value) {
    return convertFloat(value, format, Rounding::NearestTiesToEven,
                        {relu, /*satfinite=*/true});
  };
  return convert(upper) << 8 | convert(lower);
}

FailureOr<Handler> prepareFloatsToBytes(Operation *op) {
  auto convert = cast<NVVM::ConvertF32x2ToF8x2Op>(op);
  const llvm::fltSemantics *format = readByteFormat(op, convert.getDstTy());
  if (!format)
    return failure();
  bool relu = convert.getRelu();
  return Handler([=](Thread &, Values operands, Values results) {
    store(results[0], packBytes(load<float>(operands[0]),
                                load<float>(operands[1]), *format, relu));
  });
}

FailureOr<Handler> prepareHalvesToBytes(Operation *op) {
  auto convert = cast<NVVM::ConvertF16x2ToF8x2Op>(op);
  const llvm::fltSemantics *format = readByteFormat(op, convert.getDstTy());
  if (!format)
    return failure();
  bool relu = convert.getRelu();
  return Handler([=](Thread &, Values operands, Values results) {
    auto pair = load<uint32_t>(operands[0]);
    const llvm::fltSemantics &half = llvm::APFloat::IEEEhalf();
    store(results[0],
          packBytes(convertToFloat(pair >> 16, half),
                    convertToFloat(pair & 0xffff, half), *format, relu));
  });
}

FailureOr<Handler> prepareBytesToHalves(Operation *op) {
  auto convert = cast<NVVM::ConvertF8x2ToF16x2Op>(op);
  const llvm::fltSemantics *format = readByteFormat(op, convert.getSrcType());
  if (!format)
    return failure();
  Clamp clamp = {convert.getRelu(), false};
  return Handler([=](Thread &, Values operands, Values results) {
    auto pair = load<uint16_t>(operands[0]);
    auto widen = [&](uint8_t byte) {
      return convertFloat(convertToFloat(byte, *format),
                          llvm::APFloat::IEEEhalf(),
                          Rounding::NearestTiesToEven, clamp);
    };
    store(results[0], widen(pair >> 8) << 16 | widen(pair & 0xff));
  });
}

FailureOr<Handler> preparePermute(Operation *op) {
  auto permute = cast<NVVM::PermuteOp>(op);
  static_assert(int(Permute::RC16) == int(NVVM::PermuteMode::RC16));
  auto mode = Permute(permute.getMode());
  bool hasHigh = bool(permute.getHi());
  return Handler([=](Thread &, Values operands, Values results) {
    uint32_t high = hasHigh ? load<uint32_t>(operands[1]) : 0;
    store(results[0], permuteBytes(mode, load<uint32_t>(operands[0]), high,
                                   load<uint32_t>(operands[hasHigh ? 2 : 1])));
  });
}

bool isSigned(NVVM::DotAccumulateType type) {
  return type == NVVM::DotAccumulateType::SIGNED;
}

FailureOr<Handler> prepareDot4(Operation *op) {
  auto dot = cast<NVVM::DotAccumulate4WayOp>(op);
  bool signedA = isSigned(dot.getAType()), signedB = isSigned(dot.getBType());
  return Handler([=](Thread &, Values operands, Values results) {
    store(results[0], dot4(load<uint32_t>(operands[0]), signedA,
                           load<uint32_t>(operands[1]), signedB,
                           load<uint32_t>(operands[2])));
  });
}

FailureOr<Handler> prepareDot2(Operation *op) {
  auto dot = cast<NVVM::DotAccumulate2WayOp>(op);
  bool signedA = isSigned(dot.getAType()), signedB = isSigned(dot.getBType());
  bool upper = dot.getBHi();
  return Handler([=](Thread &, Values operands, Values results) {
    store(results[0], dot2(load<uint32_t>(operands[0]), signedA,
                           load<uint32_t>(operands[1]), signedB, upper,
                           load<uint32_t>(operands[2])));
  });
}

FailureOr<Handler> prepareReciprocal(Operation *) {
  return Handler([run = findFunction("rcp.approx.ftz.f32")->run](
                     Thread &, Values operands, Values results) {
    run(operands, results[0]);
  });
}

} // namespace

ArrayRef<OpEntry> emulator::getArithmeticOps() {
  static const OpEntry entries[] = {
      {"nvvm.convert.float.to.tf32", prepareToTF32},
      {"nvvm.convert.f32x2.to.f16x2",
       prepareToHalves<NVVM::ConvertF32x2ToF16x2Op>},
      {"nvvm.convert.f32x2.to.bf16x2",
       prepareToHalves<NVVM::ConvertF32x2ToBF16x2Op>},
      {"nvvm.convert.f32x2.to.f8x2", prepareFloatsToBytes},
      {"nvvm.convert.f16x2.to.f8x2", prepareHalvesToBytes},
      {"nvvm.convert.f8x2.to.f16x2", prepareBytesToHalves},
      {"nvvm.prmt", preparePermute},
      {"nvvm.dot.accumulate.4way", prepareDot4},
      {"nvvm.dot.accumulate.2way", prepareDot2},
      {"nvvm.rcp.approx.ftz.f", prepareReciprocal},
  };
  return entries;
}
