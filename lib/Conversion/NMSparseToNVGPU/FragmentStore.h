//===- FragmentStore.h - 16-byte stores of mma fragments --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_CONVERSION_NMSPARSETONVGPU_FRAGMENTSTORE_H
#define NM_SPARSE_LIB_CONVERSION_NMSPARSETONVGPU_FRAGMENTSTORE_H

#include "ThreadLayout.h"

namespace mlir::nm_sparse {

/// True when the elements of a tile, of type `element`, can be stored by
/// storeFragments: 16-bit results of tensor cores whose fragment rows lie along
/// the dimension that is contiguous in memory, in groups of four fragments.
bool canStoreFragments(const ThreadLayout &layout, Type element,
                       bool tokensContiguous);

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

#endif // NM_SPARSE_LIB_CONVERSION_NMSPARSETONVGPU_FRAGMENTSTORE_H
