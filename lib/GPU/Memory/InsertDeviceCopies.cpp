//===- InsertDeviceCopies.cpp - device buffers for host-memory callers ----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A small software cache, one per block: a host buffer (the root of a chain of
// views) maps to its device copy and to which of the two is newer. Host
// operations that touch memory bring the host side up to date first. What is
// emitted is synchronous; --gpu-async-region makes chains of it.
//
//===----------------------------------------------------------------------===//

#include "DeviceBuffers.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "nm_sparse/GPU/Passes.h"
#include "nm_sparse/GPU/Support/Buffers.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSEINSERTDEVICECOPIESPASS
#include "nm_sparse/GPU/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

struct DeviceBuffer {
  Value value;
  bool deviceValid = false;
  bool hostValid = true;
};

/// Rewrites the launches of one block.
class BlockRewriter {
public:
  BlockRewriter(Block &block, SymbolTableCollection &symbols,
                bool hostArguments)
      : block(block), symbols(symbols), hostArguments(hostArguments),
        builder(block.getParent()->getContext()) {}

  LogicalResult run() {
    for (Operation &op : llvm::make_early_inc_range(block.without_terminator()))
      if (failed(visit(&op)))
        return failure();
    if (block.mightHaveTerminator())
      finish(block.getTerminator());
    return success();
  }

private:
  LogicalResult visit(Operation *op);
  LogicalResult visitLaunch(gpu::LaunchFuncOp launch);
  LogicalResult visitTensorMap(nvgpu::TmaCreateDescriptorOp map);
  void visitHostOp(Operation *op);
  bool isLocal(Value root, Operation *terminator);
  void finish(Operation *terminator);

  void copy(Location loc, Value dst, Value src) {
    gpu::MemcpyOp::create(builder, loc, Type(), ValueRange{}, dst, src);
  }
  void release(Location loc, Value device) {
    gpu::DeallocOp::create(builder, loc, Type(), ValueRange{}, device);
  }

  /// The host's buffer that `operand` of a kernel is in, or null.
  Value getHostBuffer(Value operand) {
    if (!isa<MemRefType>(operand.getType()))
      return {};
    Value root = getBufferOf(operand);
    return isDeviceBuffer(root, hostArguments) ? Value() : root;
  }
  void allocate(Location loc, Value root);
  void update(Location loc, Value root);
  Value getOnDevice(Value value);
  void flush(Value root);
  void invalidate(Value root);

  Block &block;
  SymbolTableCollection &symbols;
  bool hostArguments;
  OpBuilder builder;
  llvm::MapVector<Value, DeviceBuffer> buffers;
  /// The host buffers that maps describe, by the address of the map.
  llvm::DenseMap<Value, Value> maps;
  /// Allocated in this block, and not touched by the host so far.
  llvm::SmallPtrSet<Value, 8> untouched;
};

LogicalResult BlockRewriter::visit(Operation *op) {
  builder.setInsertionPoint(op);
  if (auto launch = dyn_cast<gpu::LaunchFuncOp>(op))
    return visitLaunch(launch);
  if (auto map = dyn_cast<nvgpu::TmaCreateDescriptorOp>(op))
    return visitTensorMap(map);

  if (auto alloc = dyn_cast<memref::AllocOp>(op)) {
    // Memory outside of a view of it, such as padding, is copied with the rest,
    // and so must be written once.
    if (llvm::none_of(alloc->getUsers(), llvm::IsaPred<memref::SubViewOp>))
      untouched.insert(alloc.getResult());
    return success();
  }
  if (auto dealloc = dyn_cast<memref::DeallocOp>(op)) {
    auto *it = buffers.find(getBufferOf(dealloc.getMemref()));
    if (it != buffers.end()) {
      release(op->getLoc(), it->second.value);
      buffers.erase(it);
    }
    return success();
  }
  visitHostOp(op);
  for (Region &region : op->getRegions())
    for (Block &nested : region)
      if (failed(BlockRewriter(nested, symbols, hostArguments).run()))
        return failure();
  return success();
}

