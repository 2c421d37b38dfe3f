//===- CheckWeights.cpp - weights that programs can take ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The host compiler passes the parts of a packed weight to a program, and does
// not know the dense one. So nothing that stays in the model may touch it.
//
//===----------------------------------------------------------------------===//

#include "Programs.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SparseTensor/IR/SparseTensor.h"
#include "nm_sparse/Conversion/LinalgToNMSparse.h"
#include "nm_sparse/Dialect/NMSparse/Utils/Contraction.h"
#include "nm_sparse/Dialect/NMSparse/Utils/WeightView.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// The weights of convolutions have two more dimensions than matrices.
static bool isConvolution(linalg::LinalgOp op) {
  return isa<linalg::ConvolutionOpInterface>(op.getOperation()) ||
         linalg::isaConvolutionOpInterface(op);
}

bool nm_sparse::isEncodedProduct(linalg::LinalgOp op) {
  return op.getNumLoops() != op.getNumParallelLoops() &&
         llvm::any_of(op.getDpsInputs(), [](Value input) {
           return findWeight(input).has_value();
         });
}

bool nm_sparse::hasTokens(linalg::LinalgOp product) {
  if (isConvolution(product))
    return true;
  AffineMap result =
      product.getIndexingMapMatchingResult(product->getResult(0));
  for (AffineExpr expr : result.getResults()) {
    bool isInWeight =
        llvm::any_of(product.getDpsInputOperands(), [&](OpOperand *input) {
          AffineMap map = product.getMatchingIndexingMap(input);
          return findWeight(input->get()) && map.getResultPosition(expr);
        });
    if (!isInWeight)
      return true;
  }
  return false;
}

static LogicalResult checkProduct(linalg::LinalgOp op) {
  if (isConvolution(op))
    return success();
  std::string reason;
  auto generic = dyn_cast<linalg::GenericOp>(op.getOperation());
  if (generic && failed(matchContraction(op, reason)) &&
      getFactors(generic.getBody()))
    return op->emitOpError(
        "multiplies an encoded weight with activations that it computes "
        "itself, as --linalg-fuse-elementwise-ops leaves it: outline programs "
        "before that pass");
  return checkEncodedContraction(op);
}

/// Checks where a value with an encoding comes from.
static LogicalResult checkOrigin(func::FuncOp function, Value value) {
  EncodingAttr encoding = getEncoding(value.getType());
  Value weight = findWeight(value)->weight;
  auto argument = dyn_cast<BlockArgument>(weight);
  if (argument && argument.getOwner() == &function.getBody().front())
    return success();
  if (argument)
    return argument.getOwner()->getParentOp()->emitOpError()
           << "carries a weight with encoding " << encoding
           << " into its region: a region must use the argument of @"
           << function.getSymName() << " itself";
  Operation *op = weight.getDefiningOp();
  if (isa<arith::ConstantOp>(op))
    return op->emitOpError()
           << "is a weight with encoding " << encoding
           << ", and a program takes its weights as arguments: pass it as an "
              "argument of @"
           << function.getSymName() << ", from a global of the model";
  return op->emitOpError() << "yields a weight with encoding " << encoding
                           << ", and a program takes its weights as they are: "
                              "pass it as an argument of @"
                           << function.getSymName();
}

/// Returns true if `op` calls a function that `function`'s module defines, in
/// which the weight's uses are checked, too.
static bool isKnownCall(Operation *op) {
  auto call = dyn_cast<func::CallOp>(op);
  auto callee = call ? SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
                           op, call.getCalleeAttr())
                     : func::FuncOp();
  return callee && !callee.isExternal();
}

/// Checks the uses of `value`, which is argument `number` or rearranged from
/// it.
static LogicalResult checkUses(func::FuncOp function, unsigned number,
                               Value value) {
  bool bad = false;
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    auto op = dyn_cast<linalg::LinalgOp>(user);
    if (op && isEncodedProduct(op) && !op.isDpsInit(&use))
      continue;
    bool isItself = getEncoding(value.getType()) != nullptr;
    if (getRearrangement(user) && !(op && op.isDpsInit(&use))) {
      bad |= failed(checkUses(function, number, user->getResult(0)));
      continue;
    }
    if (isItself && isKnownCall(user))
      continue;
    user->emitOpError() << "uses argument " << number << " of @"
                        << function.getSymName() << ", a weight with encoding "
                        << getEncoding(function.getArgumentTypes()[number])
                        << ", and stays in the model: a weight may only be "
                           "multiplied with, or passed to a function of this "
                           "module, so give this operation a dense tensor";
    bad = true;
  }
  return failure(bad);
}

LogicalResult nm_sparse::checkWeights(func::FuncOp function) {
  bool bad = false;
  function.walk([&](MatmulOp op) {
    op.emitOpError(
        "multiplies a packed weight, which the host compiler cannot: "
        "outline programs before --convert-linalg-to-nm-sparse");
    bad = true;
  });
  auto check = [&](Value value) {
    if (getEncoding(value.getType()))
      bad |= failed(checkOrigin(function, value));
  };
  for (BlockArgument argument : function.getArguments()) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (isa_and_present<sparse_tensor::SparseTensorEncodingAttr>(
            type ? type.getEncoding() : Attribute())) {
      function.emitOpError()
          << "has argument " << argument.getArgNumber() << " with "
          << type.getEncoding()
          << ", and programs have weights with #nm_sparse.encoding: convert it "
             "by --convert-sparse-tensor-to-nm-sparse before";
      bad = true;
    }
    if (getEncoding(argument.getType()))
      bad |= failed(checkUses(function, argument.getArgNumber(), argument));
  }
  if (bad)
    return failure();
  function.walk([&](Operation *op) {
    llvm::for_each(op->getResults(), check);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        llvm::for_each(block.getArguments(), check);
  });
  if (bad)
    return failure();
  function.walk([&](linalg::LinalgOp op) {
    if (isEncodedProduct(op))
      bad |= failed(checkProduct(op));
  });
  return failure(bad);
}
