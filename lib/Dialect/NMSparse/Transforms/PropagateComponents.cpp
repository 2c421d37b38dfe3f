//===- PropagateComponents.cpp - describe the weights of callees ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A host that moves part of a function into one of its own passes the packed
// tensors on as arguments, but nothing says there which weight they hold. The
// caller knows, so this pass copies what it knows to the callee.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSEPROPAGATECOMPONENTSPASS
#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {
struct PropagateComponents
    : public nm_sparse::impl::NMSparsePropagateComponentsPassBase<
          PropagateComponents> {
  void runOnOperation() override;
};

/// An operand of a call, and the component that it holds for the caller.
struct PassedComponent {
  unsigned operand;
  ComponentAttr component;
};
} // namespace

static StringRef getName() {
  return NMSparseDialect::ComponentAttrHelper::getNameStr();
}

static ComponentAttr getComponent(func::FuncOp function, unsigned argument) {
  return function.getArgAttrOfType<ComponentAttr>(argument, getName());
}

/// The weights of which `call` passes each component once, by their number in
/// the caller.
static SmallVector<SmallVector<PassedComponent>>
findWholeWeights(func::CallOp call) {
  auto caller = call->getParentOfType<func::FuncOp>();
  llvm::MapVector<int64_t, SmallVector<PassedComponent>> weights;
  for (auto [i, operand] : llvm::enumerate(call.getOperands())) {
    auto argument = dyn_cast<BlockArgument>(operand);
    if (!argument || argument.getOwner()->getParentOp() != caller ||
        !argument.getOwner()->isEntryBlock())
      continue;
    if (ComponentAttr component = getComponent(caller, argument.getArgNumber()))
      weights[component.getWeight()].push_back(
          {static_cast<unsigned>(i), component});
  }
  SmallVector<SmallVector<PassedComponent>> whole;
  for (auto &[number, passed] : weights) {
    llvm::SmallDenseSet<StringRef> names;
    for (const PassedComponent &each : passed)
      names.insert(each.component.getName());
    size_t count = passed.front().component.getPacked().getComponents().size();
    if (passed.size() == count && names.size() == count)
      whole.push_back(passed);
  }
  return whole;
}

/// A number that no weight among the arguments of `function` has.
static int64_t getFreeNumber(func::FuncOp function) {
  int64_t number = 0;
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (ComponentAttr component = getComponent(function, i))
      number = std::max(number, component.getWeight() + 1);
  return number;
}

/// Describes `weight`, which `call` passes, on the arguments of `callee`. Sets
/// `changed` where they were not described yet.
static LogicalResult describe(func::CallOp call, func::FuncOp callee,
                              ArrayRef<PassedComponent> weight, bool &changed) {
  unsigned known = 0;
  for (const PassedComponent &passed : weight) {
    ComponentAttr own = getComponent(callee, passed.operand);
    if (!own)
      continue;
    ++known;
    if (own.getName() == passed.component.getName() &&
        own.getPacked() == passed.component.getPacked())
      continue;
    InFlightDiagnostic error = call.emitOpError("passes ")
                               << passed.component << " as argument "
                               << passed.operand << " of @"
                               << callee.getSymName();
    error.attachNote(callee.getLoc())
        << "which holds " << own
        << "; functions are called with weights that are stored alike";
    return error;
  }
  if (known == weight.size())
    return success();
  if (known > 0)
    return call.emitOpError("passes a weight to @")
           << callee.getSymName() << ", which describes " << known << " of its "
           << weight.size() << " components; describe all of them, or none";
  int64_t number = getFreeNumber(callee);
  for (const PassedComponent &passed : weight)
    callee.setArgAttr(passed.operand, getName(),
                      ComponentAttr::get(call.getContext(),
                                         passed.component.getName(), number,
                                         passed.component.getPacked()));
  changed = true;
  return success();
}

void PropagateComponents::runOnOperation() {
  SymbolTableCollection symbols;
  SmallVector<std::pair<func::CallOp, func::FuncOp>> calls;
  getOperation().walk([&](func::CallOp call) {
    auto callee = symbols.lookupNearestSymbolFrom<func::FuncOp>(
        call, call.getCalleeAttr());
    if (callee && call->getParentOfType<func::FuncOp>())
      calls.emplace_back(call, callee);
  });
  // A callee may pass its weights on; each round describes a level of calls.
  bool changed = true;
  while (changed) {
    changed = false;
    for (auto &[call, callee] : calls)
      for (ArrayRef<PassedComponent> weight : findWholeWeights(call))
        if (failed(describe(call, callee, weight, changed)))
          return signalPassFailure();
  }
}
