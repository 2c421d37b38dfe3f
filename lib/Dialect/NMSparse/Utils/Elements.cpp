//===- Elements.cpp - convert element types -------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMSparse/Utils/Elements.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

Value nm_sparse::convertScalar(OpBuilder &builder, Location loc, Value value,
                               Type type) {
  Type from = value.getType();
  if (from == type)
    return value;
  bool widens = from.getIntOrFloatBitWidth() < type.getIntOrFloatBitWidth();
  if (isa<IntegerType>(from) && isa<IntegerType>(type))
    return widens
               ? arith::ExtSIOp::create(builder, loc, type, value).getResult()
               : arith::TruncIOp::create(builder, loc, type, value).getResult();
  if (isa<IntegerType>(from))
    return arith::SIToFPOp::create(builder, loc, type, value);
  if (isa<IntegerType>(type))
    return arith::FPToSIOp::create(builder, loc, type, value);
  if (widens)
    return arith::ExtFOp::create(builder, loc, type, value);
  return arith::TruncFOp::create(builder, loc, type, value);
}

Value nm_sparse::convertElements(OpBuilder &builder, Location loc, Value value,
                                 Type elementType) {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getElementType() == elementType)
    return value;
  Value empty = tensor::EmptyOp::create(
      builder, loc, tensor::getMixedSizes(builder, loc, value), elementType);
  AffineMap identity = builder.getMultiDimIdentityMap(type.getRank());
  SmallVector<utils::IteratorType> iterators(type.getRank(),
                                             utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             builder, loc, empty.getType(), value, empty,
             ArrayRef<AffineMap>{identity, identity}, iterators,
             [&](OpBuilder &b, Location l, ValueRange args) {
               linalg::YieldOp::create(
                   b, l, convertScalar(b, l, args[0], elementType));
             })
      .getResult(0);
}
