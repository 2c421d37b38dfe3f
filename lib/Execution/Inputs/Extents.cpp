//===- Extents.cpp - extents of arguments and results ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Collects the rules that the operations of a function set for its extents.
//
//===----------------------------------------------------------------------===//

#include "Inputs/Extents.h"
#include "Inputs/ExtentSolver.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

using MappedValue = std::pair<Value, AffineMap>;

class Collector {
public:
  Collector(func::FuncOp entry, ExtentSolver &solver)
      : entry(entry), solver(solver) {}
  void collect();

private:
  void equate(Value a, Value b);
  void addLoops(ArrayRef<MappedValue> operands);
  void addSizes(Value tensor, ValueRange dynamicSizes);
  void addReshape(Value flat, Value expanded,
                  ArrayRef<ReassociationIndices> groups);
  void addMatmul(MatmulOp op);
  void addPermute(PermuteOp op);
  void add(Operation *op);

  func::FuncOp entry;
  ExtentSolver &solver;
};

} // namespace

void Collector::equate(Value a, Value b) {
  auto first = dyn_cast<RankedTensorType>(a.getType());
  auto second = dyn_cast<RankedTensorType>(b.getType());
  if (!first || !second || first.getRank() != second.getRank())
    return;
  for (int64_t dim = 0; dim < first.getRank(); ++dim)
    solver.equate(solver.get(a, dim), solver.get(b, dim));
}

/// Dimensions that one loop indexes have one extent.
void Collector::addLoops(ArrayRef<MappedValue> operands) {
  llvm::SmallDenseMap<unsigned, unsigned> loops;
  for (auto &[value, map] : operands) {
    if (!isa<RankedTensorType>(value.getType()))
      continue;
    for (auto [dim, expr] : llvm::enumerate(map.getResults()))
      if (auto loop = dyn_cast<AffineDimExpr>(expr)) {
        unsigned number = solver.get(value, dim);
        auto [first, isNew] = loops.try_emplace(loop.getPosition(), number);
        if (!isNew)
          solver.equate(first->second, number);
      }
  }
}

/// The dynamic dimensions of `tensor` are `dynamicSizes`, in order.
void Collector::addSizes(Value tensor, ValueRange dynamicSizes) {
  auto type = cast<RankedTensorType>(tensor.getType());
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (type.isDynamicDim(dim) && !dynamicSizes.empty()) {
      solver.equate(solver.get(tensor, dim), solver.get(dynamicSizes.front()));
      dynamicSizes = dynamicSizes.drop_front();
    }
}

void Collector::addReshape(Value flat, Value expanded,
                           ArrayRef<ReassociationIndices> groups) {
  auto type = cast<RankedTensorType>(expanded.getType());
  for (auto [dim, group] : llvm::enumerate(groups)) {
    int64_t factor = 1;
    SmallVector<unsigned> parts;
    for (int64_t part : group)
      if (type.isDynamicDim(part))
        parts.push_back(solver.get(expanded, part));
      else
        factor *= type.getDimSize(part);
    solver.addProduct(solver.get(flat, dim), factor, parts);
  }
}

/// The packed form is of whole windows and panels; only the weight itself says
/// where contraction and outputs end.
void Collector::addMatmul(MatmulOp op) {
  addLoops({{op.getX(), op.getXMap()}, {op.getInit(), op.getResultMap()}});
  RankedTensorType weight;
  EncodingAttr encoding;
  if (auto pack = op.getValues().getDefiningOp<PackOp>()) {
    weight = cast<RankedTensorType>(pack.getWeight().getType());
    encoding = pack.getEncoding();
  } else if (ComponentAttr component = getComponent(entry, op.getValues())) {
    weight = component.getPacked().getWeightType();
    encoding = component.getPacked().getEncoding();
  } else {
    return;
  }
  PackedShape shape = getPackedShape(weight, encoding);
  AffineExpr outputs = getAffineDimExpr(op.getOutputLoop(), op.getContext());
  std::optional<unsigned> column = op.getResultMap().getResultPosition(outputs);
  solver.determine(solver.get(op.getX(), op.getXReductionDim()), shape.k,
                   op.getValues(), ExtentSolver::kWeight);
  solver.determine(solver.get(op.getInit(), *column), shape.outputs,
                   op.getValues(), ExtentSolver::kWeight);
}

/// A permutation has a place for all that it permutes.
void Collector::addPermute(PermuteOp op) {
  Value perm = op.getPerm();
  equate(op.getResult(), op.getSource());
  int64_t last = cast<RankedTensorType>(perm.getType()).getRank() - 1;
  solver.equate(solver.get(perm, last),
                solver.get(op.getSource(), static_cast<int64_t>(op.getDim())));
  if (std::optional<uint64_t> batch = op.getBatch())
    solver.equate(solver.get(perm, 0),
                  solver.get(op.getSource(), static_cast<int64_t>(*batch)));
}

