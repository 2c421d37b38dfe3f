//===- DeviceBuffers.cpp - which buffers lie on the device ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DeviceBuffers.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "nm_sparse/GPU/Support/Buffers.h"

using namespace mlir;
using namespace mlir::nm_sparse;

bool nm_sparse::isContiguous(Value buffer) {
  auto type = dyn_cast<MemRefType>(buffer.getType());
  return type && type.getLayout().isIdentity();
}

bool nm_sparse::isDeviceBuffer(Value buffer, bool hostArguments) {
  if (buffer.getDefiningOp<gpu::AllocOp>() ||
      cast<BaseMemRefType>(buffer.getType()).getMemorySpace())
    return true;
  auto argument = dyn_cast<BlockArgument>(buffer);
  return argument && !hostArguments &&
         isa<func::FuncOp>(argument.getOwner()->getParentOp());
}

/// Returns true if `op` makes of an address its last bits, with which nothing
/// can be accessed.
static bool takesLastBits(Operation *op) {
  APInt bound;
  return isa<arith::AndIOp, arith::RemUIOp>(op) &&
         matchPattern(op->getOperand(1), m_ConstantInt(&bound)) &&
         bound.ult(256);
}

/// Returns true if what a kernel does with `address`, of a buffer, is `Effect`
/// on the buffer or is not known. Tests of alignment and requests to a cache
/// have no effect.
template <typename Effect>
static bool hasByAddress(Value address) {
  return llvm::any_of(address.getUsers(), [&](Operation *user) {
    if (auto text = dyn_cast<LLVM::InlineAsmOp>(user))
      return !text.getAsmString().starts_with("prefetch.");
    if (isa<arith::CmpIOp, NVVM::PrefetchOp>(user) || takesLastBits(user))
      return false;
    if (isa<LLVM::LoadOp>(user))
      return std::is_same_v<Effect, MemoryEffects::Read>;
    if (auto store = dyn_cast<LLVM::StoreOp>(user))
      return store.getValue() == address ||
             std::is_same_v<Effect, MemoryEffects::Write>;
    bool isNumber = isa_and_present<arith::ArithDialect>(user->getDialect());
    bool isAddress = isNumber || isa<LLVM::IntToPtrOp, LLVM::GEPOp>(user);
    return !isAddress || user->getNumResults() != 1 ||
           hasByAddress<Effect>(user->getResult(0));
  });
}

/// Returns true if a kernel has `Effect` on its argument; anything unknown
/// counts as all effects.
template <typename Effect>
static bool has(Value buffer) {
  for (Operation *user : buffer.getUsers()) {
    if (auto pointer = dyn_cast<memref::ExtractAlignedPointerAsIndexOp>(user)) {
      if (hasByAddress<Effect>(pointer.getAlignedPointer()))
        return true;
      continue;
    }
    if (isa<UnrealizedConversionCastOp>(user))
      return true; // Nobody follows the pointer.
    if (auto effects = dyn_cast<MemoryEffectOpInterface>(user)) {
      if (effects.getEffectOnValue<Effect>(buffer))
        return true;
      if (!isMemoryEffectFree(user))
        continue;
    } else if (!isMemoryEffectFree(user)) {
      return true;
    }
    for (Value result : user->getResults())
      if (isa<BaseMemRefType>(result.getType()) && has<Effect>(result))
        return true;
  }
  return false;
}

bool nm_sparse::isRead(Value buffer) {
  return has<MemoryEffects::Read>(buffer);
}

bool nm_sparse::isWritten(Value buffer) {
  return has<MemoryEffects::Write>(buffer);
}

bool nm_sparse::isConstantBuffer(Value buffer, SymbolTableCollection &symbols) {
  auto get = buffer.getDefiningOp<memref::GetGlobalOp>();
  if (!get)
    return false;
  auto global =
      symbols.lookupNearestSymbolFrom<memref::GlobalOp>(get, get.getNameAttr());
  return global && global.getConstant();
}

bool nm_sparse::isDeviceOp(Operation *op, bool hostArguments) {
  return isa<gpu::AllocOp, gpu::DeallocOp, gpu::MemcpyOp, gpu::MemsetOp>(op) &&
         llvm::all_of(op->getOperands(), [&](Value operand) {
           return !isa<BaseMemRefType>(operand.getType()) ||
                  isDeviceBuffer(getBufferOf(operand), hostArguments);
         });
}

/// Appends the users of `buffer` and of its views.
static void collectUsers(Value buffer, SmallVectorImpl<Operation *> &users) {
  for (Operation *user : buffer.getUsers()) {
    if (getViewSource(user) != buffer) {
      users.push_back(user);
      continue;
    }
    for (Value result : user->getResults())
      collectUsers(result, users);
  }
}

void nm_sparse::allocateOnDevice(memref::AllocOp alloc) {
  SmallVector<Operation *> users;
  collectUsers(alloc, users);
  if (llvm::none_of(users, llvm::IsaPred<gpu::LaunchFuncOp>) ||
      !llvm::all_of(
          users,
          llvm::IsaPred<gpu::LaunchFuncOp, func::ReturnOp, memref::DeallocOp,
                        memref::DimOp, nvgpu::TmaCreateDescriptorOp>))
    return;
  OpBuilder builder(alloc);
  auto device =
      gpu::AllocOp::create(builder, alloc.getLoc(), alloc.getType(), Type(),
                           ValueRange{}, alloc.getDynamicSizes(), ValueRange{});
  bool freed =
      llvm::any_of(users, llvm::IsaPred<memref::DeallocOp, func::ReturnOp>);
  for (Operation *user : users)
    if (isa<memref::DeallocOp>(user)) {
      builder.setInsertionPoint(user);
      gpu::DeallocOp::create(builder, user->getLoc(), Type(), ValueRange{},
                             device.getMemref());
      user->erase();
    }
  if (!freed) {
    builder.setInsertionPoint(alloc->getBlock()->getTerminator());
    gpu::DeallocOp::create(builder, alloc.getLoc(), Type(), ValueRange{},
                           device.getMemref());
  }
  alloc.replaceAllUsesWith(device.getMemref());
  alloc.erase();
}
