//===- FloatSymbols.cpp - conversions that compiled code may call ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Emulator/FloatSymbols.h"

#include "nm_sparse/Base/Convert.h"
#include "nm_sparse/Base/Kind.h"
#include "llvm/ADT/bit.h"

using namespace mlir::nm_sparse;

namespace {

// Half-precision values travel in the low 16 bits of a vector register, which
// is where this ABI also passes a float.
float fromBits(uint16_t bits) { return llvm::bit_cast<float>(uint32_t(bits)); }
uint16_t toBits(float value) { return llvm::bit_cast<uint32_t>(value); }

float truncsfhf2(float value) { return fromBits(nmsF32ToF16(value)); }
float truncsfbf2(float value) { return fromBits(nmsF32ToBF16(value)); }
float extendhfsf2(float value) { return nmsF16ToF32(toBits(value)); }
float truncdfhf2(double value) {
  uint16_t bits;
  nmsFromDouble(NMS_F16, &value, &bits, 1);
  return fromBits(bits);
}
float truncdfbf2(double value) {
  uint16_t bits;
  nmsFromDouble(NMS_BF16, &value, &bits, 1);
  return fromBits(bits);
}

} // namespace

llvm::orc::SymbolMap
mlir::nm_sparse::getFloatSymbols(llvm::orc::MangleAndInterner mangle) {
  llvm::orc::SymbolMap symbols;
#if defined(__x86_64__)
  auto add = [&](llvm::StringRef name, auto *function) {
    symbols[mangle(name)] = {llvm::orc::ExecutorAddr::fromPtr(function),
                             llvm::JITSymbolFlags::Exported};
  };
  add("__truncsfhf2", &truncsfhf2);
  add("__truncsfbf2", &truncsfbf2);
  add("__truncdfhf2", &truncdfhf2);
  add("__truncdfbf2", &truncdfbf2);
  add("__extendhfsf2", &extendhfsf2);
#endif
  return symbols;
}
