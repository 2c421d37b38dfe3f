//===- PatchLoader.cpp - rows of patches at known places ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A row is a channel and a place in the kernel. Its address is that of the
// lane's pixel and a constant, which an instruction holds. Whether the place
// lies in the image is a condition of the lane for each place in the kernel,
// and none where it always does. What lies outside is not read.
//
//===----------------------------------------------------------------------===//

#include "PatchLoader.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// Channels whose rows are read for one place in the kernel after the other. A
/// place has one condition, of which a GPU holds few; the places of a channel
/// are neighbours, and to be read while they are in L1.
static constexpr int64_t kChannelsTogether = 32;

static Value flatten(OpBuilder &b, Location loc, Value image) {
  auto metadata = memref::ExtractStridedMetadataOp::create(b, loc, image);
  auto from = cast<MemRefType>(image.getType());
  auto type = MemRefType::get(
      {ShapedType::kDynamic}, from.getElementType(),
      StridedLayoutAttr::get(b.getContext(), ShapedType::kDynamic, {1}),
      from.getMemorySpace());
  IndexMath math{b, loc};
  return memref::ReinterpretCastOp::create(
      b, loc, type, metadata.getBaseBuffer(),
      OpFoldResult(metadata.getOffset()),
      ArrayRef<OpFoldResult>{
          math.mul(metadata.getSizes()[0], metadata.getStrides()[0])},
      ArrayRef<OpFoldResult>{b.getIndexAttr(1)});
}

PatchLoader::PatchLoader(OpBuilder &b, TileMatmulOp op,
                         const ThreadLayout &layout)
    : RowLoader(b, op), patches(*op.getPatches()),
      channels(cast<MemRefType>(op.getLhs().getType())
                   .getDimSize(patches.getImageDim('c'))),
      source(b, loc, patches, op.getLhs(), /*firstRow=*/Value(),
             /*firstToken=*/op.getSlice()[1]),
      flat(flatten(b, loc, op.getLhs())) {
  auto image = cast<MemRefType>(op.getLhs().getType());
  isFast = image.hasStaticShape() && image.getNumElements() <= INT32_MAX;
  Value last = math.sub(op.getSlice()[3], 1);
  for (int64_t i = 0; i < layout.accumulator.getRun(TileDim::Tokens); ++i) {
    Value number = math.min(math.add(layout.token, i), last);
    Token token{source.findToken(b, loc, number, isFast), Value()};
    token.place = b.createOrFold<arith::IndexCastOp>(loc, b.getIndexType(),
                                                     token.part.place);
    tokens.push_back(token);
  }
}

SmallVector<int64_t> PatchLoader::getOrder(int64_t rows) const {
  SmallVector<std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t>> keys;
  for (int64_t number : llvm::seq(rows)) {
    PatchesAttr::Row row = patches.getRow(number, channels);
    keys.push_back({row.channel / kChannelsTogether, row.place[0], row.place[1],
                    row.channel, number});
  }
  llvm::sort(keys);
  return llvm::map_to_vector(keys,
                             [](const auto &key) { return std::get<4>(key); });
}

SmallVector<Value> PatchLoader::load(int64_t number) {
  PatchesAttr::Row row = patches.getRow(number, channels);
  auto [found, isNew] =
      inside.try_emplace(std::pair{row.place[0], row.place[1]});
  if (isNew)
    for (const Token &token : tokens)
      found->second.push_back(source.isInside(b, loc, row, token.part, isFast));
  Value place = source.getPlace(b, loc, row);
  SmallVector<Value> activations;
  for (auto [token, exists] : llvm::zip_equal(tokens, found->second))
    activations.push_back(extend(ReadOnlyLoadOp::create(
        b, loc, element, /*once=*/UnitAttr(), flat,
        ValueRange{math.add(token.place, place)}, exists)));
  return activations;
}
