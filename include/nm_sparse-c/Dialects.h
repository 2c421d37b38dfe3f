//===- Dialects.h - the dialects for C -----------------------------*- C
//-*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Handles of the dialects, and constructors and getters of the attributes that
// a host builds: the sparsity encoding of a weight's type, and how the weight
// is stored. Written on top of MLIR's own C interface (mlir-c/IR.h), unlike
// Compiler.h, which shows no type of MLIR. Link NMSparseCAPIDialects.
//
// A getter may be called only on an attribute for which the matching
// mlirAttributeIsA... returns true.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_C_DIALECTS_H
#define NM_SPARSE_C_DIALECTS_H

#include "mlir-c/IR.h"

#ifdef __cplusplus
extern "C" {
#endif

MLIR_DECLARE_CAPI_DIALECT_REGISTRATION(NMSparse, nm_sparse);
MLIR_DECLARE_CAPI_DIALECT_REGISTRATION(NMTile, nm_tile);

//===----------------------------------------------------------------------===//
// #nm_sparse.encoding
//===----------------------------------------------------------------------===//

/// At most n of every m consecutive blocks along the contraction are kept, in
/// each panel of blockN outputs. n = m = 0 is a `free` distribution, which
/// names no numbers.
typedef struct MlirNMSparseLevel {
  int64_t n, m;
  int64_t blockK, blockN;
} MlirNMSparseLevel;

/// Which outputs share a panel.
typedef enum MlirNMSparseOrder {
  MlirNMSparseOrderIdentity = 0,
  MlirNMSparseOrderShuffled = 1
} MlirNMSparseOrder;

MLIR_CAPI_EXPORTED bool mlirAttributeIsANMSparseEncoding(MlirAttribute attr);

MLIR_CAPI_EXPORTED MlirTypeID mlirNMSparseEncodingAttrGetTypeID(void);

/// The encoding with one or two levels, the outer one first. `dim` is the
/// contraction dimension of the weight. Emits a diagnostic and returns a null
/// attribute if the encoding is illegal.
MLIR_CAPI_EXPORTED MlirAttribute mlirNMSparseEncodingAttrGet(
    MlirContext ctx, intptr_t numLevels, const MlirNMSparseLevel *levels,
    int64_t dim, MlirNMSparseOrder order);

/// The same, with diagnostics at `loc`.
MLIR_CAPI_EXPORTED MlirAttribute mlirNMSparseEncodingAttrGetChecked(
    MlirLocation loc, intptr_t numLevels, const MlirNMSparseLevel *levels,
    int64_t dim, MlirNMSparseOrder order);

MLIR_CAPI_EXPORTED intptr_t
mlirNMSparseEncodingAttrGetNumLevels(MlirAttribute attr);

/// Level `pos`, counted from the outer one. `pos` must be less than the number
/// of levels.
MLIR_CAPI_EXPORTED MlirNMSparseLevel
mlirNMSparseEncodingAttrGetLevel(MlirAttribute attr, intptr_t pos);

MLIR_CAPI_EXPORTED int64_t mlirNMSparseEncodingAttrGetDim(MlirAttribute attr);

MLIR_CAPI_EXPORTED MlirNMSparseOrder
mlirNMSparseEncodingAttrGetOrder(MlirAttribute attr);

/// Returns true if the outer level is `free`.
MLIR_CAPI_EXPORTED bool mlirNMSparseEncodingAttrIsFree(MlirAttribute attr);

/// The share of the elements that may be nonzero, from 0 to 1; 1 for `free`.
MLIR_CAPI_EXPORTED double
mlirNMSparseEncodingAttrGetDensity(MlirAttribute attr);

/// The default storage of a weight: the canonical form, which the encoding
/// itself stands for, or that of a `free` weight.
MLIR_CAPI_EXPORTED MlirAttribute
mlirNMSparseEncodingAttrGetDefaultStorage(MlirAttribute attr);

//===----------------------------------------------------------------------===//
// Types with an encoding
//===----------------------------------------------------------------------===//

/// Returns true if `type` is a ranked tensor with an #nm_sparse.encoding.
MLIR_CAPI_EXPORTED bool mlirTypeIsNMSparseEncoded(MlirType type);

/// The #nm_sparse.encoding of `type`, or a null attribute.
MLIR_CAPI_EXPORTED MlirAttribute mlirNMSparseTypeGetEncoding(MlirType type);

/// `type` without its #nm_sparse.encoding; a type without one as it is.
MLIR_CAPI_EXPORTED MlirType mlirNMSparseTypeStripEncoding(MlirType type);

//===----------------------------------------------------------------------===//
// #nm_sparse.bitmap, #nm_sparse.ragged
//===----------------------------------------------------------------------===//

MLIR_CAPI_EXPORTED bool mlirAttributeIsANMSparseBitmap(MlirAttribute attr);

/// `density`: the percentage of a `free` weight's elements expected to be kept.
/// Emits a diagnostic and returns a null attribute if it is illegal.
MLIR_CAPI_EXPORTED MlirAttribute
mlirNMSparseBitmapAttrGet(MlirAttribute encoding, int64_t density);

MLIR_CAPI_EXPORTED MlirAttribute
mlirNMSparseBitmapAttrGetEncoding(MlirAttribute attr);

MLIR_CAPI_EXPORTED int64_t mlirNMSparseBitmapAttrGetDensity(MlirAttribute attr);

MLIR_CAPI_EXPORTED bool mlirAttributeIsANMSparseRagged(MlirAttribute attr);

/// `rows`: each panel is filled up to a multiple of that many rows. Emits a
/// diagnostic and returns a null attribute if it is illegal.
MLIR_CAPI_EXPORTED MlirAttribute mlirNMSparseRaggedAttrGet(
    MlirAttribute encoding, int64_t rows, int64_t density);

MLIR_CAPI_EXPORTED MlirAttribute
mlirNMSparseRaggedAttrGetEncoding(MlirAttribute attr);

MLIR_CAPI_EXPORTED int64_t mlirNMSparseRaggedAttrGetRows(MlirAttribute attr);

MLIR_CAPI_EXPORTED int64_t mlirNMSparseRaggedAttrGetDensity(MlirAttribute attr);

//===----------------------------------------------------------------------===//
// #nm_sparse.packed
//===----------------------------------------------------------------------===//

MLIR_CAPI_EXPORTED bool mlirAttributeIsANMSparsePacked(MlirAttribute attr);

/// A dense weight of that shape and element type, stored as `storage` says: an
/// encoding, a bitmap or a ragged attribute. Emits a diagnostic and returns a
/// null attribute if the combination is illegal.
MLIR_CAPI_EXPORTED MlirAttribute
mlirNMSparsePackedAttrGet(MlirAttribute storage, intptr_t rank,
                          const int64_t *shape, MlirType elementType);

MLIR_CAPI_EXPORTED MlirAttribute
mlirNMSparsePackedAttrGetStorage(MlirAttribute attr);

/// The dense weight's type, without an encoding.
MLIR_CAPI_EXPORTED MlirType
mlirNMSparsePackedAttrGetWeightType(MlirAttribute attr);

/// The version of docs/Encoding.md that specifies the components.
MLIR_CAPI_EXPORTED int64_t
mlirNMSparsePackedAttrGetLayoutVersion(MlirAttribute attr);

/// The number of plain tensors that hold the weight.
MLIR_CAPI_EXPORTED intptr_t
mlirNMSparsePackedAttrGetNumComponents(MlirAttribute attr);

/// Name and type of component `pos`, in the order in which operations and
/// functions take them. The name lives as long as the library.
MLIR_CAPI_EXPORTED MlirStringRef
mlirNMSparsePackedAttrGetComponentName(MlirAttribute attr, intptr_t pos);
MLIR_CAPI_EXPORTED MlirType
mlirNMSparsePackedAttrGetComponentType(MlirAttribute attr, intptr_t pos);

#ifdef __cplusplus
}
#endif

#endif // NM_SPARSE_C_DIALECTS_H