void Collector::add(Operation *op) {
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](linalg::LinalgOp linalgOp) {
        SmallVector<MappedValue> operands;
        for (OpOperand &operand : op->getOpOperands())
          operands.push_back(
              {operand.get(), linalgOp.getMatchingIndexingMap(&operand)});
        addLoops(operands);
      })
      .Case([&](MatmulOp matmul) { addMatmul(matmul); })
      .Case([&](PermuteOp permute) { addPermute(permute); })
      .Case([&](tensor::CastOp cast) {
        equate(cast.getSource(), cast.getDest());
      })
      .Case([&](tensor::DimOp dim) {
        std::optional<int64_t> position = dim.getConstantIndex();
        auto type = dyn_cast<RankedTensorType>(dim.getSource().getType());
        if (position && type && *position < type.getRank())
          solver.equate(solver.get(dim.getResult()),
                        solver.get(dim.getSource(), *position));
      })
      .Case([&](tensor::EmptyOp empty) {
        addSizes(empty.getResult(), empty.getDynamicSizes());
      })
      .Case([&](tensor::ExpandShapeOp reshape) {
        addSizes(reshape.getResult(), reshape.getOutputShape());
        addReshape(reshape.getSrc(), reshape.getResult(),
                   reshape.getReassociationIndices());
      })
      .Case([&](tensor::CollapseShapeOp reshape) {
        addReshape(reshape.getResult(), reshape.getSrc(),
                   reshape.getReassociationIndices());
      })
      .Case<arith::IndexCastOp, arith::IndexCastUIOp>([&](auto cast) {
        if (!isa<ShapedType>(cast.getType()))
          solver.equate(solver.get(cast.getIn()), solver.get(cast.getOut()));
      })
      .Case([&](arith::MulIOp product) {
        if (product.getType().isIndex())
          solver.addProduct(
              solver.get(product.getResult()), /*factor=*/1,
              {solver.get(product.getLhs()), solver.get(product.getRhs())});
      });
  if (auto destination = dyn_cast<DestinationStyleOpInterface>(op))
    for (OpResult result : op->getResults())
      equate(result, destination.getTiedOpOperand(result)->get());
  // Elementwise operations on tensors.
  if (OpTrait::hasElementwiseMappableTraits(op) && op->getNumResults() == 1)
    for (Value operand : op->getOperands())
      equate(op->getResult(0), operand);
}

void Collector::collect() {
  entry.walk<WalkOrder::PreOrder>([&](Operation *op) {
    add(op);
    // The rules of a branch hold only where it is taken.
    bool isBranch =
        isa<RegionBranchOpInterface>(op) && !isa<LoopLikeOpInterface>(op);
    return isBranch ? WalkResult::skip() : WalkResult::advance();
  });
}

static bool isNumber(Type type) { return type.isIndex() || type.isInteger(64); }

ComponentAttr nm_sparse::getComponent(func::FuncOp entry, Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument || argument.getOwner() != &entry.getBody().front())
    return {};
  return entry.getArgAttrOfType<ComponentAttr>(
      argument.getArgNumber(),
      NMSparseDialect::ComponentAttrHelper::getNameStr());
}

llvm::Expected<Extents> nm_sparse::deriveExtents(func::FuncOp entry,
                                                 int64_t freeSize) {
  ExtentSolver solver;
  SmallVector<SmallVector<unsigned>> numbers;
  for (BlockArgument argument : entry.getArguments()) {
    SmallVector<unsigned> &own = numbers.emplace_back();
    if (auto tensor = dyn_cast<RankedTensorType>(argument.getType()))
      for (int64_t dim = 0; dim < tensor.getRank(); ++dim)
        own.push_back(solver.get(argument, dim));
    else if (isNumber(argument.getType()))
      own.push_back(solver.get(argument));
    for (unsigned number : own)
      solver.choose(number);
  }
  Collector(entry, solver).collect();
  solver.solve(freeSize);
  if (!solver.getError().empty())
    return llvm::createStringError(
        llvm::formatv("cannot choose extents for the arguments of @{0}: {1}",
                      entry.getSymName(), solver.getError())
            .str());

  Extents extents;
  for (ArrayRef<unsigned> own : numbers) {
    SmallVector<int64_t> &shape = extents.arguments.emplace_back();
    for (unsigned number : own)
      shape.push_back(*solver.find(number));
  }
  for (auto [position, shape] : llvm::enumerate(extents.arguments))
    for (int64_t extent : shape)
      if (extent < 0 && isa<ShapedType>(entry.getArgumentTypes()[position]))
        return llvm::createStringError(
            llvm::formatv("argument #{0} of @{1} would have a dimension of "
                          "{2}, legal is at least 0",
                          position, entry.getSymName(), extent)
                .str());
  // If there are several returns, the first one stands for all.
  auto end = *entry.getBody().getOps<func::ReturnOp>().begin();
  for (Value result : end.getOperands()) {
    SmallVector<int64_t> &shape = extents.results.emplace_back();
    if (auto tensor = dyn_cast<RankedTensorType>(result.getType()))
      for (int64_t dim = 0; dim < tensor.getRank(); ++dim)
        shape.push_back(solver.find(solver.get(result, dim))
                            .value_or(ShapedType::kDynamic));
  }
  return extents;
}
