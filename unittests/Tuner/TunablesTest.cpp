//===- TunablesTest.cpp - programs of one product -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TunerTest.h"
#include <set>

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

/// Two layers of one problem, one with another, and one of 8 bits.
const char *const kLayers = R"(
#w = #nm_sparse.encoding<2:4, dim = 1>
#x_map = affine_map<(m, n, k) -> (m, k)>
#w_map = affine_map<(m, n, k) -> (n, k)>
#y_map = affine_map<(m, n, k) -> (m, n)>
func.func @up(%x: tensor<?x256xf16>, %w: tensor<128x256xf16, #w>,
              %y: tensor<?x128xf32>) -> tensor<?x128xf32> {
  %0 = linalg.matmul indexing_maps = [#x_map, #w_map, #y_map]
      ins(%x, %w : tensor<?x256xf16>, tensor<128x256xf16, #w>)
      outs(%y : tensor<?x128xf32>) -> tensor<?x128xf32>
  return %0 : tensor<?x128xf32>
}
func.func @gate(%x: tensor<?x256xf16>, %w: tensor<128x256xf16, #w>,
                %y: tensor<?x128xf32>) -> tensor<?x128xf32> {
  %0 = linalg.matmul indexing_maps = [#x_map, #w_map, #y_map]
      ins(%x, %w : tensor<?x256xf16>, tensor<128x256xf16, #w>)
      outs(%y : tensor<?x128xf32>) -> tensor<?x128xf32>
  %1 = linalg.negf ins(%0 : tensor<?x128xf32>) outs(%y : tensor<?x128xf32>)
      -> tensor<?x128xf32>
  return %1 : tensor<?x128xf32>
}
func.func @bytes(%x: tensor<?x256xi8>, %w: tensor<128x256xi8, #w>,
                 %y: tensor<?x128xi32>) -> tensor<?x128xi32> {
  %0 = linalg.matmul indexing_maps = [#x_map, #w_map, #y_map]
      ins(%x, %w : tensor<?x256xi8>, tensor<128x256xi8, #w>)
      outs(%y : tensor<?x128xi32>) -> tensor<?x128xi32>
  return %0 : tensor<?x128xi32>
}
)";

/// The compiler's objection to the program; empty: none.
std::string add(TunableFinder &finder, StringRef program, StringRef label,
                bool isOfModel = false) {
  TunableSource source = {program.str(), label.str(), isOfModel};
  return finder.add(source).front();
}

TEST(TunablesTest, ProductsOfOneProblemBecomeOne) {
  TunableFinder finder(getH200(), {3, 64});
  ASSERT_EQ(add(finder, kLayers, "model.mlir"), "");
  ASSERT_EQ(finder.getProducts().size(), 2u);
  for (const TunableProduct &product : finder.getProducts()) {
    EXPECT_EQ(product.names,
              (std::vector<std::string>{"model.mlir @up", "model.mlir @gate"}));
    EXPECT_EQ(product.problem.inputs, 256);
    EXPECT_EQ(product.problem.gpu, "h200");
  }
  EXPECT_EQ(finder.getProducts().back().problem.tokens, 64);
  ASSERT_EQ(finder.getSkipped().size(), 2u);
  EXPECT_EQ(finder.getSkipped().front().name,
            "model.mlir @bytes, 256 inputs, 128 outputs, 3 tokens");
  EXPECT_EQ(finder.getSkipped().front().reason,
            "its type is i8: legal are f16, bf16 and f32");
}

TEST(TunablesTest, ProgramsForAnyNumberHaveTheirOwn) {
  TunableFinder finder(getH200(), {});
  StringRef up = StringRef(kLayers).split("func.func @gate").first;
  ASSERT_EQ(add(finder, up, ""), "");
  ASSERT_GT(finder.getProducts().size(), 2u);
  for (const TunableProduct &product : finder.getProducts())
    EXPECT_EQ(product.names, std::vector<std::string>{"@up"});
}

TEST(TunablesTest, NumbersOfTokensMayBeManyAndRepeated) {
  TunableFinder finder(getH200(), {9, 1, 2, 3, 4, 5, 6, 7, 8, 9, 16});
  StringRef up = StringRef(kLayers).split("func.func @gate").first;
  ASSERT_EQ(add(finder, up, ""), "");
  EXPECT_EQ(finder.getProducts().size(), 10u);
  EXPECT_EQ(finder.getProducts().front().problem.tokens, 1);
}

TEST(TunablesTest, ProgramsAreOrderedAndOneFaultKeepsNoOther) {
  TunableFinder finder(getH200(), {16});
  std::vector<TunableSource> sources = {{kLayers, "a", false},
                                        {"func.func @f(", "b", false},
                                        {kLayers, "c", false}};
  std::vector<std::string> faults = finder.add(sources);
  EXPECT_EQ(faults[0] + faults[2], "");
  EXPECT_NE(faults[1], "");
  ASSERT_EQ(finder.getProducts().size(), 1u);
  EXPECT_EQ(finder.getProducts().front().names,
            (std::vector<std::string>{"a @up", "a @gate", "c @up", "c @gate"}));
}

TEST(TunablesTest, LayersOfModelsHaveOneForm) {
  // One token of f32 is read from bitmaps, and many from columns: a program for
  // one alone has the former, a layer the latter.
  const char *const layer = R"(
#w = #nm_sparse.encoding<16:32, dim = 1>
func.func @up(%x: tensor<?x4096xf32>, %w: tensor<4096x4096xf32, #w>,
              %y: tensor<?x4096xf32>) -> tensor<?x4096xf32> {
  %0 = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
                                      affine_map<(m, n, k) -> (n, k)>,
                                      affine_map<(m, n, k) -> (m, n)>]
      ins(%x, %w : tensor<?x4096xf32>, tensor<4096x4096xf32, #w>)
      outs(%y : tensor<?x4096xf32>) -> tensor<?x4096xf32>
  return %0 : tensor<?x4096xf32>
})";
  auto getStorages = [&](bool isOfModel, ArrayRef<int64_t> tokens) {
    TunableFinder finder(getH200(), tokens);
    EXPECT_EQ(add(finder, layer, "", isOfModel), "");
    std::set<std::string> storages;
    for (const TunableProduct &product : finder.getProducts())
      storages.insert(product.problem.storage);
    return storages;
  };
  std::set<std::string> any = getStorages(true, {});
  ASSERT_EQ(any.size(), 1u);
  EXPECT_EQ(getStorages(true, {1}), any);
  EXPECT_NE(getStorages(false, {1}), any);
}

TEST(TunablesTest, ProgramsThatAreNoneAreErrors) {
  TunableFinder finder(getH200(), {1});
  EXPECT_NE(add(finder, "func.func @f(", ""), "");
  EXPECT_TRUE(finder.getProducts().empty());
}

/// However a product reads and writes, some program has its problem.
TEST(TunablesTest, EachProblemHasAProgram) {
  TunedProblem problem = makeProblem(48);
  int count = 0;
  for (StringRef encoding : {"#nm_sparse.encoding<2:4, dim = 1>",
                             "#nm_sparse.encoding<8:32, block = [1, 64]>"})
    for (StringRef type : {"f16", "bf16", "f32"})
      for (int64_t read : {0, 2, 4}) {
        // With the layouts that the compiler chooses for these.
        for (StringRef x : {"token-major", "feature-major"})
          for (StringRef y : {"token-major", "feature-major"}) {
            problem.encoding = encoding.str();
            problem.type = type.str();
            problem.x = x.str();
            problem.y = y.str();
            problem.readBytes = read;
            problem.writtenBytes = type == "f32" ? 4 : 2;
            auto product = makeTunable(problem, getH200());
            if (!product) {
              EXPECT_EQ(llvm::toString(product.takeError()),
                        "no program of one product has its problem");
              continue;
            }
            ++count;
            EXPECT_EQ(toJSON(product->problem), toJSON(problem));
          }
      }
  // Most of 72; the compiler never chooses some layouts for some storages.
  EXPECT_GE(count, 36);
}

TEST(TunablesTest, ProblemsWithoutProgramsSayWhy) {
  auto getReason = [](llvm::function_ref<void(TunedProblem &)> change) {
    TunedProblem problem = makeProblem(16);
    change(problem);
    auto product = makeTunable(problem, getH200());
    return product ? "" : llvm::toString(product.takeError());
  };
  EXPECT_EQ(getReason([](TunedProblem &p) { p.batch = 3; }),
            "it is a batch of 3 products: legal is one");
  EXPECT_EQ(getReason([](TunedProblem &p) { p.patches = "of an image"; }),
            "it is a convolution: legal are products of matrices");
  EXPECT_EQ(getReason([](TunedProblem &p) { p.readBytes = 6; }),
            "6 bytes are read for each element of its result: legal are 2 and "
            "4");
  EXPECT_EQ(getReason([](TunedProblem &p) {
              p.encoding = "#nm_sparse.encoding<free, dim = 1>";
            }),
            "its encoding is free, and times depend on what is kept: legal is "
            "n:m");
  EXPECT_EQ(getReason([](TunedProblem &p) { p.encoding = "2 of 4"; }),
            "this compiler cannot read its encoding, 2 of 4");
}

} // namespace
