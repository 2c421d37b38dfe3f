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
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
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

/// The oldest PTX that has tensormap.replace.
static constexpr unsigned kReplacePTX = 83;

/// The array that `map` is of, with its rank.
static Value getTensor(TmaCreateDescriptorOp map) {
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

static LogicalResult check(TmaCreateDescriptorOp map) {
  auto type = dyn_cast<MemRefType>(getTensor(map).getType());
  if (!type)
    return map.emitError("is of a memref whose rank is not known");
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(type.getStridesAndOffset(strides, offset)) || strides.empty() ||
      strides.back() != 1)
    return map.emitError() << "is of " << type
                           << ", whose last dimension is not contiguous";
  if (!getElementNumber(type.getElementType()))
    return map.emitError() << "is of " << type.getElementType()
                           << ", which tensor maps do not have";
  nvgpu::TensorMapDescriptorType map_type = map.getTensorMap().getType();
  if (map_type.getInterleave() !=
          nvgpu::TensorMapInterleaveKind::INTERLEAVE_NONE ||
      map_type.getOob() != nvgpu::TensorMapOOBKind::OOB_ZERO)
    return map.emitError("is interleaved or filled by NaN, which no kernel of "
                         "ours makes");
  return success();
}

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
    auto type = cast<MemRefType>(getTensor(map).getType());
    int64_t rank = type.getRank();
    int64_t bytes = type.getElementTypeBitWidth() / 8;
    ++next; // The pointer to what was allocated.
    Value base = *next++, offset = *next++;
    SmallVector<Value> sizes(next, next + rank);
    SmallVector<Value> strides(next + rank, next + 2 * rank);
    next += 2 * rank;

    // What no field says is zero.
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