LogicalResult BlockRewriter::visitLaunch(gpu::LaunchFuncOp launch) {
  auto kernel = symbols.lookupNearestSymbolFrom<gpu::GPUFuncOp>(
      launch, launch.getKernel());
  if (!kernel)
    return launch.emitOpError("launches ")
           << launch.getKernel()
           << ", which is not a gpu.func: insert device copies before the "
              "kernel is lowered";
  for (auto [position, operand] : llvm::enumerate(launch.getKernelOperands())) {
    Value root = getHostBuffer(operand);
    if (root && !isContiguous(root))
      return launch.emitOpError("kernel operand #")
             << position << " is a view of " << root.getType()
             << "; only contiguous host buffers can be copied to the device, "
                "so its layout must be the identity";
  }

  for (OpOperand &operand : launch.getKernelOperandsMutable()) {
    if (Value described = maps.lookup(operand.get()))
      update(launch.getLoc(), described);
    if (Value root = getHostBuffer(operand.get()))
      update(launch.getLoc(), root);
  }

  if (launch.getNumKernelOperands() == 0)
    return success();
  unsigned first = launch.getKernelOperands().getBeginOperandIndex();
  for (OpOperand &operand : launch.getKernelOperandsMutable()) {
    Value root = getHostBuffer(operand.get());
    if (!root)
      continue;
    if (!isConstantBuffer(root, symbols) &&
        isWritten(kernel.getArgument(operand.getOperandNumber() - first))) {
      buffers[root].hostValid = false;
      untouched.erase(root);
    }
    operand.set(getOnDevice(operand.get()));
  }
  return success();
}

/// A tensor map describes the device copy, which kernels read through it.
LogicalResult BlockRewriter::visitTensorMap(nvgpu::TmaCreateDescriptorOp map) {
  Value root = getBufferOf(map.getTensor());
  if (isDeviceBuffer(root, hostArguments))
    return success();
  if (!isContiguous(root))
    return map.emitOpError("describes a view of ")
           << root.getType()
           << "; only contiguous host buffers can be copied to the device, so "
              "its layout must be the identity";
  update(map.getLoc(), root);
  map.getTensorMutable().assign(getOnDevice(map.getTensor()));
  for (Operation *user : map.getTensorMap().getUsers())
    if (auto address = dyn_cast<UnrealizedConversionCastOp>(user))
      maps[address.getResult(0)] = root;
  return success();
}

/// Returns true if `op` calls a function of a library that is handed numbers
/// alone, and so reaches no buffer of this function.
bool isCallOfNumbers(Operation *op, SymbolTableCollection &symbols) {
  auto call = dyn_cast<func::CallOp>(op);
  if (!call || call.getNumResults() > 0 ||
      !llvm::all_of(call.getOperandTypes(),
                    [](Type type) { return type.isIntOrIndexOrFloat(); }))
    return false;
  auto callee =
      symbols.lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
  return callee && callee.isExternal();
}

void BlockRewriter::visitHostOp(Operation *op) {
  if (isMemoryEffectFree(op) || isDeviceOp(op, hostArguments) ||
      isCallOfNumbers(op, symbols))
    return;
  std::optional<SmallVector<MemoryEffects::EffectInstance>> effects =
      getEffectsRecursively(op);
  bool unknown = !effects.has_value();
  SmallVector<std::pair<Value, bool>> accesses;
  if (effects)
    for (const MemoryEffects::EffectInstance &effect : *effects) {
      bool writes = isa<MemoryEffects::Write>(effect.getEffect());
      if (!writes && !isa<MemoryEffects::Read>(effect.getEffect()))
        continue;
      Value root = effect.getValue() ? getBufferOf(effect.getValue()) : Value();
      if (root && isa<BaseMemRefType>(root.getType()) &&
          isDeviceBuffer(root, hostArguments))
        continue;
      if (!root || (!buffers.contains(root) && !isa<BlockArgument>(root) &&
                    !root.getDefiningOp<memref::AllocOp>() &&
                    !root.getDefiningOp<memref::AllocaOp>()))
        unknown = true;
      else
        accesses.push_back({root, writes});
    }
  // A launch inside a region works on buffers of its own.
  op->walk([&](gpu::LaunchFuncOp) { unknown = true; });

  if (unknown) {
    accesses.clear();
    for (auto &entry : buffers)
      accesses.push_back({entry.first, true});
    untouched.clear();
  }
  for (auto [root, writes] : accesses) {
    untouched.erase(root);
    if (buffers.contains(root))
      flush(root);
  }
  for (auto [root, writes] : accesses)
    if (writes && buffers.contains(root))
      buffers[root].deviceValid = false;
}

