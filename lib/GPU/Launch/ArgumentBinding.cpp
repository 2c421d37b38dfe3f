//===- ArgumentBinding.cpp - what a launch passes when bound --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Buffers come first, by what the kernel does to them, then tensor maps, then
// numbers. What the host code determines is no argument.
//
//===----------------------------------------------------------------------===//

#include "ArgumentBinding.h"

#include "LaunchFields.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"
#include "nm_sparse/GPU/Support/Buffers.h"
#include "nm_sparse/GPU/Support/KernelArguments.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace mlir::nm_sparse;
using Kind = ArgumentSource::Kind;

/// Returns true if `value` is computed from sizes, offsets and strides of
/// arrays alone. Then it is not negative, and hosts check that it is small.
static bool isOfSizes(Value value) {
  SmallVector<Value> values = {value};
  llvm::SmallPtrSet<Operation *, 8> seen;
  while (!values.empty()) {
    Operation *op = values.pop_back_val().getDefiningOp();
    // An argument, or a variable of a loop.
    if (!op)
      return false;
    if (!seen.insert(op).second || op->hasTrait<OpTrait::ConstantLike>() ||
        isa<memref::DimOp, memref::ExtractStridedMetadataOp>(op))
      continue;
    if (op->getNumOperands() == 0 || op->getNumRegions() != 0 ||
        !isMemoryEffectFree(op) ||
        isa<memref::ExtractAlignedPointerAsIndexOp>(op))
      return false;
    // A remainder is as small as the divisor.
    if (auto remainder = dyn_cast<arith::RemUIOp>(op))
      values.push_back(remainder.getRhs());
    else
      llvm::append_range(values, op->getOperands());
  }
  return true;
}

namespace {

/// Works out the binding of one launch.
class Binder {
public:
  Binder(gpu::LaunchFuncOp launch, LLVM::LLVMFuncOp kernel)
      : launch(launch), kernel(kernel), b(launch) {}

  FailureOr<ArgumentBinding> bind() {
    binding.sources.resize(kernel.getNumArguments());
    auto operands = launch.getKernelOperands();
    for (auto [number, operand] : llvm::enumerate(operands))
      if (isNeeded(number) && failed(collect(number, operand)))
        return failure();
    addPointers();
    for (unsigned number : maps)
      addMap(number, operands[number]);
    for (unsigned number : numbers)
      addNumber(number, operands[number]);
    if (failed(addCluster()))
      return failure();
    return std::move(binding);
  }

private:
  struct Use {
    bool reads = false, writes = false;
    SmallVector<std::pair<unsigned, int64_t>> arguments; ///< And bytes.
  };

  /// Returns true if the kernel reads argument `number`, or if it is a pointer
  /// to what the kernel accesses, perhaps by a tensor map alone: hosts order
  /// launches by their pointers.
  bool isNeeded(unsigned number) {
    return !kernel.getArgument(number).use_empty() ||
           kernel.getArgAttr(number,
                             LLVM::LLVMDialect::getReadonlyAttrName()) ||
           kernel.getArgAttr(number, LLVM::LLVMDialect::getWriteOnlyAttrName());
  }

  /// Notes what argument `number` is.
  LogicalResult collect(unsigned number, Value operand) {
    ArgumentSource &source = binding.sources[number];
    Type type = kernel.getArgumentTypes()[number];
    Attribute constant;
    if (matchPattern(operand, m_Constant(&constant)) &&
        isa<TypedAttr>(constant)) {
      if (auto integer = dyn_cast<IntegerAttr>(constant))
        constant = IntegerAttr::get(
            type, integer.getValue().sextOrTrunc(type.getIntOrFloatBitWidth()));
      source.kind = Kind::Constant;
      source.constant = constant;
      return success();
    }
    if (getTensorMap(operand)) {
      source.kind = Kind::Map;
      maps.push_back(number);
      return success();
    }
    if (!isa<LLVM::LLVMPointerType>(type)) {
      source.kind = Kind::Number;
      numbers.push_back(number);
      return success();
    }
    BufferPlace place = findPlace(operand);
    if (!place.buffer)
      return launch.emitError() << "passes a pointer as argument " << number
                                << " whose buffer is not known";
    source.kind = Kind::Pointer;
    Use &use = uses[place.buffer];
    auto has = [&](StringRef name) {
      return kernel.getArgAttr(number, name) != nullptr;
    };
    // A map is only read.
    bool isMap = llvm::any_of(kernel.getArgument(number).getUsers(),
                              llvm::IsaPred<NVVM::FenceProxyAcquireOp>);
    use.reads |= !has(LLVM::LLVMDialect::getWriteOnlyAttrName());
    use.writes |= !has(LLVM::LLVMDialect::getReadonlyAttrName()) && !isMap;
    use.arguments.push_back({number, place.bytes});
    return success();
  }

