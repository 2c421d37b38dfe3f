//===- StorageChoice.h - canonical form or bitmaps --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_STORAGE_STORAGECHOICE_H
#define NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_STORAGE_STORAGECHOICE_H

#include "nm_sparse/Chip/Chip.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"

namespace mlir::nm_sparse {

/// The storage whose values lie along the contraction.
constexpr llvm::StringLiteral kKMajorStorage = "k_major";

/// The criteria for the storage of a weight.
struct StorageChoice {
  StringRef storage; ///< auto, canonical, or the name of a form
  const Chip *chip;  ///< Null when it is not known.
  int64_t tokens;    ///< The most, where theirs is dynamic; 0: not known.
};

/// Returns true if `op` is best compiled for bitmaps of its weight, were that
/// of `encoding`, an n:m one.
bool prefersBitmaps(MatmulOp op, EncodingAttr encoding,
                    const StorageChoice &choice);

/// Returns true if `op` is best compiled for values of its weight that lie
/// along the contraction, were that of `encoding`, with as many tokens as
/// `hasManyTokens` asks for.
bool prefersKMajor(MatmulOp op, EncodingAttr encoding,
                   const StorageChoice &choice);

/// Returns true if `op` has so many tokens that a transposition of these pays.
bool hasManyTokens(MatmulOp op, const StorageChoice &choice);

/// Returns true if the weight of `op` is best stored in the form of `choice`,
/// which are bitmaps for `auto`.
bool prefersStorage(MatmulOp op, EncodingAttr encoding,
                    const StorageChoice &choice);

/// That form of a weight of `encoding`; null where this build has none.
WeightStorageInterface getStorage(const StorageChoice &choice,
                                  EncodingAttr encoding);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_DIALECT_NMTILE_TRANSFORMS_STORAGE_STORAGECHOICE_H
