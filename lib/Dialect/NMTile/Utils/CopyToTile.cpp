//===- CopyToTile.cpp - tiles of workgroup memory -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMTile/Utils/CopyToTile.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::nm_sparse;

Value nm_sparse::allocTile(OpBuilder &b, Location loc, ArrayRef<int64_t> shape,
                           Type element) {
  auto type = RankedTensorType::get(shape, element);
  auto alloc = bufferization::AllocTensorOp::create(b, loc, type, ValueRange{});
  alloc.setMemorySpaceAttr(gpu::AddressSpaceAttr::get(
      b.getContext(), gpu::GPUDialect::getWorkgroupAddressSpace()));
  return alloc;
}

ArrayAttr nm_sparse::getTileMaps(OpBuilder &b, unsigned srcFirst,
                                 unsigned dstFirst) {
  if (srcFirst == 0 && dstFirst == 0)
    return {};
  auto getMap = [&](unsigned first) {
    return AffineMap::getPermutationMap(ArrayRef<unsigned>{first, 1 - first},
                                        b.getContext());
  };
  return b.getAffineMapArrayAttr({getMap(srcFirst), getMap(dstFirst)});
}

Value nm_sparse::dropBatch(OpBuilder &b, Location loc, Value source,
                           std::optional<int64_t> dim) {
  if (!dim)
    return source;
  auto type = cast<RankedTensorType>(source.getType());
  SmallVector<OpFoldResult> offsets(type.getRank(), b.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(type.getRank(), b.getIndexAttr(1));
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, source);
  SmallVector<int64_t> shape(type.getShape());
  shape.erase(shape.begin() + *dim);
  return tensor::ExtractSliceOp::create(
      b, loc, RankedTensorType::get(shape, type.getElementType()), source,
      offsets, sizes, strides);
}

Value nm_sparse::copyToTile(OpBuilder &b, Location loc, Value source,
                            ArrayRef<int64_t> shape, bool transposed,
                            PatchesAttr patches, ValueRange slice) {
  Value tile = allocTile(b, loc, shape, getElementTypeOrSelf(source));
  return AsyncCopyOp::create(b, loc, tile.getType(), source, tile,
                             getTileMaps(b, /*srcFirst=*/transposed,
                                         /*dstFirst=*/0),
                             /*rows_of=*/EncodingAttr(),
                             /*threads=*/DenseI64ArrayAttr(), patches, slice)
      .getResult();
}
