//===- StoreWeights.cpp - weights in the form that kernels read -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StoreWeights.h"

#include "Lowering.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "nm_sparse/Dialect/NMSparse/Utils/Packing.h"
#include "nm_sparse/Pipelines/Pipelines.h"
#include "nm_sparse/Pipelines/Run.h"
#include "nm_sparse/Runtime/Error.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// Whether any argument of `function` is a weight, or a component of one.
static bool takesWeights(func::FuncOp function) {
  StringRef name = NMSparseDialect::ComponentAttrHelper::getNameStr();
  for (BlockArgument argument : function.getArguments())
    if (getEncoding(argument.getType()) ||
        function.getArgAttr(argument.getArgNumber(), name))
      return true;
  return false;
}

/// Replaces the components of `packed` at `values` and at `bits`, where the
/// index of its innermost level is.
static llvm::Error storeComponents(PackedAttr packed, Argument &values,
                                   Argument &bits) {
  SmallVector<WeightComponent> components = packed.getComponents();
  HostArray stored[2];
  const WeightComponent *made[] = {&components.front(), &components.back()};
  for (auto [array, component] :
       llvm::zip_equal(stored, llvm::make_pointee_range(made))) {
    array.shape.assign(component.type.getShape().begin(),
                       component.type.getShape().end());
    array.elementBytes = component.type.getElementTypeBitWidth() / 8;
    array.data.resize(array.size() * array.elementBytes);
  }
  stored[0].kind = values.array.kind;
  stored[1].kind = NMS_I32;
  NmsPackSpec spec = getPackSpec(packed.getWeightType(), packed.getEncoding());
  if (nmsInnermostSpec(&spec, &spec) ||
      nmsPackBitmap(&spec, values.array.data.data(), bits.array.data.data(),
                    stored[0].data.data(),
                    reinterpret_cast<uint32_t *>(stored[1].data.data())))
    return llvm::createStringError(nmsLastError());
  values.array = std::move(stored[0]);
  bits.array = std::move(stored[1]);
  return llvm::Error::success();
}

llvm::Error nm_sparse::storeWeights(ModuleOp module, StringRef entry,
                                    const RunRequest &request,
                                    std::vector<Argument> &arguments) {
  if (!takesWeights(module.lookupSymbol<func::FuncOp>(entry)))
    return llvm::Error::success();
  OwningOpRef<ModuleOp> front = cast<ModuleOp>(module->clone());
  GPUPipelineOptions options;
  options.storage = request.storage;
  options.density = request.density;
  options.tokens = getCompiledTokens(request);
  if (llvm::Error error =
          runPipeline(*front, "stage front", [&](OpPassManager &pm) {
            buildFrontPipeline(pm, options);
          }))
    return error;
  auto function = front->lookupSymbol<func::FuncOp>(entry);
  StringRef name = NMSparseDialect::ComponentAttrHelper::getNameStr();
  llvm::DenseMap<int64_t, unsigned> valuesOf;
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    auto component = function.getArgAttrOfType<ComponentAttr>(i, name);
    if (component && component.getName() == kValuesComponent)
      valuesOf[component.getWeight()] = i;
  }
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    auto component = function.getArgAttrOfType<ComponentAttr>(i, name);
    // Free elements are made in this form.
    if (!component || component.getName() != kBitsComponent ||
        component.getPacked().getEncoding().isFree())
      continue;
    if (llvm::Error error = storeComponents(
            component.getPacked(), arguments[valuesOf[component.getWeight()]],
            arguments[i]))
      return error;
  }
  return llvm::Error::success();
}
