//===- StoreWeights.cpp - weights in the form that kernels read -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lowering/StoreWeights.h"

#include "Inputs/PackedInputs.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "nm_sparse/Dialect/NMSparse/Utils/Packing.h"
#include "nm_sparse/Pipelines/Pipelines.h"
#include "nm_sparse/Pipelines/Run.h"
#include "nm_sparse/Runtime/Error.h"
#include "nm_sparse/Support/ErrorCollector.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {
/// An argument of a function, once its weights are packed.
struct OwnArgument {
  /// The weight that this is a component of; null of other arguments.
  PackedAttr packed = {};
  std::string component = {};
  /// The number of that weight in the function.
  int64_t weight = 0;
};
} // namespace

/// The arguments of `function` when its weights are packed as their types and
/// attributes say. None where it takes no weight.
static SmallVector<OwnArgument> getOwnArguments(func::FuncOp function) {
  SmallVector<OwnArgument> arguments;
  StringRef name = NMSparseDialect::ComponentAttrHelper::getNameStr();
  for (BlockArgument argument : function.getArguments()) {
    auto number = int64_t(argument.getArgNumber());
    auto component = function.getArgAttrOfType<ComponentAttr>(number, name);
    if (getEncoding(argument.getType())) {
      auto packed = PackedAttr::get(cast<RankedTensorType>(argument.getType()));
      // Those of the attributes count from 0.
      for (const WeightComponent &one : packed.getComponents())
        arguments.push_back({packed, one.name.str(), -1 - number});
    } else if (component) {
      arguments.push_back({component.getPacked(), component.getName().str(),
                           component.getWeight()});
    } else {
      arguments.emplace_back();
    }
  }
  if (llvm::none_of(arguments,
                    [](const OwnArgument &own) { return own.packed; }))
    arguments.clear();
  return arguments;
}

/// Replaces `components`, which are canonical ones of `encoding`, by those of
/// `packed`. Of two levels that are stored as one the last is not replaced.
static llvm::Error storeComponents(EncodingAttr encoding, PackedAttr packed,
                                   ArrayRef<HostArray *> components) {
  RankedTensorType weight = packed.getWeightType();
  NmsPackSpec spec = getPackSpec(weight, encoding);
  std::vector<char> dense(weight.getNumElements() *
                          weight.getElementTypeBitWidth() / 8);
  SmallVector<const void *> read;
  for (HostArray *component : components)
    read.push_back(component->data.data());
  if (nmsUnpack(&spec, read.data(), dense.data()))
    return llvm::createStringError(nmsLastError());
  ErrorCollector errors(packed.getContext());
  FailureOr<SmallVector<PackedComponent>> stored =
      packed.getStorage().pack(weight, dense, [&] {
        return emitError(UnknownLoc::get(packed.getContext()));
      });
  if (failed(stored))
    return llvm::createStringError(errors.getFirst());
  int32_t kind = components.front()->kind;
  for (auto [own, to, from] :
       llvm::zip(packed.getComponents(), components, *stored))
    *to = makeArray(own.role, kind, from);
  return llvm::Error::success();
}

/// `component`, if there is one, is of the inner level: two levels that are
/// stored as one have none.
static bool isInner(ComponentAttr component) {
  return component && component.getPacked().getEncoding().hasInnerLevel() &&
         component.getName() != kValuesComponent &&
         component.getName() != kIndexComponent;
}

llvm::Error nm_sparse::storeWeights(ModuleOp module, StringRef entry,
                                    const GPUPipelineOptions &options,
                                    std::vector<Argument> &arguments) {
  SmallVector<OwnArgument> own =
      getOwnArguments(module.lookupSymbol<func::FuncOp>(entry));
  if (own.empty())
    return llvm::Error::success();
  OwningOpRef<ModuleOp> front = cast<ModuleOp>(module->clone());
  if (llvm::Error error =
          runPipeline(*front, "stage front", [&](OpPassManager &pm) {
            buildFrontPipeline(pm, options);
          }))
    return error;
  auto function = front->lookupSymbol<func::FuncOp>(entry);
  StringRef name = NMSparseDialect::ComponentAttrHelper::getNameStr();
  std::vector<Argument> kept;
  llvm::MapVector<int64_t, SmallVector<HostArray *>> weights;
  llvm::DenseMap<int64_t, PackedAttr> storedAs;
  SmallVector<bool> isTaken;
  for (auto [i, argument] : llvm::enumerate(own)) {
    unsigned next = llvm::count(isTaken, true);
    auto component = next < function.getNumArguments()
                         ? function.getArgAttrOfType<ComponentAttr>(next, name)
                         : ComponentAttr();
    isTaken.push_back(argument.component != kInnerIndexComponent ||
                      isInner(component));
    if (!argument.packed)
      continue;
    // Arguments may come in any order.
    SmallVector<WeightComponent> components = argument.packed.getComponents();
    SmallVector<HostArray *> &arrays = weights[argument.weight];
    arrays.resize(components.size());
    for (auto [array, one] : llvm::zip_equal(arrays, components))
      if (one.name == argument.component)
        array = &arguments[i].array;
    if (isTaken.back())
      storedAs[argument.weight] = component.getPacked();
  }
  for (auto [i, argument] : llvm::enumerate(own)) {
    PackedAttr packed = storedAs.lookup(argument.weight);
    // Free elements are made in this form, and so are other canonical ones.
    if (!argument.packed || argument.component != kValuesComponent ||
        packed.getStorage() == argument.packed.getStorage())
      continue;
    if (llvm::Error error = storeComponents(argument.packed.getEncoding(),
                                            packed, weights[argument.weight]))
      return error;
  }
  for (auto [argument, taken] : llvm::zip(arguments, isTaken))
    if (taken)
      kept.push_back(std::move(argument));
  arguments = std::move(kept);
  return llvm::Error::success();
}
