//===- ValueBoundsTest.cpp - sizes of results, ranges of loops ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The answers of upstream's analysis on the sizes of results, and those of the
// product on its loops and tiles. `probe` marks the value in question.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Affine/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"
#include "mlir/Parser/Parser.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "nm_sparse/Dialect/NMSparse/IR/ValueBoundsOpInterfaceImpl.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::nm_sparse;
using presburger::BoundType;

namespace {

class ValueBounds : public ::testing::Test {
protected:
  ValueBounds() {
    DialectRegistry registry;
    registry.insert<NMSparseDialect, affine::AffineDialect, func::FuncDialect,
                    tensor::TensorDialect>();
    affine::registerValueBoundsOpInterfaceExternalModels(registry);
    tensor::registerValueBoundsOpInterfaceExternalModels(registry);
    registerValueBoundsOpInterfaceExternalModels(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  /// The operation that has the attribute `probe` in the program.
  Operation *parse(StringRef program) {
    module = parseSourceString<ModuleOp>(program, &context);
    if (!module)
      return nullptr;
    Operation *found = nullptr;
    module->walk([&](Operation *op) {
      if (op->hasAttr("probe"))
        found = op;
    });
    return found;
  }

  /// The largest size that dimension `dim` of a result can have.
  static FailureOr<int64_t> getLargest(Operation *op, int64_t dim,
                                       unsigned result = 0) {
    return ValueBoundsConstraintSet::computeConstantBound(
        BoundType::UB, {op->getResult(result), dim}, /*stopCondition=*/nullptr,
        /*closedUB=*/true);
  }

  /// Returns true if a dimension of the result has the size of an argument's.
  static bool isSizeOf(Operation *op, int64_t dim, unsigned argument,
                       int64_t argumentDim) {
    Value source = op->getParentOfType<func::FuncOp>().getArgument(argument);
    FailureOr<bool> equal = ValueBoundsConstraintSet::areEqual(
        {op->getResult(0), dim}, {source, argumentDim});
    return succeeded(equal) && *equal;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

constexpr char matmul[] = R"mlir(
  #w = #nm_sparse.encoding<2:4>
  func.func @f(%x: tensor<64x?xf32>, %v: tensor<32x32xf32>,
               %i: tensor<32x32xi8>, %init: tensor<?x32xf32>,
               %other: tensor<?x?xf32>) -> tensor<?x32xf32> {
    %y = nm_sparse.matmul #w
      indexing_maps = [affine_map<(m, n, k) -> (k, m)>,
                       affine_map<(m, n, k) -> (k, n)>,
                       affine_map<(m, n, k) -> (m, n)>]
      ins(%x, %v, %i : tensor<64x?xf32>, tensor<32x32xf32>, tensor<32x32xi8>)
      outs(%init : tensor<?x32xf32>) {probe} -> tensor<?x32xf32>
    return %y : tensor<?x32xf32>
  })mlir";

TEST_F(ValueBounds, ProductHasTheSizesOfInitAndTheTokensOfX) {
  Operation *op = parse(matmul);
  ASSERT_TRUE(op);
  EXPECT_TRUE(isSizeOf(op, 0, /*argument=*/3, 0));
  EXPECT_TRUE(isSizeOf(op, 0, /*argument=*/0, 1));
  EXPECT_FALSE(isSizeOf(op, 0, /*argument=*/4, 0));
}

TEST_F(ValueBounds, PermutationHasTheSizesOfItsSource) {
  Operation *op = parse(R"mlir(
    func.func @f(%y: tensor<?x?xf32>, %perm: tensor<?xi32>) {
      %r = nm_sparse.permute %y, %perm dim = 1 {probe}
        : tensor<?x?xf32>, tensor<?xi32>
      return
    })mlir");
  ASSERT_TRUE(op);
  EXPECT_TRUE(isSizeOf(op, 0, /*argument=*/0, 0));
  EXPECT_TRUE(isSizeOf(op, 1, /*argument=*/0, 1));
  EXPECT_FALSE(isSizeOf(op, 1, /*argument=*/0, 0));
}

// A batch of at most 5 images.
constexpr char images[] = R"mlir(
  func.func @f(%all: tensor<64x56x56x5xf16>, %other: index) {
    %size = affine.min affine_map<()[s] -> (s, 5)>()[%other]
    %image = tensor.extract_slice %all[0, 0, 0, 0] [64, 56, 56, %size]
      [1, 1, 1, 1] : tensor<64x56x56x5xf16> to tensor<64x56x56x?xf16>
    %x = nm_sparse.patches <kernel = [3, 3], low = [1, 1], high = [1, 1]>
      %image {probe} : tensor<64x56x56x?xf16> -> tensor<576x?xf16>
    return
  })mlir";

TEST_F(ValueBounds, PatchesHaveATokenForEachPixelOfEachImage) {
  Operation *op = parse(images);
  ASSERT_TRUE(op);
  FailureOr<int64_t> rows = getLargest(op, 0), tokens = getLargest(op, 1);
  ASSERT_TRUE(succeeded(rows) && succeeded(tokens));
  EXPECT_EQ(*rows, 576);
  EXPECT_EQ(*tokens, 5 * 56 * 56);
}

TEST_F(ValueBounds, PatchesOfBatchedImagesKeepTheBatch) {
  Operation *op = parse(R"mlir(
    func.func @f(%image: tensor<?x64x56x56xf16>) {
      %x = nm_sparse.patches <kernel = [3, 3], low = [1, 1], high = [1, 1],
        image = "bchw"> %image {probe}
        : tensor<?x64x56x56xf16> -> tensor<?x576x3136xf16>
      return
    })mlir");
  ASSERT_TRUE(op);
  EXPECT_TRUE(isSizeOf(op, 0, /*argument=*/0, 0));
}

TEST_F(ValueBounds, RaggedPanelsHaveAtMostAllRows) {
  // K = 70 is two steps of 64 rows; 3 panels, in each of 2 batch entries. A
  // part of a block of 4 rows has one position.
  Operation *op = parse(R"mlir(
    func.func @f(%w: tensor<2x70x300xf16>) {
      %v, %i, %p = nm_sparse.pack
        #nm_sparse.encoding<free, block = [4, 128], dim = 1> %w {probe}
        : tensor<2x70x300xf16>
        to tensor<?x128xf16>, tensor<?x1xi32>, tensor<2x3x4xi32>
      return
    })mlir");
  ASSERT_TRUE(op);
  FailureOr<int64_t> values = getLargest(op, 0, /*result=*/0),
                     index = getLargest(op, 0, /*result=*/1),
                     outputs = getLargest(op, 1, /*result=*/0);
  ASSERT_TRUE(succeeded(values) && succeeded(index) && succeeded(outputs));
  EXPECT_EQ(*values, 2 * 3 * 128);
  EXPECT_EQ(*index, 2 * 3 * 128 / 4);
  EXPECT_EQ(*outputs, 128);
}

TEST_F(ValueBounds, ValuesOfFreeElementsHaveNone) {
  Operation *op = parse(R"mlir(
    func.func @f(%w: tensor<256x32xf16>) {
      %v, %b = nm_sparse.pack #nm_sparse.encoding<free> %w {probe}
        : tensor<256x32xf16> to tensor<?xf16>, tensor<1x1x296xi32>
      return
    })mlir");
  ASSERT_TRUE(op);
  EXPECT_TRUE(failed(getLargest(op, 0)));
}

TEST_F(ValueBounds, LoopsOfTheProductAreTokensOutputsAndRows) {
  auto op = cast<IndexingMapOpInterface>(parse(matmul));
  EXPECT_EQ(op.getStaticLoopRanges(),
            (SmallVector<int64_t>{ShapedType::kDynamic, 32, 64}));
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  ASSERT_EQ(maps.size(), 3u);
  EXPECT_EQ(op.getMatchingIndexingMap(&op->getOpOperand(0)), maps[0]);
  EXPECT_EQ(op.getMatchingIndexingMap(&op->getOpOperand(3)), maps[2]);
  // Components are not what the weight's map indexes.
  for (unsigned component : {1u, 2u}) {
    OpOperand &operand = op->getOpOperand(component);
    AffineMap map = op.getMatchingIndexingMap(&operand);
    ASSERT_TRUE(map);
    EXPECT_EQ(map.getNumDims(), 3u);
    EXPECT_EQ(map.getNumResults(), 0u);
    EXPECT_EQ(op.getStaticOperandShape(&operand),
              (SmallVector<int64_t>{32, 32}));
  }
  // From (k, m), (k, n), (m, n) to (m, n, k).
  AffineMap toLoops = op.getShapesToLoopsMap();
  ASSERT_TRUE(toLoops);
  EXPECT_EQ(toLoops.compose({64, 8, 64, 32, 8, 32}),
            (SmallVector<int64_t>{8, 32, 64}));
}

TEST_F(ValueBounds, TilesOfOperandsAreWholeWindows) {
  auto op = cast<TilingInterface>(parse(matmul));
  Builder b(&context);
  using Entries = SmallVector<OpFoldResult>;
  auto entries = [&](int64_t first, int64_t second) {
    return Entries{b.getIndexAttr(first), b.getIndexAttr(second)};
  };
  auto isTile = [&](unsigned operand, int64_t row, int64_t rows) {
    Entries offsets = entries(row, 0), sizes = entries(rows, 8);
    return op.isOpFusableWithProducerSlices(operand, offsets, sizes);
  };
  // A window has 4 rows of x and 2 of values.
  EXPECT_TRUE(isTile(0, 4, 8));
  EXPECT_TRUE(isTile(0, 60, 4));
  EXPECT_FALSE(isTile(0, 2, 8));
  EXPECT_FALSE(isTile(0, 4, 6));
  EXPECT_TRUE(isTile(1, 2, 4));
  EXPECT_FALSE(isTile(1, 1, 4));
  // x and init must have the same tokens.
  auto agree = [&](int64_t tokenOfInit) {
    Entries offsets[] = {entries(0, 8), entries(tokenOfInit, 0)};
    Entries sizes[] = {entries(64, 8), entries(8, 32)};
    return op.isOpFusableWithProducerSlices({0, 3}, offsets, sizes);
  };
  EXPECT_TRUE(agree(8));
  EXPECT_FALSE(agree(0));
}

} // namespace
