//===- EncodingTest.cpp - levels and components of encodings --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Dialect/NMSparse/Storages/StorageAttrs.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/MLIRContext.h"
#include "nm_sparse/Dialect/NMSparse/Utils/Packing.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

class Encoding : public ::testing::Test {
protected:
  Encoding() { context.loadDialect<NMSparseDialect>(); }

  EncodingAttr get(ArrayRef<SparsityLevel> levels, int64_t dim = 0) {
    return EncodingAttr::get(&context, levels, dim, OutputOrder::Identity);
  }

  MLIRContext context;
};

TEST_F(Encoding, OneLevelIsTheOuterOne) {
  EncodingAttr e =
      EncodingAttr::get(&context, 8, 32, 4, 128, 1, OutputOrder::Identity);
  EXPECT_EQ(e, get({{8, 32, 4, 128}}, 1));
  EXPECT_FALSE(e.hasInnerLevel());
  EXPECT_EQ(e.getWindowRows(), 128);
  EXPECT_EQ(e.getKeptRows(), 32);
  EXPECT_EQ(e.getDensity(), 0.25);
}

TEST_F(Encoding, TwoLevelsAnswerForTheOuterOne) {
  EncodingAttr e = get({{4, 10, 1, 64}, {2, 4, 1, 1}});
  ASSERT_TRUE(e.hasInnerLevel());
  EXPECT_EQ(e.getN(), 4);
  EXPECT_EQ(e.getM(), 10);
  EXPECT_EQ(e.getBlockN(), 64);
  EXPECT_EQ(e.getWindowRows(), 10);
  EXPECT_EQ(e.getInnermost().getKeptRows(), 2);
  EXPECT_EQ(e.getDensity(), 0.2);
  EXPECT_NE(e, get({{4, 10, 1, 64}}));
}

/// The interface describes types as the runtime describes arrays.
TEST_F(Encoding, ComponentsAreThoseOfTheRuntime) {
  const std::pair<EncodingAttr, SmallVector<int64_t>> cases[] = {
      {get({{2, 4, 1, 1}}), {17, 9}},
      {get({{2, 300, 2, 3}}, 2), {5, 9, 1300}},
      {get({{4, 10, 1, 64}, {2, 4, 1, 1}}), {77, 100}},
      {get({{2, 5, 4, 6}, {1, 4, 2, 3}}, 1), {3, 50, 20}},
      {get({{300, 400, 1, 2}, {9, 300, 1, 1}}), {900, 3}}};
  for (const auto &[encoding, shape] : cases) {
    auto weight = RankedTensorType::get(shape, BFloat16Type::get(&context));
    NmsPackSpec spec = getPackSpec(weight, encoding);
    SmallVector<WeightComponent> components = encoding.getComponents(weight);
    ASSERT_EQ(nmsComponentCount(&spec), int64_t(components.size()));
    for (auto [number, component] : llvm::enumerate(components)) {
      NmsComponent want;
      ASSERT_EQ(nmsDescribeComponent(&spec, number, &want), 0);
      EXPECT_EQ(component.name, want.name);
      SmallVector<int64_t> extents = {want.rows, want.columns};
      if (shape.size() == 3)
        extents.insert(extents.begin(), want.batch);
      EXPECT_EQ(component.type.getShape(), ArrayRef(extents));
      EXPECT_EQ(component.type.getElementTypeBitWidth(), 8 * want.elementBytes);
    }
  }
}

/// The compiler allocates what the runtime fills.
TEST_F(Encoding, BitmapsAreThoseOfTheRuntime) {
  const Type elements[] = {Float32Type::get(&context),
                           Float16Type::get(&context),
                           IntegerType::get(&context, 8)};
  for (int64_t m = 1; m <= 64; ++m)
    for (int64_t n = 1; n <= m; n += 1 + m / 8)
      for (int64_t bk : {1, 2, 7})
        for (Type element : elements) {
          auto bitmap = BitmapAttr::get(&context, get({{n, m, bk, 3}}));
          auto weight = RankedTensorType::get({777, 100}, element);
          NmsPackSpec spec = getPackSpec(weight, bitmap.getEncoding());
          NmsBitmapShape want;
          ASSERT_EQ(nmsBitmapShape(&spec, &want), 0);
          BitmapTile tile = bitmap.getTile(element);
          EXPECT_EQ(tile.rows, want.tileRows);
          EXPECT_EQ(tile.values, want.tileValues);
          EXPECT_EQ(tile.words, want.words);
          SmallVector<WeightComponent> components =
              bitmap.getComponents(weight);
          ASSERT_EQ(components.size(), 2u);
          const int64_t values[] = {want.blocks, want.tiles,
                                    want.tileValues * 32};
          const int64_t bits[] = {want.blocks, want.tiles, want.words * 32};
          EXPECT_EQ(components[0].type.getShape(), ArrayRef(values));
          EXPECT_EQ(components[1].type.getShape(), ArrayRef(bits));
        }
}

