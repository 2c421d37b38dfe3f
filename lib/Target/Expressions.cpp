//===- Expressions.cpp - host values as text ------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From operations to expressions of the manifest; nms::Expression has their
// grammar. "?" stands for a value that is none.
//
//===----------------------------------------------------------------------===//

#include "HostCode.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"
#include "nm_sparse/Base/Expression.h"
#include "nm_sparse/GPU/Support/Buffers.h"
#include "nm_sparse/Target/Target.h"

using namespace mlir;
using namespace mlir::nm_sparse;
using nms::Function;
using nms::Quantity;
using nms::writeCall;

/// Bytes that the arrays of callers begin at a multiple of (docs/Manifest.md).
static constexpr int64_t kArgumentAlignment = 16;

/// `expr` with `operands` for its dimensions and then its symbols.
static std::string describe(AffineExpr expr, unsigned dims,
                            ArrayRef<std::string> operands) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return std::to_string(constant.getValue());
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return operands[dim.getPosition()];
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return operands[dims + symbol.getPosition()];
  auto binary = cast<AffineBinaryOpExpr>(expr);
  std::vector<std::string> sides = {describe(binary.getLHS(), dims, operands),
                                    describe(binary.getRHS(), dims, operands)};
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    return nms::writeSum(sides[0], sides[1]);
  case AffineExprKind::Mul:
    return nms::writeProduct(sides[0], sides[1]);
  case AffineExprKind::CeilDiv:
    return writeCall(Function::CeilDiv, sides);
  case AffineExprKind::FloorDiv:
    return writeCall(Function::FloorDiv, sides);
  default:
    return writeCall(Function::Mod, sides);
  }
}

/// The results of `map`, of which `combine` makes one where there are more.
static std::string describe(AffineMap map, ValueRange values,
                            Function combine) {
  std::vector<std::string> operands, results;
  for (Value value : values)
    operands.push_back(describeExpression(value));
  for (AffineExpr expr : map.getResults())
    results.push_back(describe(expr, map.getNumDims(), operands));
  return results.size() == 1 ? results.front() : writeCall(combine, results);
}

static std::string describeBinary(Operation *op, Function function) {
  return writeCall(function, {describeExpression(op->getOperand(0)),
                              describeExpression(op->getOperand(1))});
}

/// The bytes, a power of two, that the memory which `pointer` is of begins at a
/// multiple of: buffers do at 256, but arguments are the caller's.
static int64_t getAlignment(memref::ExtractAlignedPointerAsIndexOp pointer) {
  Value buffer = getBufferOf(pointer.getSource());
  Operation *op = buffer.getDefiningOp();
  bool isKnown = !op || isa<memref::AllocOp, gpu::AllocOp>(op);
  return isKnown ? kArgumentAlignment : 1;
}

static std::string describeRemainder(arith::RemUIOp op) {
  auto pointer =
      op.getLhs().getDefiningOp<memref::ExtractAlignedPointerAsIndexOp>();
  APInt divisor;
  if (pointer && matchPattern(op.getRhs(), m_ConstantInt(&divisor)) &&
      !divisor.isZero() && divisor.ule(kArgumentAlignment) &&
      getAlignment(pointer) % divisor.getSExtValue() == 0)
    return "0";
  return describeBinary(op, Function::Mod);
}

/// 1 where both are equal, else 0.
static std::string describeEqual(arith::CmpIOp op) {
  std::string a = describeExpression(op.getLhs());
  std::string b = describeExpression(op.getRhs());
  nms::Expression left, right;
  int64_t leftNumber, rightNumber;
  if (nms::Expression::parse(a, left) && left.isNumber(leftNumber) &&
      nms::Expression::parse(b, right) && right.isNumber(rightNumber))
    return leftNumber == rightNumber ? "1" : "0";
  std::string distance =
      writeCall(Function::Max, {writeCall(Function::Sub, {a, b}),
                                writeCall(Function::Sub, {b, a})});
  return writeCall(Function::Sub,
                   {"1", writeCall(Function::Min, {distance, "1"})});
}

std::string nm_sparse::getArgumentName(BlockArgument argument) {
  return "arg" + std::to_string(argument.getArgNumber());
}

std::string nm_sparse::describeExpression(Value value) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return std::to_string(constant.getBitWidth() == 1
                              ? constant.getZExtValue()
                              : constant.getSExtValue());
  if (auto argument = dyn_cast<BlockArgument>(value))
    return getArgumentName(argument);
  Operation *op = value.getDefiningOp();
  if (auto dim = dyn_cast<memref::DimOp>(op)) {
    std::optional<int64_t> index = dim.getConstantIndex();
    return index && isa<MemRefType>(dim.getSource().getType())
               ? describeSize(dim.getSource(), *index)
               : "?";
  }
  if (auto metadata = dyn_cast<memref::ExtractStridedMetadataOp>(op)) {
    Value source = metadata.getSource();
    while (auto cast = source.getDefiningOp<memref::CastOp>())
      source = cast.getSource();
    auto number = cast<OpResult>(value).getResultNumber();
    int64_t rank = cast<MemRefType>(source.getType()).getRank();
    if (!isa<BlockArgument>(source) || number == 0)
      return "?";
    std::string name = describeExpression(source);
    if (number == 1)
      return Quantity{name, Quantity::Field::Offset}.write();
    return Quantity{name,
                    number < 2 + rank ? Quantity::Field::Size
                                      : Quantity::Field::Stride,
                    (number - 2) % rank}
        .write();
  }
  if (auto apply = dyn_cast<affine::AffineApplyOp>(op))
    return describe(apply.getMap(), apply.getOperands(), Function::Max);
  if (auto max = dyn_cast<affine::AffineMaxOp>(op))
    return describe(max.getMap(), max.getOperands(), Function::Max);
  if (auto min = dyn_cast<affine::AffineMinOp>(op))
    return describe(min.getMap(), min.getOperands(), Function::Min);
  if (isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtSIOp,
          arith::TruncIOp>(op))
    return describeExpression(op->getOperand(0));
  if (isa<arith::AddIOp>(op)) {
    std::string a = describeExpression(op->getOperand(0));
    std::string b = describeExpression(op->getOperand(1));
    return a == "0" ? b : b == "0" ? a : writeCall(Function::Add, {a, b});
  }
  if (isa<arith::SubIOp>(op))
    return describeBinary(op, Function::Sub);
  if (isa<arith::MulIOp>(op))
    return describeBinary(op, Function::Mul);
  if (isa<arith::CeilDivSIOp, arith::CeilDivUIOp>(op))
    return describeBinary(op, Function::CeilDiv);
  if (isa<arith::FloorDivSIOp, arith::DivSIOp, arith::DivUIOp>(op))
    return describeBinary(op, Function::FloorDiv);
  if (auto remainder = dyn_cast<arith::RemUIOp>(op))
    return describeRemainder(remainder);
  if (auto compare = dyn_cast<arith::CmpIOp>(op);
      compare && compare.getPredicate() == arith::CmpIPredicate::eq)
    return describeEqual(compare);
  if (isa<arith::MaxSIOp, arith::MaxUIOp>(op))
    return describeBinary(op, Function::Max);
  if (isa<arith::MinSIOp, arith::MinUIOp>(op))
    return describeBinary(op, Function::Min);
  return "?";
}
