//===- NMSparse.cpp - the nm_sparse dialect for C -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attributes are built by getChecked: a caller in C has no assertion to meet.
//
//===----------------------------------------------------------------------===//

#include "Dialect/NMSparse/Storages/StorageAttrs.h"

#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Registration.h"
#include "mlir/CAPI/Support.h"
#include "nm_sparse-c/Dialects.h"

using namespace mlir;
using namespace mlir::nm_sparse;

MLIR_DEFINE_CAPI_DIALECT_REGISTRATION(NMSparse, nm_sparse, NMSparseDialect)

static_assert(int(OutputOrder::Identity) == MlirNMSparseOrderIdentity &&
              int(OutputOrder::Shuffled) == MlirNMSparseOrderShuffled);

/// Emits an error of which only the context is known.
static auto errorIn(MLIRContext *context) {
  return [context] { return emitError(UnknownLoc::get(context)); };
}

template <typename AttrTy>
static AttrTy castTo(MlirAttribute attr) {
  return llvm::cast<AttrTy>(unwrap(attr));
}

//===----------------------------------------------------------------------===//
// EncodingAttr
//===----------------------------------------------------------------------===//

bool mlirAttributeIsANMSparseEncoding(MlirAttribute attr) {
  return llvm::isa_and_nonnull<EncodingAttr>(unwrap(attr));
}

MlirTypeID mlirNMSparseEncodingAttrGetTypeID() {
  return wrap(EncodingAttr::getTypeID());
}

MlirAttribute mlirNMSparseEncodingAttrGet(MlirContext ctx, intptr_t numLevels,
                                          const MlirNMSparseLevel *levels,
                                          int64_t dim,
                                          MlirNMSparseOrder order) {
  return mlirNMSparseEncodingAttrGetChecked(
      wrap(Location(UnknownLoc::get(unwrap(ctx)))), numLevels, levels, dim,
      order);
}

MlirAttribute
mlirNMSparseEncodingAttrGetChecked(MlirLocation loc, intptr_t numLevels,
                                   const MlirNMSparseLevel *levels, int64_t dim,
                                   MlirNMSparseOrder order) {
  SmallVector<SparsityLevel, 2> list;
  for (const MlirNMSparseLevel &level : llvm::ArrayRef(levels, numLevels))
    list.push_back({level.n, level.m, level.blockK, level.blockN});
  Location location = unwrap(loc);
  auto error = [&] { return emitError(location); };
  std::optional<OutputOrder> outputs = symbolizeOutputOrder(uint32_t(order));
  if (!outputs) {
    error() << "order must be 0 (identity) or 1 (shuffled), got "
            << int64_t(order);
    return {};
  }
  return wrap(EncodingAttr::getChecked(error, location.getContext(),
                                       ArrayRef(list), dim, *outputs));
}

intptr_t mlirNMSparseEncodingAttrGetNumLevels(MlirAttribute attr) {
  return intptr_t(castTo<EncodingAttr>(attr).getLevels().size());
}

MlirNMSparseLevel mlirNMSparseEncodingAttrGetLevel(MlirAttribute attr,
                                                   intptr_t pos) {
  const SparsityLevel &level = castTo<EncodingAttr>(attr).getLevels()[pos];
  return {level.n, level.m, level.blockK, level.blockN};
}

int64_t mlirNMSparseEncodingAttrGetDim(MlirAttribute attr) {
  return castTo<EncodingAttr>(attr).getDim();
}

MlirNMSparseOrder mlirNMSparseEncodingAttrGetOrder(MlirAttribute attr) {
  return MlirNMSparseOrder(castTo<EncodingAttr>(attr).getOrder());
}

bool mlirNMSparseEncodingAttrIsFree(MlirAttribute attr) {
  return castTo<EncodingAttr>(attr).isFree();
}

double mlirNMSparseEncodingAttrGetDensity(MlirAttribute attr) {
  return castTo<EncodingAttr>(attr).getDensity();
}

