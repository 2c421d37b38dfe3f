//===- Support.cpp - the support table ------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tables cannot go stale: each of their cells is one small compilation, or,
// of the kernels, the stages up to the choice of schedules.
//
//===----------------------------------------------------------------------===//

#include "Explain.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "nm_sparse/Pipelines/Pipelines.h"
#include "nm_sparse/Pipelines/Run.h"
#include "nm_sparse/Support/ReadModule.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

struct Row {
  const char *name;
  const char *encoding;
};

constexpr Row encodings[] = {
    {"element-wise `2:4`", "2:4"},
    {"vector-wise `8:32, block = [1, 4]`", "8:32, block = [1, 4]"},
    {"vector-wise `8:32, block = [1, 32]`", "8:32, block = [1, 32]"},
    {"vector-wise `4:16, block = [1, 128]`", "4:16, block = [1, 128]"},
    {"block-wise `2:4, block = [4, 4]`", "2:4, block = [4, 4]"},
    {"block-wise `2:4, block = [16, 128]`", "2:4, block = [16, 128]"},
    {"V:N:M `[4:8, block = [1, 64]], [2:4]`", "[4:8, block = [1, 64]], [2:4]"},
    {"dense pattern `4:4`", "4:4"},
    {"element-wise `free`", "free"},
    {"ragged `free, block = [1, 32]`", "free, block = [1, 32]"},
    {"shuffled `2:4, order = shuffled`", "2:4, order = shuffled"},
};

/// Layouts, as the indexing maps of activations, weight and result.
struct Layout {
  const char *name;
  const char *x, *w, *y; ///< Shapes.
  const char *dim;
  const char *maps;
};

constexpr Layout layouts[] = {
    {"token-major `x W`", "?x256", "256x128", "?x128", "0",
     "affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, "
     "affine_map<(m, n, k) -> (m, n)>"},
    {"token-major `x W^T`", "?x256", "128x256", "?x128", "1",
     "affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, "
     "affine_map<(m, n, k) -> (m, n)>"},
    {"feature-major `x^T W`, result `y^T`", "256x?", "256x128", "128x?", "0",
     "affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, "
     "affine_map<(m, n, k) -> (n, m)>"},
};

/// A layer of a model, for the kernels that it gets.
constexpr Layout layer = {
    "token-major `x W`",
    "?x4096",
    "4096x4096",
    "?x4096",
    "0",
    "affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, "
    "affine_map<(m, n, k) -> (m, n)>"};

constexpr const char *types[][2] = {{"f32", "f32"},
                                    {"f16", "f32"},
                                    {"bf16", "f32"},
                                    {"f8E4M3FN", "f32"},
                                    {"i8", "i32"}};

} // namespace

/// One product, of operands and a result of these types.
static std::string makeProduct(const Layout &layout, const char *encoding,
                               const char *operand, const char *result) {
  StringRef dim = layout.dim;
  std::string weight =
      llvm::formatv("tensor<{0}x{1}, #nm_sparse.encoding<{2}{3}>>", layout.w,
                    operand, encoding, dim == "0" ? "" : ", dim = 1");
  std::string x = llvm::formatv("tensor<{0}x{1}>", layout.x, operand);
  std::string y = llvm::formatv("tensor<{0}x{1}>", layout.y, result);
  std::string extend = StringRef(operand) == result ? ""
                       : StringRef(operand) == "i8"
                           ? "%xe = arith.extsi %x : i8 to i32\n"
                             "%we = arith.extsi %w : i8 to i32\n"
                           : llvm::formatv("%xe = arith.extf %x : {0} "
                                           "to f32\n%we = arith.extf "
                                           "%w : {0} to f32\n",
                                           operand)
                                 .str();
  bool integer = StringRef(result) == "i32";
  return llvm::formatv(
      R"(func.func @f(%a: {0}, %b: {1}, %c: {2}) -> {2} {{
  %r = linalg.generic {{indexing_maps = [{3}],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : {0}, {1}) outs(%c : {2}) {{
  ^bb0(%x: {4}, %w: {4}, %y: {5}):
    {6}%p = arith.mul{7} %x{8}, %w{8} : {5}
    %s = arith.add{7} %y, %p : {5}
    linalg.yield %s : {5}
  } -> {2}
  return %r : {2}
}
)",
      x, weight, y, layout.maps, operand, result, extend, integer ? "i" : "f",
      extend.empty() ? "" : "e");
}

