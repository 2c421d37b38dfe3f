//===- SelectStorage.cpp - choose how packed weights are stored -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A weight is stored once, and all products and kernels that use it read that
// form. So it is chosen before functions are copied for numbers of tokens.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "nm_sparse/Analysis/Chip.h"
#include "nm_sparse/Dialect/NMSparse/IR/ElementFormat.h"
#include "nm_sparse/Dialect/NMSparse/Utils/Packing.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSESELECTSTORAGEPASS
#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

/// The components of a weight, and the products that they are for.
struct Weight {
  Value values, index;
  /// Of two levels.
  Value innerIndex;
  SmallVector<MatmulOp> products;

  SmallVector<Value> getComponents() const {
    SmallVector<Value> components = {values, index};
    if (innerIndex)
      components.push_back(innerIndex);
    return components;
  }
};

struct SelectStorage
    : public nm_sparse::impl::NMSparseSelectStoragePassBase<SelectStorage> {
  using NMSparseSelectStoragePassBase::NMSparseSelectStoragePassBase;

  void runOnOperation() override;

private:
  void setDensity(MatmulOp op) const;
  bool prefersBitmaps(MatmulOp op) const;
  static std::optional<PackedAttr> findWeight(const Weight &weight);
  static void storeArguments(const Weight &weight, PackedAttr packed,
                             BitmapAttr bitmap);
};

} // namespace

/// Says what is expected of free elements, unless the product says it itself.
void SelectStorage::setDensity(MatmulOp op) const {
  auto bitmap = cast<BitmapAttr>(op.getStorageAttr());
  if (bitmap.getDensity() == BitmapAttr::kDefaultDensity)
    op.setStorageAttr(
        BitmapAttr::get(op.getContext(), op.getEncoding(), density));
}

/// Tokens up to which a product reads its weight in one pass, as it is stored.
static constexpr int64_t kFewTokens = 8;

/// Rows of a tile of bitmaps of which a ring of shared memory holds several.
static constexpr int64_t kMostRows = 256;

/// Rows of a window whose bits kernels of few tokens find values by: each has
/// code of its own.
static constexpr int64_t kMostWindowRows = 1024;

/// Products of tensor cores gather rows for panels of 8 outputs and more. Those
/// of warpgroups expand bitmaps for any.
bool SelectStorage::prefersBitmaps(MatmulOp op) const {
  if (storage == "canonical")
    return false;
  // Two levels have no other kernels.
  if (op.getEncoding().hasInnerLevel())
    return true;
  Type element = getElementTypeOrSelf(op.getX());
  if (ScheduleAttr schedule = op.getScheduleAttr();
      storage == "auto" && schedule)
    return schedule.getProduct().readsBitmaps();
  // Elements of 8 bits have no other kernels.
  if (element.getIntOrFloatBitWidth() == 8)
    return true;
  if (op.getEncoding().getWindowRows() > kMostWindowRows)
    return false;
  if (storage == "bitmap")
    return true;
  // Tensor cores have no kernel at all for panels that no fragment fits.
  int64_t panel = op.getEncoding().getBlockN();
  if (!element.isF32() && panel % 8 != 0 && 8 % panel != 0)
    return true;
  int64_t most =
      cast<ShapedType>(op.getX().getType()).getDimSize(op.getXTokenDim());
  if (ShapedType::isDynamic(most))
    most = tokens > 0 ? tokens : std::numeric_limits<int64_t>::max();
  const Chip *target = findChip(chip);
  bool expands =
      target && target->wgmma > 0 &&
      BitmapTile::get(op.getEncoding(), element.getIntOrFloatBitWidth() / 8)
              .rows <= kMostRows;
  // Lanes read 16 bytes of a panel, where there are as many.
  int64_t run = 128 / int64_t(element.getIntOrFloatBitWidth());
  // Those that are sparse read bits alone.
  const ElementFormat *format = findElementFormat(element);
  bool isSparse = target && op.getEncoding().isTwoOfFour() && format &&
                  format->sparseMma && format->sparseMma->existsOn(chip);
  return (most <= kFewTokens || isSparse || (expands && !element.isF32())) &&
         panel % run != 0;
}

/// What `value` is as an argument of the function that it belongs to.
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

/// The weight whose components are arguments of a function that nothing in the
/// module calls, and are used by `weight.products` alone.
std::optional<PackedAttr> SelectStorage::findWeight(const Weight &weight) {
  ComponentAttr values = getComponent(weight.values);
  if (!values || values.getName() != kValuesComponent)
    return std::nullopt;
  constexpr StringLiteral names[] = {kValuesComponent, kIndexComponent,
                                     kInnerIndexComponent};
  auto function = cast<func::FuncOp>(
      cast<BlockArgument>(weight.values).getOwner()->getParentOp());
  auto uses = SymbolTable::getSymbolUses(function, function->getParentOp());
  if (!uses || !uses->empty())
    return std::nullopt;
  for (auto [component, name] : llvm::zip(weight.getComponents(), names)) {
    ComponentAttr attribute = getComponent(component);
    if (!attribute || attribute.getWeight() != values.getWeight() ||
        attribute.getName() != name ||
        !llvm::all_of(component.getUsers(), [&](Operation *user) {
          auto op = dyn_cast<MatmulOp>(user);
          return op && llvm::is_contained(weight.products, op);
        }))
      return std::nullopt;
  }
  return values.getPacked();
}