/// Returns true if `root` was allocated in this block and does not leave it.
bool BlockRewriter::isLocal(Value root, Operation *terminator) {
  auto alloc = root.getDefiningOp<memref::AllocOp>();
  if (!alloc || alloc->getBlock() != &block)
    return false;
  return llvm::none_of(terminator->getOperands(), [&](Value operand) {
    if (!isa<BaseMemRefType>(operand.getType()))
      return false;
    Value other = getBufferOf(operand);
    return other == root || !other.getDefiningOp<memref::AllocOp>();
  });
}

void BlockRewriter::finish(Operation *terminator) {
  builder.setInsertionPoint(terminator);
  for (auto &entry : buffers)
    if (!isLocal(entry.first, terminator))
      flush(entry.first);
  for (auto &[root, buffer] : buffers) {
    release(root.getLoc(), buffer.value);
    // It was not freed so far: that would have ended its entry.
    if (isLocal(root, terminator))
      memref::DeallocOp::create(builder, root.getLoc(), root);
  }
}

void BlockRewriter::allocate(Location loc, Value root) {
  auto type = cast<MemRefType>(root.getType());
  SmallVector<Value> sizes;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (type.isDynamicDim(dim))
      sizes.push_back(memref::DimOp::create(builder, loc, root, dim));
  buffers[root].value = gpu::AllocOp::create(builder, loc, type, Type(),
                                             ValueRange{}, sizes, ValueRange{})
                            .getMemref();
}

/// Makes the device copy of `root` as new as the host's.
void BlockRewriter::update(Location loc, Value root) {
  if (!buffers.contains(root))
    allocate(loc, root);
  DeviceBuffer &buffer = buffers[root];
  if (!buffer.deviceValid && !untouched.contains(root))
    copy(loc, buffer.value, root);
  buffer.deviceValid = true;
}

/// `value`, a view of a buffer that has a device copy, as a view of that copy.
Value BlockRewriter::getOnDevice(Value value) {
  Operation *view = value.getDefiningOp();
  Value source = getViewSource(view);
  if (!source)
    return buffers[value].value;
  IRMapping mapping;
  mapping.map(source, getOnDevice(source));
  Operation *clone = builder.clone(*view, mapping);
  return clone->getResult(cast<OpResult>(value).getResultNumber());
}

void BlockRewriter::flush(Value root) {
  DeviceBuffer &buffer = buffers[root];
  if (!buffer.hostValid)
    copy(root.getLoc(), root, buffer.value);
  buffer.hostValid = true;
}

struct InsertDeviceCopies
    : public nm_sparse::impl::NMSparseInsertDeviceCopiesPassBase<
          InsertDeviceCopies> {
  using NMSparseInsertDeviceCopiesPassBase::NMSparseInsertDeviceCopiesPassBase;

  void runOnOperation() override {
    SymbolTableCollection symbols;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (!hostMemory)
        function.walk(allocateOnDevice);
      for (Block &block : function.getBody())
        if (failed(BlockRewriter(block, symbols, hostMemory).run()))
          return signalPassFailure();
    }
  }
};

} // namespace
