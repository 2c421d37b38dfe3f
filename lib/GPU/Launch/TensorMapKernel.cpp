//===- TensorMapKernel.cpp - kernels that make tensor maps ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One thread writes the fields of each map (tensormap.replace) and releases
// them to the threads that copy by it.
//
//===----------------------------------------------------------------------===//

#include "TensorMapKernel.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "nm_sparse/GPU/Support/Im2col.h"
#include "nm_sparse/GPU/Support/KernelArguments.h"
#include "nm_sparse/GPU/Support/PTXVersion.h"

using namespace mlir;
using namespace mlir::nm_sparse;
using nvgpu::TmaCreateDescriptorOp;

/// The oldest PTX that has tensormap.replace.
static constexpr unsigned kReplacePTX = 83;

/// The dimensions that a tensor map can have.
static constexpr int64_t kMostDimensions = 5;

//===----------------------------------------------------------------------===//
// Maps that a kernel can make
//===----------------------------------------------------------------------===//

Value nm_sparse::getMappedTensor(TmaCreateDescriptorOp map) {
  Value tensor = map.getTensor();
  while (auto cast = tensor.getDefiningOp<memref::CastOp>())
    tensor = cast.getSource();
  return tensor;
}

/// As tensormap.replace numbers the types of elements; those that only copies
/// see are bytes.
static std::optional<int32_t> getElementNumber(Type type) {
  if (type.isF16())
    return 6;
  if (type.isF32())
    return 7;
  if (type.isBF16())
    return 10;
  if (type.isInteger(32))
    return 3;
  if (type.isIntOrFloat() && type.getIntOrFloatBitWidth() == 8)
    return 0;
  return std::nullopt;
}

LogicalResult nm_sparse::checkDeviceMap(TmaCreateDescriptorOp map) {
  if (getIm2col(map))
    return map.emitError("is in mode im2col, which no kernel can make: "
                         "tensormap.replace has no fields of it; let the host "
                         "make maps (--arguments fields or bound), or choose a "
                         "schedule without it");
  auto type = dyn_cast<MemRefType>(getMappedTensor(map).getType());
  if (!type)
    return map.emitError("is of a memref whose rank is not known");
  nvgpu::TensorMapDescriptorType mapType = map.getTensorMap().getType();
  int64_t rank = mapType.getTensor().getRank();
  if (type.getRank() != rank || rank < 1 || rank > kMostDimensions)
    return map.emitError() << "has a box of " << rank
                           << " dimensions, and is of " << type
                           << "; both must have the same number, 1 to "
                           << kMostDimensions;
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(type.getStridesAndOffset(strides, offset)) || strides.back() != 1)
    return map.emitError() << "is of " << type
                           << ", whose last dimension is not contiguous";
  if (!getElementNumber(type.getElementType()))
    return map.emitError() << "is of elements " << type.getElementType()
                           << ", and kernels make maps of f16, bf16, f32, i32 "
                              "and types of 8 bits";
  if (mapType.getInterleave() !=
          nvgpu::TensorMapInterleaveKind::INTERLEAVE_NONE ||
      mapType.getOob() != nvgpu::TensorMapOOBKind::OOB_ZERO)
    return map.emitError("is interleaved or filled by NaN, which no kernel of "
                         "ours makes");
  return success();
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

namespace {

/// The code of the kernel that makes some maps.
class MapKernel {
public:
  MapKernel(OpBuilder &b, Location loc, Block *entry)
      : b(b), loc(loc), next(entry->args_begin()), end(entry->args_end()) {}