/// The same for free elements, in pieces of 16 bytes.
TEST_F(Encoding, FreeElementsAreThoseOfTheRuntime) {
  EncodingAttr encoding = get({{0, 0, 1, 1}});
  auto bitmap = cast<BitmapAttr>(encoding.getDefaultStorage());
  EXPECT_EQ(bitmap.getLayoutVersion(), 5);
  EXPECT_EQ(encoding.getLayoutVersion(), 3);
  EXPECT_EQ(bitmap.getExpectedDensity(), 0.5);
  EXPECT_EQ(encoding.getDensity(), 1.0);
  // One output of the first block has five elements, one of the second another.
  auto weight = RankedTensorType::get({300, 40}, Float16Type::get(&context));
  std::vector<uint16_t> dense(300 * 40);
  for (int64_t row : {0, 7, 255, 256, 299})
    dense[row * 40] = 1;
  dense[3 * 40 + 33] = 1;
  NmsPackSpec spec = getPackSpec(weight, encoding);
  // Groups of four are within 32 rows, of which ten hold 300, in five pieces;
  // the second block ends with its first piece.
  ASSERT_EQ(nmsCountFreeBitmap(&spec, dense.data()), (5 + 1) * 32 * 8);
  SmallVector<WeightComponent> components = bitmap.getComponents(weight);
  ASSERT_EQ(components.size(), 2u);
  EXPECT_TRUE(components[0].type.isDynamicDim(0));
  std::vector<uint16_t> values(6 * 32 * 8);
  std::vector<uint32_t> bits(components[1].type.getNumElements());
  ASSERT_EQ(nmsPackFreeBitmap(&spec, dense.data(), values.data(), bits.data()),
            0);
  BitmapTile tile = bitmap.getTile(weight.getElementType());
  // Its first piece, those that all outputs fill, and all, behind two tiles of
  // bits.
  int64_t blockWords = 2 * tile.getBitsWords();
  int64_t header = 2 * tile.words * BitmapTile::kOutputs;
  const uint32_t want[2][4] = {{0, 4, 5, 0}, {5, 1, 1, 0}};
  for (int64_t i = 0; i < 2; ++i)
    EXPECT_TRUE(
        std::equal(want[i], want[i] + 4, &bits[i * blockWords + header]));
}

TEST_F(Encoding, FreeBlocksAreRaggedPanels) {
  EncodingAttr encoding = get({{0, 0, 48, 2}});
  auto ragged = cast<RaggedAttr>(encoding.getDefaultStorage());
  EXPECT_EQ(ragged.getEncoding(), encoding);
  EXPECT_EQ(ragged.getLayoutVersion(), 10);
  // Four parts of 16 rows fill a step.
  EXPECT_EQ(ragged.getRows(), 64);
  EXPECT_EQ(ragged.getBlockRows(), 16);
  auto weight = RankedTensorType::get({300, 5}, Float16Type::get(&context));
  SmallVector<WeightComponent> components = ragged.getComponents(weight);
  ASSERT_EQ(components.size(), 3u);
  EXPECT_TRUE(components[0].type.isDynamicDim(0));
  EXPECT_EQ(components[0].type.getDimSize(1), 2);
  EXPECT_EQ(components[2].type.getShape(), ArrayRef<int64_t>({3, 4}));
  // Half of the 19 rows of parts are expected, one at least.
  EXPECT_EQ(ragged.getTilePattern(300), get({{10, 19, 16, 2}}));
  auto empty = RaggedAttr::get(&context, encoding, 24, /*density=*/0);
  EXPECT_EQ(empty.getBlockRows(), 8);
  EXPECT_EQ(empty.getTilePattern(300), get({{1, 38, 8, 2}}));
}

} // namespace