/// Empty when the combination compiles, else the reason.
static std::string tryCompile(MLIRContext &context, const Layout &layout,
                              const char *encoding, const char *operand,
                              const char *result) {
  auto module = parseModule(
      context, makeProduct(layout, encoding, operand, result), "support.mlir");
  if (!module)
    return llvm::toString(module.takeError());
  // That one set of kernels for all token counts compiles is answer enough.
  GPUPipelineOptions options;
  options.maxKernels = 1;
  if (llvm::Error error = runStages(**module, options))
    return llvm::toString(std::move(error));
  auto ptx = translateToPTX(**module);
  if (!ptx)
    return llvm::toString(ptx.takeError());
  return ptx->empty() ? "no kernel was made" : "";
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// The only product of `function`, and of the copy of it that a case of
/// `choice` calls.
static MatmulOp findProduct(func::FuncOp function) {
  MatmulOp product;
  function.walk([&](MatmulOp op) { product = op; });
  return product;
}
static MatmulOp findProduct(scf::IndexSwitchOp choice, int64_t number) {
  const auto *place = llvm::find(choice.getCases(), number);
  Region &region =
      place == choice.getCases().end()
          ? choice.getDefaultRegion()
          : choice.getCaseRegions()[place - choice.getCases().begin()];
  auto call = cast<func::CallOp>(region.front().front());
  auto module = choice->getParentOfType<ModuleOp>();
  return findProduct(module.lookupSymbol<func::FuncOp>(call.getCallee()));
}

/// The products of `function`: "dot to 8 tokens, then wgmma_expand".
static std::string describeProducts(func::FuncOp function) {
  auto getName = [](MatmulOp op) {
    return getSchedule(op).getProduct().getProductName();
  };
  TokenClassOp number;
  function.walk([&](TokenClassOp op) { number = op; });
  if (!number)
    return getName(findProduct(function)).str();
  auto choice = cast<scf::IndexSwitchOp>(*number->user_begin());
  std::string text;
  StringRef previous;
  for (auto [i, copy] : llvm::enumerate(number.getClasses())) {
    StringRef name = getName(findProduct(choice, copy));
    if (i != 0 && name != previous) {
      int64_t last = number.getLast()[i - 1];
      text += last == 1 ? std::string(" for one token, then ")
                        : llvm::formatv(" to {0} tokens, then ", last).str();
    }
    if (name != previous)
      text += name;
    previous = name;
  }
  return text;
}

/// A product whose weight is a constant of 10 % kept elements.
static std::string makeConstantProduct(const char *type) {
  constexpr int64_t size = 256, kept = 10;
  std::string rows;
  for (int64_t row = 0; row < size; ++row) {
    rows += row == 0 ? "[" : ", [";
    for (int64_t output = 0; output < size; ++output)
      rows += llvm::formatv("{0}{1}", output == 0 ? "" : ", ",
                            (row * 7 + output * 3) % kept == 0 ? "1.5" : "0.0");
    rows += "]";
  }
  return llvm::formatv(
      R"(func.func @f(%a: tensor<{0}x?x{1}>, %c: tensor<{0}x?xf32>) -> tensor<{0}x?xf32> {{
  %w = arith.constant dense<[{2}]> : tensor<{0}x{0}x{1}, #nm_sparse.encoding<free>>
  %r = linalg.matmul indexing_maps = [{3}]
    ins(%a, %w : tensor<{0}x?x{1}>, tensor<{0}x{0}x{1}, #nm_sparse.encoding<free>>)
    outs(%c : tensor<{0}x?xf32>) -> tensor<{0}x?xf32>
  return %r : tensor<{0}x?xf32>
}
)",
      size, type, rows, layouts[2].maps);
}