MlirAttribute mlirNMSparseEncodingAttrGetDefaultStorage(MlirAttribute attr) {
  return wrap(Attribute(castTo<EncodingAttr>(attr).getDefaultStorage()));
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

bool mlirTypeIsNMSparseEncoded(MlirType type) {
  return getEncoding(unwrap(type)) != nullptr;
}

MlirAttribute mlirNMSparseTypeGetEncoding(MlirType type) {
  return wrap(Attribute(getEncoding(unwrap(type))));
}

MlirType mlirNMSparseTypeStripEncoding(MlirType type) {
  auto tensor = llvm::dyn_cast<RankedTensorType>(unwrap(type));
  return tensor ? wrap(Type(stripEncoding(tensor))) : type;
}

//===----------------------------------------------------------------------===//
// BitmapAttr, RaggedAttr
//===----------------------------------------------------------------------===//

bool mlirAttributeIsANMSparseBitmap(MlirAttribute attr) {
  return llvm::isa_and_nonnull<BitmapAttr>(unwrap(attr));
}

MlirAttribute mlirNMSparseBitmapAttrGet(MlirAttribute encoding,
                                        int64_t density) {
  auto pattern = castTo<EncodingAttr>(encoding);
  MLIRContext *context = pattern.getContext();
  return wrap(
      BitmapAttr::getChecked(errorIn(context), context, pattern, density));
}

MlirAttribute mlirNMSparseBitmapAttrGetEncoding(MlirAttribute attr) {
  return wrap(Attribute(castTo<BitmapAttr>(attr).getEncoding()));
}

int64_t mlirNMSparseBitmapAttrGetDensity(MlirAttribute attr) {
  return castTo<BitmapAttr>(attr).getDensity();
}

bool mlirAttributeIsANMSparseRagged(MlirAttribute attr) {
  return llvm::isa_and_nonnull<RaggedAttr>(unwrap(attr));
}

MlirAttribute mlirNMSparseRaggedAttrGet(MlirAttribute encoding, int64_t rows,
                                        int64_t density) {
  auto pattern = castTo<EncodingAttr>(encoding);
  MLIRContext *context = pattern.getContext();
  return wrap(RaggedAttr::getChecked(errorIn(context), context, pattern, rows,
                                     density));
}

MlirAttribute mlirNMSparseRaggedAttrGetEncoding(MlirAttribute attr) {
  return wrap(Attribute(castTo<RaggedAttr>(attr).getEncoding()));
}

int64_t mlirNMSparseRaggedAttrGetRows(MlirAttribute attr) {
  return castTo<RaggedAttr>(attr).getRows();
}

int64_t mlirNMSparseRaggedAttrGetDensity(MlirAttribute attr) {
  return castTo<RaggedAttr>(attr).getDensity();
}

//===----------------------------------------------------------------------===//
// PackedAttr
//===----------------------------------------------------------------------===//

bool mlirAttributeIsANMSparsePacked(MlirAttribute attr) {
  return llvm::isa_and_nonnull<PackedAttr>(unwrap(attr));
}

MlirAttribute mlirNMSparsePackedAttrGet(MlirAttribute storage, intptr_t rank,
                                        const int64_t *shape,
                                        MlirType elementType) {
  MLIRContext *context = unwrap(storage).getContext();
  auto form = llvm::dyn_cast<WeightStorageInterface>(unwrap(storage));
  if (!form) {
    errorIn(context)() << unwrap(storage)
                       << " does not say how a weight is stored; legal are "
                          "#nm_sparse.encoding, #nm_sparse.bitmap and "
                          "#nm_sparse.ragged";
    return {};
  }
  return wrap(PackedAttr::getChecked(errorIn(context), context, form,
                                     ArrayRef<int64_t>(shape, rank),
                                     unwrap(elementType)));
}

MlirAttribute mlirNMSparsePackedAttrGetStorage(MlirAttribute attr) {
  return wrap(Attribute(castTo<PackedAttr>(attr).getStorage()));
}

MlirType mlirNMSparsePackedAttrGetWeightType(MlirAttribute attr) {
  return wrap(Type(castTo<PackedAttr>(attr).getWeightType()));
}

int64_t mlirNMSparsePackedAttrGetLayoutVersion(MlirAttribute attr) {
  return castTo<PackedAttr>(attr).getLayoutVersion();
}

intptr_t mlirNMSparsePackedAttrGetNumComponents(MlirAttribute attr) {
  return intptr_t(castTo<PackedAttr>(attr).getComponents().size());
}

MlirStringRef mlirNMSparsePackedAttrGetComponentName(MlirAttribute attr,
                                                     intptr_t pos) {
  return wrap(castTo<PackedAttr>(attr).getComponents()[pos].name);
}

MlirType mlirNMSparsePackedAttrGetComponentType(MlirAttribute attr,
                                                intptr_t pos) {
  return wrap(Type(castTo<PackedAttr>(attr).getComponents()[pos].type));
}
