//===- CheckIndex.cpp - check the index of packed weights at run time -----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "nm_sparse/Conversion/RuntimeCall.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSECHECKINDEXPASS
#include "nm_sparse/Conversion/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

/// The check of a component, and what it is told of the weight; null where the
/// component is not checked.
static StringRef getCheck(ComponentAttr attribute, int64_t number,
                          SmallVectorImpl<int64_t> &parameters) {
  PackedAttr packed = attribute.getPacked();
  WeightComponent component = attribute.getComponent();
  const SparsityLevel &level =
      packed.getEncoding().getLevels()[component.level];
  switch (component.role) {
  case ComponentRole::Values:
    return {};
  case ComponentRole::Panels: {
    NmsPackSpec spec =
        getPackSpec(packed.getWeightType(), packed.getEncoding());
    parameters.assign({level.blockK, level.blockN, spec.k, spec.outputs,
                       packed.getStorage().getListedPanels()->rows, number});
    return "nmsRuntimeCheckRagged";
  }
  case ComponentRole::Positions:
    // Those of ragged panels are checked with them, and the runtime knows no
    // others than canonical ones.
    if (packed.getStorage().getListedPanels() ||
        packed.getStorage().hasOwnPositions())
      return {};
    parameters.assign({level.n, level.m, number});
    return "nmsRuntimeCheckIndex";
  case ComponentRole::Permutation:
    parameters.assign({number});
    return "nmsRuntimeCheckPerm";
  case ComponentRole::Bits:
    NmsPackSpec spec =
        getPackSpec(packed.getWeightType(), packed.getEncoding());
    if (packed.getEncoding().isFree()) {
      parameters.assign({spec.kind, spec.k, spec.outputs, number});
      return "nmsRuntimeCheckFreeBits";
    }
    // With two levels, the bits describe the rows that the outer one keeps.
    if (nmsInnermostSpec(&spec, &spec))
      llvm_unreachable("the verifier has seen the encoding");
    parameters.assign({spec.kind, level.n, level.m, level.blockK, level.blockN,
                       spec.k, spec.outputs, number});
    return "nmsRuntimeCheckBits";
  }
  llvm_unreachable("all roles are handled");
}

/// The argument that holds what is `role` of the weight of `attribute`, which
/// the verifier has seen.
static BlockArgument findComponent(func::FuncOp function,
                                   ComponentAttr attribute,
                                   ComponentRole role) {
  return *llvm::find_if(function.getArguments(), [&](BlockArgument argument) {
    auto other = function.getArgAttrOfType<ComponentAttr>(
        argument.getArgNumber(),
        NMSparseDialect::ComponentAttrHelper::getNameStr());
    return other && other.getWeight() == attribute.getWeight() &&
           other.getComponent().role == role;
  });
}

static LogicalResult addCheck(ModuleOp module, func::FuncOp function,
                              BlockArgument argument, ComponentAttr attribute) {
  unsigned number = argument.getArgNumber();
  SmallVector<int64_t> parameters;
  StringRef check = getCheck(attribute, number, parameters);
  if (check.empty())
    return success();
  auto type = dyn_cast<MemRefType>(argument.getType());
  if (!type)
    return function.emitOpError("argument ")
           << number << ", component '" << attribute.getName() << "', has type "
           << argument.getType() << ": its "
           << stringifyComponentRole(attribute.getComponent().role)
           << " can be checked in a memref; bufferize first";
  OpBuilder builder(&function.getBody().front(),
                    function.getBody().front().begin());
  Location loc = argument.getLoc();
  // Only the values of a free weight say how many there are, and only the rows
  // of ragged panels say which they are.
  SmallVector<Value> others;
  bool isPerm = attribute.getComponent().role == ComponentRole::Permutation;
  if (!isPerm && attribute.getPacked().getEncoding().isFree())
    others.push_back(findComponent(function, attribute, ComponentRole::Values));
  if (!isPerm && attribute.getPacked().getStorage().getListedPanels())
    others.push_back(
        findComponent(function, attribute, ComponentRole::Positions));
  for (Value other : others)
    if (!isa<MemRefType>(other.getType()))
      return function.emitOpError("argument ")
             << number << ", component '" << attribute.getName()
             << "', can be checked with the other components of its weight in "
                "memrefs, got "
             << other.getType() << "; bufferize first";
  SmallVector<Value> operands = {
      arith::ConstantIntOp::create(builder, loc, type.getRank(), 64),
      buildDescriptor(builder, loc, argument)};
  for (Value other : others)
    operands.push_back(buildDescriptor(builder, loc, other));
  operands.push_back(
      buildI64Array(builder, loc, ArrayRef<int64_t>(parameters)));
  callRuntime(builder, loc, module, check, TypeRange(), operands);
  return success();
}

namespace {
struct CheckIndex
    : public nm_sparse::impl::NMSparseCheckIndexPassBase<CheckIndex> {
  void runOnOperation() override {
    SmallVector<func::FuncOp> functions(getOperation().getOps<func::FuncOp>());
    for (func::FuncOp function : functions) {
      if (function.isExternal())
        continue;
      for (BlockArgument argument : function.getArguments()) {
        auto component = function.getArgAttrOfType<ComponentAttr>(
            argument.getArgNumber(),
            NMSparseDialect::ComponentAttrHelper::getNameStr());
        if (component &&
            failed(addCheck(getOperation(), function, argument, component)))
          return signalPassFailure();
      }
    }
  }
};
} // namespace
