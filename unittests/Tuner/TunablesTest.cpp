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

/// Two layers of one problem, one with another, and one without a pattern.
const char *const kLayers = R"(
#w = #nm_sparse.encoding<2:4, dim = 1>
#any = #nm_sparse.encoding<free, dim = 1>
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
func.func @some(%x: tensor<?x256xf16>, %w: tensor<128x256xf16, #any>,
                %y: tensor<?x128xf32>) -> tensor<?x128xf32> {
  %0 = linalg.matmul indexing_maps = [#x_map, #w_map, #y_map]
      ins(%x, %w : tensor<?x256xf16>, tensor<128x256xf16, #any>)
      outs(%y : tensor<?x128xf32>) -> tensor<?x128xf32>
  return %0 : tensor<?x128xf32>
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
            "model.mlir @some, 256 inputs, 128 outputs, 3 tokens");
  EXPECT_EQ(finder.getSkipped().front().reason,
            "its encoding is free, and times depend on what is kept: legal is "
            "n:m");
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

/// A layer as those of models, whose sums are multiplied by a scale for each
/// token and one for each output.
std::string writeScaledLayer(StringRef type, StringRef sum) {
  std::string text = R"(
#w = #nm_sparse.encoding<4:16, block = [1, 128], dim = 1>
func.func @up(%x: tensor<?x512xTYPE>, %w: tensor<256x512xTYPE, #w>,
              %xs: tensor<?xf32>, %ws: tensor<256xf32>,
              %out: tensor<?x256xbf16>) -> tensor<?x256xbf16> {
  %zero = arith.constant ZERO : SUM
  %axis = arith.constant 0 : index
  %m = tensor.dim %x, %axis : tensor<?x512xTYPE>
  %empty = tensor.empty(%m) : tensor<?x256xSUM>
  %init = linalg.fill ins(%zero : SUM) outs(%empty : tensor<?x256xSUM>)
      -> tensor<?x256xSUM>
  %sums = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
                                         affine_map<(m, n, k) -> (n, k)>,
                                         affine_map<(m, n, k) -> (m, n)>]
      ins(%x, %w : tensor<?x512xTYPE>, tensor<256x512xTYPE, #w>)
      outs(%init : tensor<?x256xSUM>) -> tensor<?x256xSUM>
  %y = linalg.generic {indexing_maps = [
      affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m)>,
      affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%sums, %xs, %ws : tensor<?x256xSUM>, tensor<?xf32>, tensor<256xf32>)
      outs(%out : tensor<?x256xbf16>) {
  ^bb0(%s: SUM, %of_x: f32, %of_w: f32, %o: bf16):
    %f = NUMBER
    %a = arith.mulf %f, %of_x : f32
    %b = arith.mulf %a, %of_w : f32
    %r = arith.truncf %b : f32 to bf16
    linalg.yield %r : bf16
  } -> tensor<?x256xbf16>
  return %y : tensor<?x256xbf16>
})";
  bool isInteger = sum == "i32";
  for (auto [name, value] :
       {std::pair<StringRef, StringRef>("TYPE", type),
        {"SUM", sum},
        {"ZERO", isInteger ? "0" : "0.0"},
        {"NUMBER", isInteger ? "arith.sitofp %s : i32 to f32"
                             : "arith.mulf %s, %of_x : f32"}})
    for (size_t at; (at = text.find(name)) != std::string::npos;)
      text.replace(at, name.size(), value);
  return text;
}

TEST(TunablesTest, LayersOfEightBitsAreTunedAsModelsHaveThem) {
  for (auto [type, sum, name] :
       {std::tuple("f8E4M3FN", "f32", "e4m3"),
        std::tuple("f8E5M2", "f32", "e5m2"), std::tuple("i8", "i32", "i8")}) {
    TunableFinder finder(getH200(), {1, 64});
    ASSERT_EQ(add(finder, writeScaledLayer(type, sum), "", true), "");
    EXPECT_TRUE(finder.getSkipped().empty());
    ASSERT_EQ(finder.getProducts().size(), 2u);
    for (const TunableProduct &product : finder.getProducts()) {
      const TunedProblem &problem = product.problem;
      EXPECT_EQ(problem.type, name);
      // Vectors of scales are no part of it, and results are.
      EXPECT_EQ(problem.readBytes, 0);
      EXPECT_EQ(problem.writtenBytes, 2);
      EXPECT_EQ(problem.x, "feature-major");
      EXPECT_EQ(problem.storage,
                "#nm_sparse.k_major<" + problem.encoding + ">");
      EXPECT_EQ(product.storage, "k_major");
      EXPECT_NE(product.program.find("xbf16>"), std::string::npos);
    }
  }
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
    for (StringRef type : {"f16", "bf16", "f32", "e4m3", "e5m2", "i8"})
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
            // Elements of 8 bits have no kernels of the canonical form.
            bool isByte = type != "f32" && !type.ends_with("f16");
            problem.storage =
                isByte ? "#nm_sparse.bitmap<" + problem.encoding + ">"
                       : "canonical";
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
  // Most of 144; the compiler never chooses some layouts for some storages.
  EXPECT_GE(count, 72);
}

TEST(TunablesTest, ProblemsWithoutProgramsSayWhy) {
  auto getReason = [](llvm::function_ref<void(TunedProblem &)> change) {
    TunedProblem problem = makeProblem(16);
    change(problem);
    auto product = makeTunable(problem, getH200());
    return product ? "" : llvm::toString(product.takeError());
  };
  EXPECT_EQ(getReason([](TunedProblem &p) { p.type = "tf32"; }),
            "its type is tf32: legal are f32, f16, bf16, e4m3, e5m2 and i8");
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
