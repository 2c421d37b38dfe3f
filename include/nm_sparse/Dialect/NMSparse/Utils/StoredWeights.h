//===- StoredWeights.h - weights and what reads them ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds the origin of a weight, where its form can be changed: arguments of a
// function, constants, or an op that packs.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMSPARSE_UTILS_STOREDWEIGHTS_H
#define NM_SPARSE_DIALECT_NMSPARSE_UTILS_STOREDWEIGHTS_H

#include "nm_sparse/Dialect/NMSparse/Utils/Packing.h"

namespace mlir::nm_sparse {

/// The components of a weight, and the products that read them.
struct StoredWeight {
  SmallVector<Value> components;
  SmallVector<MatmulOp> products;

  /// Makes all products use the components `with`.
  void replaceComponents(ValueRange with) const;

  /// The weight whose components are arguments of a function that nothing in
  /// the module calls, and are used by `products` alone.
  std::optional<PackedAttr> findArguments() const;
  /// Makes these arguments the components of `stored`. Where that has fewer,
  /// the function loses the arguments of the last ones.
  void replaceArguments(PackedAttr stored) const;

  /// The data of all components, where they are constants; else none.
  SmallVector<DenseElementsAttr> findConstants() const;
  /// Replaces the constants by `packed` ones, as replaceComponents().
  void replaceConstants(const PackedConstant &packed) const;

  /// The op that packs the weight when the program runs, for `products` alone;
  /// else null.
  PackOp findPack() const;
  /// Packs into the components of `encoding` stored as `storage` instead, or
  /// into the canonical ones if that is null.
  void replacePack(PackOp pack, EncodingAttr encoding,
                   WeightStorageInterface storage) const;
};

/// The weights of `module`, except free ones.
SmallVector<StoredWeight> collectWeights(ModuleOp module);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_DIALECT_NMSPARSE_UTILS_STOREDWEIGHTS_H