struct CreateDeviceMaps
    : public nm_sparse::impl::NMSparseCreateDeviceMapsPassBase<
          CreateDeviceMaps> {
  void runOnOperation() override {
    SymbolTableCollection symbols;
    SmallVector<TmaCreateDescriptorOp> maps;
    WalkResult checked = getOperation().walk([&](TmaCreateDescriptorOp map) {
      maps.push_back(map);
      return failed(check(map)) || failed(checkUsers(map, symbols))
                 ? WalkResult::interrupt()
                 : WalkResult::advance();
    });
    if (checked.wasInterrupted())
      return signalPassFailure();

    passBuffers(maps, symbols);
    // By the function and the buffer that they are of.
    llvm::MapVector<std::pair<Operation *, Value>,
                    SmallVector<TmaCreateDescriptorOp>>
        groups;
    for (TmaCreateDescriptorOp map : maps)
      groups[{map->getParentOfType<func::FuncOp>(),
              getBufferOf(getTensor(map))}]
          .push_back(map);
    for (auto &[key, group] : groups)
      makeMaps(group, symbols);
  }

private:
  /// The launches that take `map`.
  static llvm::SetVector<Operation *> getLaunches(TmaCreateDescriptorOp map) {
    llvm::SetVector<Operation *> launches;
    for (Operation *cast : map->getUsers())
      for (Operation *user : cast->getUsers())
        launches.insert(user);
    return launches;
  }

  static LogicalResult checkUsers(TmaCreateDescriptorOp map,
                                  SymbolTableCollection &symbols) {
    for (Operation *cast : map->getUsers())
      if (!isa<UnrealizedConversionCastOp>(cast))
        return cast->emitError("uses a tensor map and launches no kernel");
    for (Operation *user : getLaunches(map)) {
      auto launch = dyn_cast<gpu::LaunchFuncOp>(user);
      if (!launch)
        return user->emitError("uses a tensor map and launches no kernel");
      if (!findLoweredKernel(launch, symbols))
        return failure();
      if (launch->getBlock() != map->getBlock())
        return launch.emitError("takes a tensor map of another block");
    }
    return success();
  }

  /// Lets each launch that takes some of `maps` take pointers to what they are
  /// of after its other operands. The kernel does not read them.
  static void passBuffers(ArrayRef<TmaCreateDescriptorOp> maps,
                          SymbolTableCollection &symbols) {
    llvm::SetVector<Operation *> launches;
    for (TmaCreateDescriptorOp map : maps)
      launches.insert_range(getLaunches(map));
    llvm::MapVector<Operation *, unsigned> kernels; // And their pointers.
    for (Operation *op : launches) {
      auto launch = cast<gpu::LaunchFuncOp>(op);
      LLVM::LLVMFuncOp kernel = findLoweredKernel(launch, symbols);
      OpBuilder b(launch);
      SmallVector<Value> pointers;
      for (Value operand : launch.getKernelOperands())
        if (TmaCreateDescriptorOp map = getTensorMap(operand))
          pointers.push_back(getDevicePointer(b, launch.getLoc(),
                                              getBufferOf(getTensor(map))));
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

  void makeMaps(ArrayRef<TmaCreateDescriptorOp> maps,
                SymbolTableCollection &symbols) {
    llvm::SetVector<Operation *> users;
    for (TmaCreateDescriptorOp map : maps)
      users.insert_range(getLaunches(map));
    if (users.empty()) {
      for (TmaCreateDescriptorOp map : maps)
        erase(map);
      return;
    }
    auto before = [](Operation *a, Operation *b) {
      return a->isBeforeInBlock(b);
    };
    auto first = cast<gpu::LaunchFuncOp>(*llvm::min_element(users, before));
    auto last = cast<gpu::LaunchFuncOp>(*llvm::max_element(users, before));
    auto module = symbols.lookupNearestSymbolFrom<gpu::GPUModuleOp>(
        first, first.getKernelModuleName());
    requirePTX(module, kReplacePTX);
    LLVM::LLVMFuncOp kernel = getKernel(module, first, maps);

    OpBuilder b(first);
    Location loc = first.getLoc();
    auto type =
        MemRefType::get({int64_t(maps.size()), kTensorMapBytes}, b.getI8Type());
    bool isAsync = first.getAsyncToken() != nullptr;
    Type token = isAsync ? gpu::AsyncTokenType::get(&getContext()) : Type();
    auto alloc =
        gpu::AllocOp::create(b, loc, type, token, first.getAsyncDependencies(),
                             ValueRange(), ValueRange());
    SmallVector<Value> operands;
    for (TmaCreateDescriptorOp map : maps)
      operands.push_back(getTensor(map));
    operands.push_back(alloc.getMemref());
    Value one = arith::ConstantIndexOp::create(b, loc, 1);
    gpu::KernelDim3 single{one, one, one};
    auto name = SymbolRefAttr::get(module.getNameAttr(),
                                   {FlatSymbolRefAttr::get(kernel)});
    auto launch = gpu::LaunchFuncOp::create(
        b, loc, name, single, single, /*dynamicSharedMemorySize=*/Value(),
        operands, token,
        isAsync ? ValueRange(alloc.getAsyncToken()) : ValueRange());
    if (isAsync)
      first.getAsyncDependenciesMutable().assign(launch.getAsyncToken());

    Value base = memref::ExtractAlignedPointerAsIndexOp::create(
        b, loc, alloc.getMemref());
    for (auto [number, map] : llvm::enumerate(maps))
      replaceMap(b, map, base, int64_t(number) * kTensorMapBytes, symbols);

    b.setInsertionPointAfter(last);
    auto dealloc = gpu::DeallocOp::create(
        b, loc, token,
        isAsync ? ValueRange(last.getAsyncToken()) : ValueRange(),
        alloc.getMemref());
    if (isAsync)
      last.getAsyncToken().replaceAllUsesExcept(dealloc.getAsyncToken(),
                                                dealloc);
  }

  /// Launches take the map that lies at `byte` of the array at `base`.
  static void replaceMap(OpBuilder &b, TmaCreateDescriptorOp map, Value base,
                         int64_t byte, SymbolTableCollection &symbols) {
    Location loc = map.getLoc();
    for (Operation *user : getLaunches(map))
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

  /// The kernel that makes `maps`: the numbers of the arrays are arguments, so
  /// it serves others, too.
  LLVM::LLVMFuncOp getKernel(gpu::GPUModuleOp module, gpu::LaunchFuncOp user,
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
      auto type = cast<MemRefType>(getTensor(map).getType());
      key.push_back(TypeAttr::get(type.getElementType()));
      key.push_back(TypeAttr::get(map.getTensorMap().getType()));
      addArray(type.getRank());
    }
    addArray(2);
    LLVM::LLVMFuncOp &kernel = kernels[b.getArrayAttr(key)];
    if (kernel)
      return kernel;
    Location loc = user.getLoc();
    b.setInsertionPointToEnd(module.getBody());
    kernel = LLVM::LLVMFuncOp::create(
        b, loc, "make_tensor_maps",
        LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()),
                                    types));
    SymbolTable table(module);
    kernel->remove();
    table.insert(kernel);
    kernel->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), b.getUnitAttr());
    kernel->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(),
                    b.getUnitAttr());
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

  /// Targets of `module` get PTX of `version`, if theirs is older.
  static void requirePTX(gpu::GPUModuleOp module, unsigned version) {
    ArrayAttr targets = module.getTargetsAttr();
    if (!targets)
      return;
    SmallVector<Attribute> changed;
    for (Attribute attribute : targets) {
      auto target = dyn_cast<NVVM::NVVMTargetAttr>(attribute);
      StringRef text = target ? target.getFeatures() : "";
      unsigned found = 0;
      if (target && text.consume_front("+ptx") &&
          !text.getAsInteger(10, found) && found < version)
        attribute = NVVM::NVVMTargetAttr::get(
            module.getContext(), target.getO(), target.getTriple(),
            target.getChip(), "+ptx" + std::to_string(version),
            target.getFlags(), target.getLink(), target.getVerifyTarget());
      changed.push_back(attribute);
    }
    module.setTargetsAttr(ArrayAttr::get(module.getContext(), changed));
  }

  llvm::DenseMap<Attribute, LLVM::LLVMFuncOp> kernels;
};

} // namespace
