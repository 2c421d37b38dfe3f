//===- TensorMapFields.cpp - tensormap.replace ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels that make tensor maps start with 128 bytes of zeros and set all
// fields; others change some fields of a map that the driver encoded. What a
// field may hold is checked where the map is used: before that, a kernel may
// have reasons for any number, such as a size of 0 in a map that nobody uses.
//
//===----------------------------------------------------------------------===//

#include "Machine/Machine.h"
#include "Memory/TensorMap.h"
#include "Ops/OpTable.h"
#include "Ops/Operands.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Matchers.h"
#include "nm_sparse/Base/CudaApi.h"
#include "llvm/Support/FormatVariadic.h"
#include <cstring>

using namespace mlir;
using namespace mlir::nm_sparse;
using namespace mlir::nm_sparse::emulator;

namespace {

using SetField =
    llvm::function_ref<void(TensorMap &, unsigned ordinal, uint64_t value)>;

/// Reads the map, lets `set` change it, and writes it: one access of all 128
/// bytes, as in PTX.
void replaceField(Thread &thread, uint64_t address, AddressSpace space,
                  TensorMapField field, unsigned ordinal, uint64_t value,
                  SetField set) {
  constexpr unsigned alignment = alignof(nms::cuda::TensorMap);
  TensorMap map;
  std::memcpy(
      &map,
      thread.access(address, space, sizeof(map), alignment, AccessKind::Read),
      sizeof(map));
  if (map.magic != TensorMap::expectedMagic) {
    const auto *bytes = reinterpret_cast<const char *>(&map);
    if (std::any_of(bytes, bytes + sizeof(map), [](char c) { return c != 0; }))
      thread.fault(llvm::formatv(
          "there is neither a tensor map at {0:x} nor 128 bytes of zeros",
          address));
    map.magic = TensorMap::expectedMagic;
    map.missing = TensorMap::allMissing;
  }
  if (map.mode != TensorMapMode::Tiled)
    thread.fault(llvm::formatv(
        "the tensor map at {0:x} was encoded by cuTensorMapEncodeIm2col, and "
        "tensormap.replace changes those of cuTensorMapEncodeTiled alone",
        address));
  set(map, ordinal, value);
  map.missing &= ~getTensorMapBit(field, ordinal);
  std::memcpy(
      thread.access(address, space, sizeof(map), alignment, AccessKind::Write),
      &map, sizeof(map));
  if (thread.cta.cluster.launch.memory->contains(address, sizeof(map)))
    thread.cta.tensorMaps.replace(thread, address);
}

/// Intrinsics take immediates as constants; LLVM accepts nothing else.
FailureOr<uint64_t> getImmediate(Operation *op, unsigned operand,
                                 StringRef what, uint64_t last) {
  llvm::APInt value;
  if (operand >= op->getNumOperands() ||
      !matchPattern(op->getOperand(operand), m_ConstantInt(&value)))
    return op->emitOpError("wants its ") << what << " as a constant";
  if (value.ugt(last))
    return op->emitOpError("has ") << what << " " << value.getZExtValue()
                                   << "; emulated are 0 to " << last;
  return value.getZExtValue();
}

LogicalResult checkOperands(Operation *op, unsigned count) {
  if (op->getNumOperands() != count ||
      !isa<LLVM::LLVMPointerType>(op->getOperand(0).getType()))
    return op->emitOpError("must have ")
           << count << " operands, a pointer first";
  return success();
}

/// Fields of one number in a register.
template <TensorMapField field, typename T>
FailureOr<Handler> prepareNumber(Operation *op) {
  if (failed(checkOperands(op, 2)))
    return failure();
  AddressSpace space = getAddressSpace(op->getOperand(0));
  return Handler([=](Thread &thread, Values operands, Values) {
    replaceField(thread, *static_cast<uint64_t *>(operands[0]), space, field, 0,
                 *static_cast<T *>(operands[1]),
                 [](TensorMap &map, unsigned, uint64_t value) {
                   if (field == TensorMapField::Address)
                     map.base = value;
                   else // The instruction takes the rank less one.
                     map.rank = std::min<uint64_t>(value + 1, UINT8_MAX);
                 });
  });
}

/// Fields of one number in a register for each dimension, which is an
/// immediate.
template <TensorMapField field, typename T>
FailureOr<Handler> prepareDimension(Operation *op) {
  if (failed(checkOperands(op, 3)))
    return failure();
  unsigned count = TensorMap::maxRank - (field == TensorMapField::Stride);
  FailureOr<uint64_t> ordinal = getImmediate(op, 1, "ordinal", count - 1);
  if (failed(ordinal))
    return failure();
  AddressSpace space = getAddressSpace(op->getOperand(0));
  return Handler([=, ordinal = unsigned(*ordinal)](Thread &thread,
                                                   Values operands, Values) {
    replaceField(thread, *static_cast<uint64_t *>(operands[0]), space, field,
                 ordinal, *static_cast<T *>(operands[2]),
                 [](TensorMap &map, unsigned i, uint64_t value) {
                   if (field == TensorMapField::Box)
                     map.setBox(i, value);
                   else if (field == TensorMapField::Size)
                     map.sizes[i] = value;
                   else if (field == TensorMapField::ElementStride)
                     map.setElementStride(i, value);
                   else
                     map.strideBytes[i] = value;
                 });
  });
}

/// PTX numbers some types differently than cuTensorMapEncodeTiled does.
TensorMapType getType(uint64_t elementType) {
  switch (elementType) {
  case 8:
    return TensorMapType::Float32FlushToZero;
  case 9:
    return TensorMapType::Float64;
  case 10:
    return TensorMapType::BFloat16;
  default:
    return TensorMapType(elementType);
  }
}

/// Fields of an immediate up to `last`.
template <TensorMapField field, unsigned last>
FailureOr<Handler> prepareMode(Operation *op) {
  if (failed(checkOperands(op, 2)))
    return failure();
  FailureOr<uint64_t> mode = getImmediate(op, 1, "value", last);
  if (failed(mode))
    return failure();
  AddressSpace space = getAddressSpace(op->getOperand(0));
  return Handler([=, mode = *mode](Thread &thread, Values operands, Values) {
    replaceField(thread, *static_cast<uint64_t *>(operands[0]), space, field, 0,
                 mode, [](TensorMap &map, unsigned, uint64_t value) {
                   if (field == TensorMapField::ElementType)
                     map.setType(getType(value));
                   else if (field == TensorMapField::Interleave)
                     map.interleave = TensorMapInterleave(value);
                   else if (field == TensorMapField::Swizzle)
                     map.swizzle = TensorMapSwizzle(value);
                   else
                     map.fill = TensorMapFill(value);
                 });
  });
}

} // namespace

