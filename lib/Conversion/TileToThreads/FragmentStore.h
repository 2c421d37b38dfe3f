//===- FragmentStore.h - stores of tensor cores' results --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_CONVERSION_TILETOTHREADS_FRAGMENTSTORE_H
#define NM_SPARSE_LIB_CONVERSION_TILETOTHREADS_FRAGMENTSTORE_H

#include "TileAccess.h"

namespace mlir::nm_sparse {

/// How the elements of a tile are stored, or its pairs at an edge.
enum class StoreForm {
  /// Runs of each thread, as it has them.
  Runs,
  /// By storeFragments: 16-bit results of tensor cores whose fragment rows lie
  /// along the dimension that is contiguous in memory, in groups of four.
  Fragments,
  /// By TransposedAccess: 16-bit results of tensor cores whose fragment columns
  /// lie
  /// along the dimension that is contiguous in memory.
  Transposed
};
StoreForm getStoreForm(TileAccess &access);

/// Returns true if a read of a tile that exists as a whole goes the way of a
/// transposed store, with pairs of neighbours.
bool readsTransposed(TileAccess &access);

/// Elements that such a read, or one of runs, has side by side.
int64_t getReadWidth(TileAccess &access);

/// Elements that each store has side by side.
int64_t getStoreWidth(TileAccess &access);

/// Rearranges `count` scalars of a tile from `begin` on, whole groups of four
/// fragments, among the four lanes of each fragment row
/// and calls `store` with each vector of 8 elements, the offset of its fragment
/// group from the thread's base, and the number of elements to add to the
/// contiguous coordinate.
void storeFragments(
    OpBuilder &b, Location loc, const ThreadLayout &layout, ValueRange scalars,
    int64_t begin, int64_t count,
    function_ref<void(Value vector, TileOffset offset, Value shift)> store);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_CONVERSION_TILETOTHREADS_FRAGMENTSTORE_H
