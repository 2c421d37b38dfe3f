//===- CreateDeviceMaps.cpp - tensor maps that a kernel makes -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A tensor map is made by a call of the driver, and hosts that only launch
// kernels have no place for such a call. A kernel of one thread can make it,
// too. The maps of a buffer are made together and of no other, so that a host
// can keep those of a weight.
//
//===----------------------------------------------------------------------===//

#include "LaunchFields.h"
#include "TensorMapKernel.h"
#include "TensorMapUsers.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "nm_sparse/Base/KernelSymbols.h"
#include "nm_sparse/GPU/Passes.h"
#include "nm_sparse/GPU/Support/Buffers.h"
#include "nm_sparse/GPU/Support/KernelArguments.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSECREATEDEVICEMAPSPASS
#include "nm_sparse/GPU/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;
using nvgpu::TmaCreateDescriptorOp;

namespace {

struct CreateDeviceMaps
    : public nm_sparse::impl::NMSparseCreateDeviceMapsPassBase<
          CreateDeviceMaps> {
  void runOnOperation() override {
    SymbolTableCollection symbols;
    SmallVector<TmaCreateDescriptorOp> maps;
    WalkResult checked = getOperation().walk([&](TmaCreateDescriptorOp map) {
      maps.push_back(map);
      return failed(checkDeviceMap(map)) || failed(checkMapUsers(map, symbols))
                 ? WalkResult::interrupt()
                 : WalkResult::advance();
    });
    if (checked.wasInterrupted() ||
        failed(checkMapArguments(getOperation(), symbols)))
      return signalPassFailure();

    passBuffers(maps, symbols);
    llvm::erase_if(maps, [](TmaCreateDescriptorOp map) {
      bool isUnused = getMapLaunches(map).empty();
      if (isUnused)
        erase(map);
      return isUnused;
    });
    TensorMapKernels kernels;
    for (const MapGroup &group : groupMaps(maps))
      makeMaps(group, kernels, symbols);
  }

private:
  /// Lets each launch that takes some of `maps` take pointers to what they are
  /// of after its other operands. The kernel does not read them.
  static void passBuffers(ArrayRef<TmaCreateDescriptorOp> maps,
                          SymbolTableCollection &symbols) {
    llvm::SetVector<Operation *> launches;
    for (TmaCreateDescriptorOp map : maps)
      launches.insert_range(getMapLaunches(map));
    llvm::MapVector<Operation *, unsigned> kernels; // And their pointers.
    for (Operation *op : launches) {
      auto launch = cast<gpu::LaunchFuncOp>(op);
      LLVM::LLVMFuncOp kernel = findLoweredKernel(launch, symbols);
      OpBuilder b(launch);
      SmallVector<Value> pointers;
      for (Value operand : launch.getKernelOperands())
        if (TmaCreateDescriptorOp map = getTensorMap(operand))
          pointers.push_back(getDevicePointer(
              b, launch.getLoc(), getBufferOf(getMappedTensor(map))));
      kernels[kernel] = pointers.size();
      launch.getKernelOperandsMutable().append(pointers);
    }
    for (auto &[op, count] : kernels)
      addPointers(cast<LLVM::LLVMFuncOp>(op), count);
  }

  /// Gives `kernel` so many further pointers that are only read.
  static void addPointers(LLVM::LLVMFuncOp kernel, unsigned count) {
    auto pointer = LLVM::LLVMPointerType::get(kernel.getContext());
    SmallVector<Type> types(kernel.getArgumentTypes());
    for (unsigned number = 0; number < count; ++number) {
      types.push_back(pointer);
      kernel.getBody().front().addArgument(pointer, kernel.getLoc());
    }
    kernel.setFunctionType(LLVM::LLVMFunctionType::get(
        LLVM::LLVMVoidType::get(kernel.getContext()), types));
    SmallVector<Attribute> attributes;
    if (ArrayAttr known = kernel.getArgAttrsAttr())
      llvm::append_range(attributes, known);
    Builder b(kernel.getContext());
    attributes.resize(types.size() - count, b.getDictionaryAttr({}));
    NamedAttribute isRead(LLVM::LLVMDialect::getReadonlyAttrName(),
                          b.getUnitAttr());
    attributes.resize(types.size(), b.getDictionaryAttr(isRead));
    kernel.setArgAttrsAttr(b.getArrayAttr(attributes));
  }

  void makeMaps(const MapGroup &group, TensorMapKernels &kernels,
                SymbolTableCollection &symbols) {
    gpu::LaunchFuncOp first = group.first, last = group.last;
    // Maps of the same numbers are one.
    llvm::MapVector<std::pair<Value, Type>, SmallVector<TmaCreateDescriptorOp>>
        same;
    for (TmaCreateDescriptorOp map : group.maps)
      same[{getMappedTensor(map), map.getTensorMap().getType()}].push_back(map);
    SmallVector<TmaCreateDescriptorOp> made;
    for (auto &[key, maps] : same)
      made.push_back(maps.front());

    auto module = symbols.lookupNearestSymbolFrom<gpu::GPUModuleOp>(
        first, first.getKernelModuleName());
    LLVM::LLVMFuncOp kernel = kernels.get(module, first.getLoc(), made);
    OpBuilder b(first);
    Location loc = first.getLoc();
    auto type =
        MemRefType::get({int64_t(made.size()), kTensorMapBytes}, b.getI8Type());
    auto getTokenType = [&](gpu::LaunchFuncOp launch) -> Type {
      return launch.getAsyncToken() ? b.getType<gpu::AsyncTokenType>() : Type();
    };
    auto getTokens = [](Value token) {
      return token ? SmallVector<Value>{token} : SmallVector<Value>();
    };
    auto alloc = gpu::AllocOp::create(b, loc, type, getTokenType(first),
                                      first.getAsyncDependencies(),
                                      ValueRange(), ValueRange());
    SmallVector<Value> operands;
    for (TmaCreateDescriptorOp map : made)
      operands.push_back(getMappedTensor(map));
    operands.push_back(alloc.getMemref());
    Value one = arith::ConstantIndexOp::create(b, loc, 1);
    gpu::KernelDim3 single{one, one, one};
    auto name = SymbolRefAttr::get(module.getNameAttr(),
                                   {FlatSymbolRefAttr::get(kernel)});
    auto launch = gpu::LaunchFuncOp::create(
        b, loc, name, single, single, /*dynamicSharedMemorySize=*/Value(),
        operands, getTokenType(first), getTokens(alloc.getAsyncToken()));
    if (Value token = launch.getAsyncToken())
      first.getAsyncDependenciesMutable().assign(token);

    Value base = memref::ExtractAlignedPointerAsIndexOp::create(
        b, loc, alloc.getMemref());
    for (auto [number, entry] : llvm::enumerate(same))
      for (TmaCreateDescriptorOp map : entry.second)
        replaceMap(b, map, base, int64_t(number) * kTensorMapBytes, symbols);

    b.setInsertionPointAfter(last);
    auto dealloc = gpu::DeallocOp::create(b, loc, getTokenType(last),
                                          getTokens(last.getAsyncToken()),
                                          alloc.getMemref());
    if (Value token = last.getAsyncToken())
      token.replaceAllUsesExcept(dealloc.getAsyncToken(), dealloc);
  }

  /// Launches take the map that lies at `byte` of the array at `base`.
  static void replaceMap(OpBuilder &b, TmaCreateDescriptorOp map, Value base,
                         int64_t byte, SymbolTableCollection &symbols) {
    Location loc = map.getLoc();
    for (Operation *user : getMapLaunches(map))
      acquire(cast<gpu::LaunchFuncOp>(user), map, symbols);
    Value at = base;
    if (byte != 0)
      at = arith::AddIOp::create(b, loc, base,
                                 arith::ConstantIndexOp::create(b, loc, byte));
    at = arith::IndexCastOp::create(b, loc, b.getI64Type(), at);
    Value pointer = LLVM::IntToPtrOp::create(
        b, loc, LLVM::LLVMPointerType::get(b.getContext()), at);
    for (Operation *cast : llvm::make_early_inc_range(map->getUsers())) {
      cast->getResult(0).replaceAllUsesWith(pointer);
      cast->erase();
    }
    erase(map);
  }

  static void erase(TmaCreateDescriptorOp map) {
    for (Operation *cast : llvm::make_early_inc_range(map->getUsers()))
      cast->erase();
    Value tensor = map.getTensor();
    map.erase();
    while (auto cast = tensor.getDefiningOp<memref::CastOp>()) {
      tensor = cast.getSource();
      if (!cast.use_empty())
        break;
      cast.erase();
    }
  }

  /// The kernel of `launch` sees what was written to its maps.
  static void acquire(gpu::LaunchFuncOp launch, TmaCreateDescriptorOp map,
                      SymbolTableCollection &symbols) {
    LLVM::LLVMFuncOp kernel = findLoweredKernel(launch, symbols);
    // The kernel that makes the maps comes before it, and must have ended.
    if (Operation *marker = SymbolTable::lookupSymbolIn(
            kernel->getParentOp(), nms::getWaitsSymbol(kernel.getName().str())))
      marker->erase();
    OpBuilder b = OpBuilder::atBlockBegin(&kernel.getBody().front());
    unsigned number = 0;
    for (Value operand : launch.getKernelOperands()) {
      if (getTensorMap(operand) == map) {
        Value argument = kernel.getArgument(number);
        bool isDone = llvm::any_of(argument.getUsers(),
                                   llvm::IsaPred<NVVM::FenceProxyAcquireOp>);
        if (!isDone) {
          Value bytes = LLVM::ConstantOp::create(
              b, kernel.getLoc(), b.getI32IntegerAttr(kTensorMapBytes));
          NVVM::FenceProxyAcquireOp::create(
              b, kernel.getLoc(), NVVM::MemScopeKind::GPU, argument, bytes);
        }
      }
      number += countArguments(operand.getType());
    }
  }
};

} // namespace
