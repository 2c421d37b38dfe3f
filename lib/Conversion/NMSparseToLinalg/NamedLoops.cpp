//===- NamedLoops.cpp - reshapes and linalg.generic by letters ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "NamedLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::nm_sparse;

std::string NamedLoops::filter(StringRef letters) const {
  std::string kept;
  llvm::copy_if(letters, std::back_inserter(kept),
                [&](char loop) { return extents.contains(loop); });
  return kept;
}

SmallVector<int64_t> NamedLoops::getShape(StringRef letters) const {
  return llvm::map_to_vector(filter(letters),
                             [&](char loop) { return get(loop); });
}

Value NamedLoops::reshape(Value tensor, ArrayRef<StringRef> dims,
                          bool isSplit) const {
  SmallVector<ReassociationIndices> groups;
  SmallVector<int64_t> apart, together;
  for (StringRef dim : dims) {
    SmallVector<int64_t> shape = getShape(dim);
    if (shape.empty())
      continue;
    int64_t first = apart.size();
    groups.push_back(llvm::to_vector<2>(
        llvm::seq<int64_t>(first, first + int64_t(shape.size()))));
    apart.append(shape);
    together.push_back(llvm::product_of(shape));
  }
  auto type = cast<RankedTensorType>(tensor.getType());
  if (apart.size() == together.size())
    return tensor;
  if (isSplit)
    return tensor::ExpandShapeOp::create(b, loc, type.clone(apart), tensor,
                                         groups);
  return tensor::CollapseShapeOp::create(b, loc, type.clone(together), tensor,
                                         groups);
}

Value NamedLoops::split(Value tensor, ArrayRef<StringRef> dims) const {
  return reshape(tensor, dims, /*isSplit=*/true);
}

Value NamedLoops::join(Value tensor, ArrayRef<StringRef> dims) const {
  return reshape(tensor, dims, /*isSplit=*/false);
}

Value NamedLoops::build(StringRef loops, ArrayRef<Read> reads, StringRef result,
                        Type element, Body body) const {
  std::string letters = filter(loops);
  auto getMap = [&](StringRef dims) {
    SmallVector<AffineExpr> exprs;
    for (char loop : filter(dims))
      exprs.push_back(b.getAffineDimExpr(letters.find(loop)));
    return AffineMap::get(letters.size(), 0, exprs, b.getContext());
  };
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  for (const Read &read : reads) {
    inputs.push_back(read.tensor);
    maps.push_back(getMap(read.letters));
  }
  maps.push_back(getMap(result));
  SmallVector<utils::IteratorType> iterators;
  for (char loop : letters)
    iterators.push_back(result.contains(loop) ? utils::IteratorType::parallel
                                              : utils::IteratorType::reduction);
  Value init = tensor::EmptyOp::create(b, loc, getShape(result), element);
  if (llvm::is_contained(iterators, utils::IteratorType::reduction)) {
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(element));
    init = linalg::FillOp::create(b, loc, zero, init).getResult(0);
  }
  auto generic = linalg::GenericOp::create(
      b, loc, init.getType(), inputs, init, maps, iterators,
      [&](OpBuilder &builder, Location l, ValueRange elements) {
        ImplicitLocOpBuilder inner(l, builder);
        Value yielded = body(inner, elements, [&](char loop) -> Value {
          return linalg::IndexOp::create(inner, letters.find(loop));
        });
        linalg::YieldOp::create(inner, yielded);
      });
  return generic.getResult(0);
}

Value nm_sparse::takeLeading(OpBuilder &b, Location loc, Value tensor,
                             ArrayRef<int64_t> sizes) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (type.getShape() == sizes)
    return tensor;
  SmallVector<OpFoldResult> offsets(sizes.size(), b.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(sizes.size(), b.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(
      b, loc, tensor, offsets, getAsIndexOpFoldResult(b.getContext(), sizes),
      strides);
}

Value nm_sparse::appendZeros(OpBuilder &b, Location loc, Value tensor,
                             int64_t count) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<OpFoldResult> low(type.getRank(), b.getIndexAttr(0)), high = low;
  high[0] = b.getIndexAttr(count);
  SmallVector<int64_t> shape(type.getShape());
  if (!type.isDynamicDim(0))
    shape[0] += count;
  Value zero =
      arith::ConstantOp::create(b, loc, b.getZeroAttr(type.getElementType()));
  return tensor::PadOp::create(b, loc, type.clone(shape), tensor, low, high,
                               zero);
}