/// How the weight of the product in `text` is stored, and what multiplies it,
/// as cells of a table; empty where there is no kernel.
static std::string describeKernels(MLIRContext &context,
                                   const std::string &text) {
  auto module = parseModule(context, text, "support.mlir");
  GPUPipelineOptions options;
  options.specializeConstants = true;
  llvm::Error error =
      module ? runStages(**module, options, "schedule") : module.takeError();
  if (error) {
    consumeError(std::move(error));
    return "";
  }
  MatmulOp any;
  (*module)->walk([&](MatmulOp op) { any = op; });
  std::string products =
      describeProducts((*module)->lookupSymbol<func::FuncOp>("f"));
  WeightStorageInterface form = any.getStorageAttr();
  StringRef storage = form ? form.getFormName() : "canonical";
  if (getSchedule(any).getOperandTiles().isInCode())
    storage = "code";
  return llvm::formatv(" {0} | {1} |", storage, products);
}

/// A line for the types that get the same kernels for what `makeText` makes of
/// them.
static void
printKernels(MLIRContext &context, llvm::raw_ostream &os, StringRef name,
             function_ref<std::string(const char *const *)> makeText) {
  llvm::MapVector<std::string, SmallVector<StringRef>,
                  std::map<std::string, unsigned>>
      lines;
  for (auto &type : types)
    if (std::string text = makeText(type); !text.empty())
      lines[describeKernels(context, text)].push_back(type[0]);
  for (auto &[cells, names] : lines)
    if (!cells.empty())
      os << "| " << name << " | " << llvm::join(names, ", ") << " |" << cells
         << "\n";
}

static void printKernelTable(MLIRContext &context, llvm::raw_ostream &os) {
  os << "| a layer of 4096 x 4096, on " << kDefaultChip
     << " | types | storage | products |\n|---|---|---|---|\n";
  for (const Row &row : encodings)
    printKernels(context, os, row.name, [&](const char *const *type) {
      return makeProduct(layer, row.encoding, type[0], type[1]);
    });
  printKernels(context, os,
               "`free`, a constant of 256 x 256 that keeps 10 %, "
               "feature-major, with `--specialize-constants`",
               [](const char *const *type) {
                 bool isCode = llvm::is_contained({"f32", "f16", "bf16"},
                                                  StringRef(type[0]));
                 return isCode ? makeConstantProduct(type[0]) : std::string();
               });
}

void nm_sparse::printSupport(MLIRContext &context, llvm::raw_ostream &os) {
  auto header = [&](StringRef what) {
    os << "| " << what << " |";
    for (auto &type : types)
      os << " " << type[0] << " |";
    os << "\n|---|---|---|---|---|---|\n";
  };
  auto cell = [&](const Layout &layout, const char *encoding,
                  const char *const *type) {
    os << (tryCompile(context, layout, encoding, type[0], type[1]).empty()
               ? " yes |"
               : " no |");
  };
  header("encoding");
  for (const Row &row : encodings) {
    os << "| " << row.name << " |";
    for (auto &type : types)
      cell(layouts[0], row.encoding, type);
    os << "\n";
  }
  os << "\n";
  header("layout, with `8:32, block = [1, 32]`");
  for (const Layout &layout : layouts) {
    os << "| " << layout.name << " |";
    for (auto &type : types)
      cell(layout, "8:32, block = [1, 32]", type);
    os << "\n";
  }
  os << "\n";
  printKernelTable(context, os);
  os << "\nChips: " << llvm::join(getSupportedChips(), ", ") << "\n";
}