  /// Makes `maps` of the arguments, in order, in the array that is the last.
  void emit(ArrayRef<TmaCreateDescriptorOp> maps) {
    // Allocated, aligned, offset, and two sizes and strides.
    Value bytes = *(end - 6);
    auto global = LLVM::LLVMPointerType::get(b.getContext(), 1);
    Value to = LLVM::AddrSpaceCastOp::create(b, loc, global, bytes);
    for (auto [number, map] : llvm::enumerate(maps))
      emit(map, advance(to, int64_t(number) * kTensorMapBytes));
    NVVM::FenceProxyReleaseOp::create(b, loc, NVVM::MemScopeKind::GPU);
    LLVM::ReturnOp::create(b, loc, ValueRange());
  }

private:
  void emit(TmaCreateDescriptorOp map, Value to) {
    nvgpu::TensorMapDescriptorType mapType = map.getTensorMap().getType();
    auto type = cast<MemRefType>(getMappedTensor(map).getType());
    int64_t rank = type.getRank();
    int64_t bytes = type.getElementTypeBitWidth() / 8;
    ++next; // The pointer to what was allocated.
    Value base = *next++, offset = *next++;
    SmallVector<Value> sizes(next, next + rank);
    SmallVector<Value> strides(next + rank, next + 2 * rank);
    next += 2 * rank;

    // Bytes that belong to no field are zero.
    auto words = VectorType::get(4, b.getI32Type());
    Value zero = LLVM::ConstantOp::create(
        b, loc, words, DenseElementsAttr::get(words, b.getI32IntegerAttr(0)));
    for (int64_t byte = 0; byte < kTensorMapBytes; byte += 16)
      LLVM::StoreOp::create(b, loc, zero, advance(to, byte), /*alignment=*/16);

    Value start = LLVM::AddOp::create(
        b, loc, LLVM::PtrToIntOp::create(b, loc, b.getI64Type(), base),
        scale(offset, bytes));
    replace("global.address", to, {start});
    replace("rank", to, {getInt(rank - 1)});
    // The hardware counts dimensions from the innermost.
    for (int64_t dim = 0; dim < rank; ++dim) {
      int64_t place = rank - 1 - dim;
      Value number = getInt(dim);
      replace("box.dim", to,
              {number, getInt(mapType.getTensor().getDimSize(place))});
      replace("global.dim", to,
              {number,
               LLVM::TruncOp::create(b, loc, b.getI32Type(), sizes[place])});
      replace("element.stride", to, {number, getInt(1)});
      if (place > 0)
        replace("global.stride", to,
                {number, scale(strides[place - 1], bytes)});
    }
    replace("elemtype", to, {getInt(*getElementNumber(type.getElementType()))});
    replace("interleave.layout", to, {getInt(0)});
    replace("swizzle.mode", to, {getInt(int64_t(mapType.getSwizzle()))});
    replace("fill.mode", to, {getInt(0)});
  }

  void replace(const Twine &field, Value map, ArrayRef<Value> operands) {
    SmallVector<Value> all = {map};
    llvm::append_range(all, operands);
    LLVM::CallIntrinsicOp::create(
        b, loc, b.getStringAttr("llvm.nvvm.tensormap.replace." + field), all);
  }

  Value getInt(int64_t value) {
    return LLVM::ConstantOp::create(b, loc, b.getI32IntegerAttr(value));
  }

  Value scale(Value value, int64_t by) {
    return LLVM::MulOp::create(
        b, loc, value,
        LLVM::ConstantOp::create(b, loc, b.getI64IntegerAttr(by)));
  }

  Value advance(Value pointer, int64_t bytes) {
    if (bytes == 0)
      return pointer;
    return LLVM::GEPOp::create(b, loc, pointer.getType(), b.getI8Type(),
                               pointer, ArrayRef<LLVM::GEPArg>{int32_t(bytes)});
  }

  OpBuilder &b;
  Location loc;
  Block::args_iterator next, end;
};

} // namespace

LLVM::LLVMFuncOp TensorMapKernels::get(gpu::GPUModuleOp module, Location loc,
                                       ArrayRef<TmaCreateDescriptorOp> maps) {
  OpBuilder b(module.getContext());
  SmallVector<Attribute> key = {module.getNameAttr()};
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  SmallVector<Type> types;
  auto addArray = [&](int64_t rank) {
    types.append(2, pointer);
    types.append(1 + 2 * rank, b.getI64Type());
  };
  for (TmaCreateDescriptorOp map : maps) {
    auto type = cast<MemRefType>(getMappedTensor(map).getType());
    key.push_back(TypeAttr::get(type.getElementType()));
    key.push_back(TypeAttr::get(map.getTensorMap().getType()));
    addArray(type.getRank());
  }
  addArray(2);
  LLVM::LLVMFuncOp &kernel = kernels[b.getArrayAttr(key)];
  if (kernel)
    return kernel;
  requirePTX(module, kReplacePTX);
  b.setInsertionPointToEnd(module.getBody());
  kernel = LLVM::LLVMFuncOp::create(
      b, loc, "make_tensor_maps",
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()),
                                  types));
  SymbolTable table(module);
  kernel->remove();
  table.insert(kernel);
  kernel->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), b.getUnitAttr());
  kernel->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(), b.getUnitAttr());
  kernel->setAttr(NVVM::NVVMDialect::getMaxntidAttrName(),
                  b.getDenseI32ArrayAttr({1, 1, 1}));
  Block *entry = kernel.addEntryBlock(b);
  b.setInsertionPointToStart(entry);
  MapKernel(b, loc, entry).emit(maps);
  unsigned out = types.size() - 7;
  for (unsigned number = 0, e = types.size(); number < e; ++number)
    if (types[number] == pointer)
      kernel.setArgAttr(number,
                        number < out
                            ? LLVM::LLVMDialect::getReadonlyAttrName()
                            : LLVM::LLVMDialect::getWriteOnlyAttrName(),
                        b.getUnitAttr());
  return kernel;
}