void SelectStorage::storeArguments(const Weight &weight, PackedAttr packed,
                                   BitmapAttr bitmap) {
  MLIRContext *context = packed.getContext();
  auto stored = PackedAttr::get(context, bitmap, packed.getShape(),
                                packed.getElementType());
  StringRef name = NMSparseDialect::ComponentAttrHelper::getNameStr();
  SmallVector<WeightComponent> components = stored.getComponents();
  for (auto [value, component] :
       llvm::zip_equal(weight.getComponents(), components)) {
    auto argument = cast<BlockArgument>(value);
    auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
    unsigned number = argument.getArgNumber();
    int64_t weightNumber = getComponent(value).getWeight();
    argument.setType(component.type);
    SmallVector<Type> types(function.getArgumentTypes());
    types[number] = component.type;
    function.setType(
        FunctionType::get(context, types, function.getResultTypes()));
    function.setArgAttr(
        number, name,
        ComponentAttr::get(context, component.name, weightNumber, stored));
  }
}

/// Makes `components` those of all products of `weight`.
static void replaceComponents(const Weight &weight, ValueRange components) {
  for (MatmulOp op : weight.products) {
    op.getValuesMutable().set(components[0]);
    op.getIndexMutable().set(components[1]);
    if (weight.innerIndex)
      op.getInnerIndexMutable().assign(components[2]);
  }
}

/// Replaces the constants of `weight` by `packed` ones of its products.
static void storeConstants(const Weight &weight, const PackedConstant &packed) {
  OpBuilder b(weight.values.getDefiningOp());
  Location loc = weight.values.getLoc();
  SmallVector<Value> components;
  for (DenseElementsAttr data : packed)
    components.push_back(arith::ConstantOp::create(b, loc, data));
  replaceComponents(weight, components);
  for (Value constant : weight.getComponents())
    if (constant.use_empty())
      constant.getDefiningOp()->erase();
}

/// What packs the weight when the program runs, for its products alone; else
/// null.
static PackOp findPack(const Weight &weight) {
  auto pack = weight.values.getDefiningOp<PackOp>();
  if (!pack || !llvm::equal(pack.getComponents(), weight.getComponents()) ||
      getEncoding(pack.getWeight().getType()) ||
      !llvm::all_of(pack->getUsers(), [&](Operation *user) {
        auto op = dyn_cast<MatmulOp>(user);
        return op && llvm::is_contained(weight.products, op);
      }))
    return {};
  return pack;
}

static void packAsBitmap(const Weight &weight, PackOp pack) {
  OpBuilder b(pack);
  auto stored =
      PackOp::create(b, pack.getLoc(), pack.getWeight(), pack.getEncoding(),
                     BitmapAttr::get(b.getContext(), pack.getEncoding()));
  replaceComponents(weight, stored.getComponents());
  pack.erase();
}

/// The data of a constant, if `value` is one.
static DenseElementsAttr getData(Value value) {
  auto constant = value.getDefiningOp<arith::ConstantOp>();
  return constant ? dyn_cast<DenseElementsAttr>(constant.getValue())
                  : DenseElementsAttr();
}

void SelectStorage::runOnOperation() {
  if (storage != "auto" && storage != "canonical" && storage != "bitmap") {
    emitError(UnknownLoc::get(&getContext()))
        << "storage must be auto, canonical or bitmap, got '" << storage << "'";
    return signalPassFailure();
  }
  if (density < 0 || density > 100) {
    emitError(UnknownLoc::get(&getContext()))
        << "density must be a percentage, 0 to 100, got " << density.getValue();
    return signalPassFailure();
  }
  llvm::MapVector<std::pair<Value, Value>, Weight> weights;
  getOperation().walk([&](MatmulOp op) {
    if (op.getEncoding().isFree()) {
      if (storage == "canonical")
        op.emitRemark("keeps the bitmaps of its weight: free elements have no "
                      "canonical form");
      return setDensity(op);
    }
    Weight &weight = weights[{op.getValues(), op.getIndex()}];
    weight.values = op.getValues();
    weight.index = op.getIndex();
    weight.innerIndex = op.getInnerIndex();
    weight.products.push_back(op);
  });
  for (auto &[key, weight] : weights) {
    MatmulOp first = weight.products.front();
    if (first.getStorageAttr() ||
        !llvm::all_of(weight.products,
                      [&](MatmulOp op) { return prefersBitmaps(op); }))
      continue;
    auto bitmap = BitmapAttr::get(&getContext(), first.getEncoding());
    SmallVector<DenseElementsAttr> data =
        llvm::map_to_vector(weight.getComponents(), getData);
    if (std::optional<PackedAttr> packed = findWeight(weight)) {
      storeArguments(weight, *packed, bitmap);
    } else if (PackOp pack = findPack(weight)) {
      packAsBitmap(weight, pack);
    } else if (llvm::all_of(data, [](auto part) { return part != nullptr; })) {
      FailureOr<PackedConstant> packed =
          storeAsBitmap(data, first, [&] { return first.emitError(); });
      if (failed(packed))
        return signalPassFailure();
      storeConstants(weight, *packed);
    } else {
      first.emitRemark("keeps the canonical form of its weight, which is "
                       "neither a constant nor an argument that only products "
                       "read, of a function that nothing calls");
      continue;
    }
    for (MatmulOp op : weight.products)
      op.setStorageAttr(bitmap);
  }
}