ArrayRef<OpEntry> emulator::getTensorMapOps() {
  using Field = TensorMapField;
  static const OpEntry entries[] = {
      {"llvm.nvvm.tensormap.replace.global.address",
       prepareNumber<Field::Address, uint64_t>},
      {"llvm.nvvm.tensormap.replace.rank",
       prepareNumber<Field::Rank, uint32_t>},
      {"llvm.nvvm.tensormap.replace.box.dim",
       prepareDimension<Field::Box, uint32_t>},
      {"llvm.nvvm.tensormap.replace.global.dim",
       prepareDimension<Field::Size, uint32_t>},
      {"llvm.nvvm.tensormap.replace.global.stride",
       prepareDimension<Field::Stride, uint64_t>},
      {"llvm.nvvm.tensormap.replace.element.stride",
       prepareDimension<Field::ElementStride, uint32_t>},
      {"llvm.nvvm.tensormap.replace.elemtype",
       prepareMode<Field::ElementType, 12>},
      {"llvm.nvvm.tensormap.replace.interleave.layout",
       prepareMode<Field::Interleave, 2>},
      {"llvm.nvvm.tensormap.replace.swizzle.mode",
       prepareMode<Field::Swizzle, 3>},
      {"llvm.nvvm.tensormap.replace.fill.mode", prepareMode<Field::Fill, 1>},
  };
  return entries;
}
