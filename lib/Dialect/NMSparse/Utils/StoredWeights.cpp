//===- StoredWeights.cpp - weights and the products that read them --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMSparse/Utils/StoredWeights.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::nm_sparse;

SmallVector<StoredWeight> nm_sparse::collectWeights(ModuleOp module) {
  llvm::MapVector<std::pair<Value, Value>, StoredWeight> weights;
  module.walk([&](MatmulOp op) {
    if (op.getEncoding().isFree())
      return;
    StoredWeight &weight = weights[{op.getValues(), op.getIndex()}];
    weight.components = llvm::to_vector(op.getComponents());
    weight.products.push_back(op);
  });
  return llvm::to_vector(llvm::make_second_range(weights));
}

void StoredWeight::replaceComponents(ValueRange with) const {
  for (MatmulOp op : products)
    op.getComponentsMutable().assign(with);
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

/// The component that `value`, an argument of a function, holds; else null.
static ComponentAttr getComponent(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  auto function =
      argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp())
               : func::FuncOp();
  return function ? function.getArgAttrOfType<ComponentAttr>(
                        argument.getArgNumber(),
                        NMSparseDialect::ComponentAttrHelper::getNameStr())
                  : ComponentAttr();
}

std::optional<PackedAttr> StoredWeight::findArguments() const {
  ComponentAttr ofValues = getComponent(components.front());
  // The host packs what it passes in another order, which is canonical alone.
  if (!ofValues ||
      ofValues.getPacked().getEncoding().getOrder() != OutputOrder::Identity)
    return std::nullopt;
  auto function = cast<func::FuncOp>(
      cast<BlockArgument>(components.front()).getOwner()->getParentOp());
  auto uses = SymbolTable::getSymbolUses(function, function->getParentOp());
  if (!uses || !uses->empty())
    return std::nullopt;
  MatmulOp product = products.front();
  SmallVector<StringRef> names = product.getForm().getComponentNames();
  for (auto [component, name] : llvm::zip(components, names)) {
    ComponentAttr attribute = getComponent(component);
    if (!attribute || attribute.getWeight() != ofValues.getWeight() ||
        attribute.getName() != name ||
        !llvm::all_of(component.getUsers(), [&](Operation *user) {
          auto op = dyn_cast<MatmulOp>(user);
          return op && llvm::is_contained(products, op);
        }))
      return std::nullopt;
  }
  return ofValues.getPacked();
}

void StoredWeight::replaceArguments(PackedAttr stored) const {
  MLIRContext *context = stored.getContext();
  StringRef name = NMSparseDialect::ComponentAttrHelper::getNameStr();
  SmallVector<WeightComponent> types = stored.getComponents();
  // Before the types change, which the products check.
  replaceComponents(ArrayRef(components).take_front(types.size()));
  for (Value surplus : ArrayRef(components).drop_front(types.size())) {
    auto argument = cast<BlockArgument>(surplus);
    auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
    LogicalResult erased = function.eraseArgument(argument.getArgNumber());
    assert(succeeded(erased) && "no product uses it any longer");
    (void)erased;
  }
  for (auto [value, component] : llvm::zip(components, types)) {
    auto argument = cast<BlockArgument>(value);
    auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
    unsigned number = argument.getArgNumber();
    int64_t weightNumber = getComponent(value).getWeight();
    argument.setType(component.type);
    SmallVector<Type> arguments(function.getArgumentTypes());
    arguments[number] = component.type;
    function.setType(
        FunctionType::get(context, arguments, function.getResultTypes()));
    function.setArgAttr(
        number, name,
        ComponentAttr::get(context, component.name, weightNumber, stored));
  }
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

/// The data of a constant, if `value` is one.
static DenseElementsAttr getData(Value value) {
  auto constant = value.getDefiningOp<arith::ConstantOp>();
  return constant ? dyn_cast<DenseElementsAttr>(constant.getValue())
                  : DenseElementsAttr();
}

SmallVector<DenseElementsAttr> StoredWeight::findConstants() const {
  SmallVector<DenseElementsAttr> data =
      llvm::map_to_vector(components, getData);
  if (llvm::is_contained(data, DenseElementsAttr()))
    return {};
  return data;
}

void StoredWeight::replaceConstants(const PackedConstant &packed) const {
  OpBuilder b(components.front().getDefiningOp());
  SmallVector<Value> constants;
  for (DenseElementsAttr data : packed)
    constants.push_back(
        arith::ConstantOp::create(b, components.front().getLoc(), data));
  replaceComponents(constants);
  for (Value constant : components)
    if (constant.use_empty())
      constant.getDefiningOp()->erase();
}

//===----------------------------------------------------------------------===//
// Packs
//===----------------------------------------------------------------------===//

PackOp StoredWeight::findPack() const {
  auto pack = components.front().getDefiningOp<PackOp>();
  if (!pack || !llvm::equal(pack.getComponents(), components) ||
      getEncoding(pack.getWeight().getType()) ||
      !llvm::all_of(pack->getUsers(), [&](Operation *user) {
        auto op = dyn_cast<MatmulOp>(user);
        return op && llvm::is_contained(products, op);
      }))
    return {};
  return pack;
}

void StoredWeight::replacePack(PackOp pack, EncodingAttr encoding,
                               WeightStorageInterface storage) const {
  OpBuilder b(pack);
  auto stored =
      PackOp::create(b, pack.getLoc(), pack.getWeight(), encoding, storage);
  replaceComponents(stored->getResults());
  pack.erase();
}