  unsigned add(Type type, Value operand) {
    binding.types.push_back(type);
    binding.operands.push_back(operand);
    binding.attributes.emplace_back();
    return binding.types.size() - 1;
  }

  void addPointers() {
    auto pointer = LLVM::LLVMPointerType::get(b.getContext());
    for (auto [reads, writes] :
         {std::pair(true, false), {true, true}, {false, true}})
      for (auto &[buffer, use] : uses) {
        if (use.reads != reads || use.writes != writes)
          continue;
        unsigned index =
            add(pointer, getDevicePointer(b, launch.getLoc(), buffer));
        NamedAttrList &attributes = binding.attributes.back();
        if (!writes)
          attributes.set(LLVM::LLVMDialect::getReadonlyAttrName(),
                         b.getUnitAttr());
        if (!reads)
          attributes.set(LLVM::LLVMDialect::getWriteOnlyAttrName(),
                         b.getUnitAttr());
        for (auto [number, bytes] : use.arguments) {
          binding.sources[number].index = index;
          binding.sources[number].constant = b.getI64IntegerAttr(bytes);
        }
      }
  }

  void addMap(unsigned number, Value operand) {
    binding.sources[number].index =
        add(LLVM::LLVMPointerType::get(b.getContext()), operand);
    NamedAttrList &attributes = binding.attributes.back();
    attributes.set(LLVM::LLVMDialect::getByValAttrName(),
                   TypeAttr::get(LLVM::LLVMArrayType::get(b.getI8Type(),
                                                          kTensorMapBytes)));
    attributes.set(LLVM::LLVMDialect::getAlignAttrName(),
                   b.getI64IntegerAttr(64));
    attributes.set(NVVM::NVVMDialect::getGridConstantAttrName(),
                   b.getUnitAttr());
  }

  /// One number for all arguments that get the same value.
  void addNumber(unsigned number, Value operand) {
    Type type = kernel.getArgumentTypes()[number];
    auto [place, isNew] = known.try_emplace({operand, type}, 0);
    if (isNew) {
      bool isNarrow = type.isInteger(64) && isOfSizes(operand);
      Type passed = isNarrow ? b.getI32Type() : type;
      Value value = operand;
      if (operand.getType().isIndex())
        value = arith::IndexCastOp::create(b, launch.getLoc(), passed, operand);
      else if (isNarrow)
        value = arith::TruncIOp::create(b, launch.getLoc(), passed, operand);
      place->second = add(passed, value);
    }
    binding.sources[number].index = place->second;
  }

  LogicalResult addCluster() {
    if (!launch.hasClusterSize())
      return success();
    gpu::KernelDim3 size = launch.getClusterSizeOperandValues();
    SmallVector<int32_t> sizes;
    for (Value value : {size.x, size.y, size.z}) {
      APInt constant;
      if (!matchPattern(value, m_ConstantInt(&constant)))
        return launch.emitError(
            "has a cluster whose size is no constant, and a kernel can have "
            "no other");
      sizes.push_back(constant.getSExtValue());
    }
    binding.cluster = b.getDenseI32ArrayAttr(sizes);
    return success();
  }

  gpu::LaunchFuncOp launch;
  LLVM::LLVMFuncOp kernel;
  OpBuilder b;
  ArgumentBinding binding;
  llvm::MapVector<Value, Use> uses;
  SmallVector<unsigned> maps, numbers;
  llvm::DenseMap<std::pair<Value, Type>, unsigned> known;
};

} // namespace

FailureOr<ArgumentBinding> nm_sparse::bindArguments(gpu::LaunchFuncOp launch,
                                                    LLVM::LLVMFuncOp kernel) {
  return Binder(launch, kernel).bind();
}
