//===- LowerTensorMaps.cpp - maps that upstream does not make -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/GPU/Passes.h"
#include "nm_sparse/GPU/Support/Im2col.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSELOWERTENSORMAPSPASS
#include "nm_sparse/GPU/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;
using nvgpu::TmaCreateDescriptorOp;

/// The entry of the runtime, see nm_sparse/Runtime/MGPU.h.
static constexpr llvm::StringLiteral kEncodeIm2col =
    "mgpuTensorMapEncodeIm2colMemref";

/// `tensor`, of which only the bytes count, as a memref of `element`.
static Value castElements(OpBuilder &b, Location loc, Value tensor,
                          Type element) {
  auto type = cast<UnrankedMemRefType>(tensor.getType());
  if (type.getElementType() == element)
    return tensor;
  return UnrealizedConversionCastOp::create(
             b, loc, UnrankedMemRefType::get(element, type.getMemorySpace()),
             tensor)
      .getResult(0);
}

static void lowerBytes(TmaCreateDescriptorOp map) {
  Type element = map.getTensor().getType().getElementType();
  if (element.getIntOrFloatBitWidth() != 8 || element.isUnsignedInteger())
    return;
  OpBuilder b(map);
  map.getTensorMutable().assign(
      castElements(b, map.getLoc(), map.getTensor(),
                   b.getIntegerType(8, /*isSigned=*/false)));
}

/// As cuda.h numbers the types of elements, CUtensorMapDataType; those that
/// only copies see are bytes.
static std::optional<int64_t> getDataType(Type element) {
  if (element.isF16())
    return 6;
  if (element.isBF16())
    return 9;
  if (element.isF32())
    return 7;
  if (element.isIntOrFloat() && element.getIntOrFloatBitWidth() == 8)
    return 0;
  return std::nullopt;
}

namespace {

/// Emits the call of the runtime that makes an im2col map.
class Im2colCall {
public:
  explicit Im2colCall(TmaCreateDescriptorOp map)
      : map(map), b(map), loc(map.getLoc()),
        pointer(LLVM::LLVMPointerType::get(b.getContext())) {}

  void emit(int64_t dataType, const Im2colBox &box) {
    nvgpu::TensorMapDescriptorType type = map.getTensorMap().getType();
    // All maps are made by one function: an unranked memref is its rank and the
    // address of its descriptor, whatever its elements.
    SmallVector<Value> operands = {
        castElements(b, loc, map.getTensor(), b.getI8Type())};
    for (int64_t number :
         {dataType, int64_t(type.getInterleave()), int64_t(type.getSwizzle()),
          int64_t(type.getL2promo()), int64_t(type.getOob())})
      operands.push_back(getNumber(number));
    for (ArrayRef<int64_t> numbers :
         {type.getTensor().getShape(), ArrayRef<int64_t>(box.lower),
          ArrayRef<int64_t>(box.upper), ArrayRef<int64_t>(box.strides)})
      operands.push_back(getArray(numbers));
    func::FuncOp callee = getCallee(TypeRange(ValueRange(operands)));
    Value made = func::CallOp::create(b, loc, callee, operands).getResult(0);
    for (Operation *cast : llvm::make_early_inc_range(map->getUsers())) {
      cast->getResult(0).replaceAllUsesWith(made);
      cast->erase();
    }
    map.erase();
  }

private:
  Value getNumber(int64_t number) {
    return arith::ConstantIntOp::create(b, loc, b.getI64Type(), number);
  }

  /// The address of `numbers`, of a place that is the function's: in a loop,
  /// others would make the stack grow.
  Value getArray(ArrayRef<int64_t> numbers) {
    Type word = b.getI64Type();
    Value array;
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(&map->getParentOfType<FunctionOpInterface>()
                                      .getFunctionBody()
                                      .front());
      array = LLVM::AllocaOp::create(
          b, loc, pointer, word,
          getNumber(static_cast<int64_t>(numbers.size())));
    }
    for (auto [i, number] : llvm::enumerate(numbers)) {
      Value at =
          LLVM::GEPOp::create(b, loc, pointer, word, array,
                              ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(i)});
      LLVM::StoreOp::create(b, loc, getNumber(number), at);
    }
    return array;
  }

  func::FuncOp getCallee(TypeRange types) {
    auto module = map->getParentOfType<ModuleOp>();
    if (auto found = module.lookupSymbol<func::FuncOp>(kEncodeIm2col))
      return found;
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(module.getBody());
    auto callee = func::FuncOp::create(b, loc, kEncodeIm2col,
                                       b.getFunctionType(types, pointer));
    callee.setPrivate();
    return callee;
  }

  TmaCreateDescriptorOp map;
  OpBuilder b;
  Location loc;
  Type pointer;
};

struct LowerTensorMaps
    : public nm_sparse::impl::NMSparseLowerTensorMapsPassBase<LowerTensorMaps> {
  void runOnOperation() override {
    SmallVector<TmaCreateDescriptorOp> maps;
    getOperation()->walk(
        [&](TmaCreateDescriptorOp map) { maps.push_back(map); });
    for (TmaCreateDescriptorOp map : maps)
      if (getIm2col(map) && failed(checkIm2col(map)))
        return signalPassFailure();
    for (TmaCreateDescriptorOp map : maps) {
      if (std::optional<Im2colBox> box = getIm2col(map))
        Im2colCall(map).emit(
            *getDataType(map.getTensor().getType().getElementType()), *box);
      else
        lowerBytes(map);
    }
  }

private:
  static LogicalResult checkIm2col(TmaCreateDescriptorOp map) {
    Type element = map.getTensor().getType().getElementType();
    if (!getDataType(element))
      return map.emitOpError("in mode im2col is of elements ")
             << element << ", and the runtime makes maps of f16, bf16, f32 and "
             << "types of 8 bits";
    for (Operation *user : map->getUsers())
      if (!isa<UnrealizedConversionCastOp>(user) ||
          !isa<LLVM::LLVMPointerType>(user->getResult(0).getType()))
        return map.emitOpError("in mode im2col has a user that does not take "
                               "its address: ")
               << user->getName();
    return success();
  }
};

} // namespace
