//===- RuntimeCall.cpp - call the runtime library from host code ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Conversion/RuntimeCall.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "nm_sparse/Base/Kind.h"

using namespace mlir;

LogicalResult nm_sparse::checkRuntimeNames(ModuleOp module) {
  for (auto function : module.getOps<func::FuncOp>())
    if (!function.isExternal() &&
        function.getSymName().starts_with("nmsRuntime"))
      return function.emitOpError("@")
             << function.getSymName()
             << " has a name of the runtime's, which the compiled program "
                "calls; give it one that does not begin with nmsRuntime";
  return success();
}

ValueRange nm_sparse::callRuntime(OpBuilder &builder, Location loc,
                                  ModuleOp module, StringRef name,
                                  TypeRange results, ValueRange operands) {
  if (!module.lookupSymbol(name)) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(module.getBody());
    auto function = func::FuncOp::create(
        builder, module.getLoc(), name,
        builder.getFunctionType(operands.getTypes(), results));
    function.setPrivate();
  }
  return func::CallOp::create(builder, loc, name, results, operands)
      .getResults();
}

Value nm_sparse::toI64(OpBuilder &builder, Location loc, Value value) {
  return arith::IndexCastOp::create(builder, loc, builder.getI64Type(), value);
}

Value nm_sparse::getElementPointer(OpBuilder &builder, Location loc,
                                   Value buffer,
                                   memref::ExtractStridedMetadataOp metadata) {
  auto type = cast<MemRefType>(buffer.getType());
  Value base =
      memref::ExtractAlignedPointerAsIndexOp::create(builder, loc, buffer);
  Value width = arith::ConstantIndexOp::create(
      builder, loc, type.getElementTypeBitWidth() / 8);
  Value bytes =
      arith::MulIOp::create(builder, loc, metadata.getOffset(), width);
  Value address = arith::AddIOp::create(builder, loc, base, bytes);
  return LLVM::IntToPtrOp::create(
      builder, loc, LLVM::LLVMPointerType::get(builder.getContext()),
      toI64(builder, loc, address));
}

Value nm_sparse::buildI64Array(OpBuilder &builder, Location loc,
                               ValueRange values) {
  auto type = MemRefType::get({static_cast<int64_t>(values.size())},
                              builder.getI64Type());
  Value array = memref::AllocaOp::create(builder, loc, type);
  for (auto [number, value] : llvm::enumerate(values)) {
    Value position = arith::ConstantIndexOp::create(builder, loc, number);
    memref::StoreOp::create(builder, loc, value, array, position);
  }
  Value address =
      memref::ExtractAlignedPointerAsIndexOp::create(builder, loc, array);
  return LLVM::IntToPtrOp::create(
      builder, loc, LLVM::LLVMPointerType::get(builder.getContext()),
      toI64(builder, loc, address));
}

Value nm_sparse::buildI64Array(OpBuilder &builder, Location loc,
                               ArrayRef<int64_t> values) {
  SmallVector<Value> constants;
  for (int64_t value : values)
    constants.push_back(arith::ConstantIntOp::create(builder, loc, value, 64));
  return buildI64Array(builder, loc, ValueRange(constants));
}

Value nm_sparse::buildPointerArray(OpBuilder &builder, Location loc,
                                   ValueRange pointers) {
  SmallVector<Value> addresses;
  for (Value pointer : pointers)
    addresses.push_back(
        LLVM::PtrToIntOp::create(builder, loc, builder.getI64Type(), pointer));
  return buildI64Array(builder, loc, ValueRange(addresses));
}

Value nm_sparse::buildDescriptor(OpBuilder &builder, Location loc,
                                 Value buffer) {
  auto metadata =
      memref::ExtractStridedMetadataOp::create(builder, loc, buffer);
  Value base = toI64(
      builder, loc,
      memref::ExtractAlignedPointerAsIndexOp::create(builder, loc, buffer));
  SmallVector<Value> fields = {base, base,
                               toI64(builder, loc, metadata.getOffset())};
  for (ValueRange list : {metadata.getSizes(), metadata.getStrides()})
    for (Value value : list)
      fields.push_back(toI64(builder, loc, value));
  return buildI64Array(builder, loc, fields);
}
