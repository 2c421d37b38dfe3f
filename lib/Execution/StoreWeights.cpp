//===- StoreWeights.cpp - weights in the form that kernels read -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StoreWeights.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "nm_sparse/Dialect/NMSparse/Utils/Packing.h"
#include "nm_sparse/Pipelines/Pipelines.h"
#include "nm_sparse/Pipelines/Run.h"
#include "nm_sparse/Runtime/Error.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// The weight that `packed` describes at each position of the components that
/// `function` takes when its weights are packed; null at all others. None where
/// it takes no weight.
static SmallVector<PackedAttr> getOwnWeights(func::FuncOp function) {
  SmallVector<PackedAttr> weights;
  StringRef name = NMSparseDialect::ComponentAttrHelper::getNameStr();
  for (BlockArgument argument : function.getArguments()) {
    auto component =
        function.getArgAttrOfType<ComponentAttr>(argument.getArgNumber(), name);
    if (getEncoding(argument.getType())) {
      auto packed = PackedAttr::get(cast<RankedTensorType>(argument.getType()));
      weights.append(packed.getComponents().size(), packed);
    } else {
      weights.push_back(component ? component.getPacked() : PackedAttr());
    }
  }
  if (llvm::none_of(weights, [](PackedAttr packed) { return packed; }))
    weights.clear();
  return weights;
}

static SmallVector<HostArray> allocate(ArrayRef<WeightComponent> components,
                                       int32_t valuesKind) {
  SmallVector<HostArray> arrays;
  for (const WeightComponent &component : components) {
    HostArray &array = arrays.emplace_back();
    array.shape.assign(component.type.getShape().begin(),
                       component.type.getShape().end());
    array.elementBytes = component.type.getElementTypeBitWidth() / 8;
    array.data.resize(array.size() * array.elementBytes);
    array.kind = component.role == ComponentRole::Values ? valuesKind
                 : array.elementBytes == 1               ? NMS_I8
                                                         : NMS_I32;
  }
  return arrays;
}

/// Packs a weight of the canonical components `values` and `index` of `from`
/// into those of `to`.
static llvm::Error embed(RankedTensorType weight, EncodingAttr from,
                         EncodingAttr to, HostArray &values, HostArray &index) {
  NmsPackSpec own = getPackSpec(weight, from);
  NmsPackSpec other = getPackSpec(weight, to);
  std::vector<char> dense(weight.getNumElements() *
                          weight.getElementTypeBitWidth() / 8);
  SmallVector<HostArray> packed =
      allocate(to.getComponents(weight), values.kind);
  const void *read[] = {values.data.data(), index.data.data()};
  void *written[] = {packed[0].data.data(), packed[1].data.data()};
  if (nmsUnpack(&own, read, dense.data()) ||
      nmsPack(&other, dense.data(), written))
    return llvm::createStringError(nmsLastError());
  values = std::move(packed[0]);
  index = std::move(packed[1]);
  return llvm::Error::success();
}

/// Replaces the components at `values` and at `index`, that of the innermost
/// level, which are canonical ones of `encoding`, by those of `packed`.
static llvm::Error storeComponents(EncodingAttr encoding, PackedAttr packed,
                                   HostArray &values, HostArray &index) {
  RankedTensorType weight = packed.getWeightType();
  if (encoding != packed.getEncoding())
    if (llvm::Error error =
            embed(weight, encoding, packed.getEncoding(), values, index))
      return error;
  if (!isa<BitmapAttr>(packed.getStorage()))
    return llvm::Error::success();
  SmallVector<HostArray> stored = allocate(packed.getComponents(), values.kind);
  NmsPackSpec spec = getPackSpec(weight, packed.getEncoding());
  if (nmsInnermostSpec(&spec, &spec) ||
      nmsPackBitmap(&spec, values.data.data(), index.data.data(),
                    stored.front().data.data(),
                    reinterpret_cast<uint32_t *>(stored.back().data.data())))
    return llvm::createStringError(nmsLastError());
  values = std::move(stored.front());
  index = std::move(stored.back());
  return llvm::Error::success();
}

llvm::Error nm_sparse::storeWeights(ModuleOp module, StringRef entry,
                                    const GPUPipelineOptions &options,
                                    std::vector<Argument> &arguments) {
  SmallVector<PackedAttr> own =
      getOwnWeights(module.lookupSymbol<func::FuncOp>(entry));
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
  llvm::DenseMap<int64_t, unsigned> valuesOf;
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    auto component = function.getArgAttrOfType<ComponentAttr>(i, name);
    if (component && component.getName() == kValuesComponent)
      valuesOf[component.getWeight()] = i;
  }
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    auto component = function.getArgAttrOfType<ComponentAttr>(i, name);
    // Free elements are made in this form, and so are other canonical ones. Of
    // two levels the index of the outer one stays as it is.
    if (!component ||
        component.getName() !=
            component.getPacked().getComponents().back().name ||
        component.getPacked().getStorage() == own[i].getStorage())
      continue;
    if (llvm::Error error =
            storeComponents(own[i].getEncoding(), component.getPacked(),
                            arguments[valuesOf[component.getWeight()]].array,
                            arguments[i].array))
      return error;
  }
  return llvm::Error::success();
}
