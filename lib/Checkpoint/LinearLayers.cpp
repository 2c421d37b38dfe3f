//===- LinearLayers.cpp - programs of the weights of a checkpoint ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Checkpoint/LinearLayers.h"

#include "nm_sparse/Support/ReadModule.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"
#include <map>
#include <tuple>

using namespace mlir;
using namespace mlir::nm_sparse;

static std::string makeSymbol(llvm::StringRef name) {
  name.consume_back(".weight");
  std::string symbol;
  for (char c : name)
    symbol += llvm::isAlnum(c) ? c : '_';
  if (symbol.empty() || llvm::isDigit(symbol[0]))
    symbol.insert(0, "_");
  return symbol;
}

std::vector<LinearLayer>
nm_sparse::nameLayers(llvm::ArrayRef<const CheckpointWeight *> weights) {
  std::vector<LinearLayer> layers;
  llvm::StringSet<> taken;
  for (const CheckpointWeight *weight : weights) {
    std::string symbol = makeSymbol(weight->name), unique = symbol;
    for (int number = 2; !taken.insert(unique).second; ++number)
      unique = symbol + "_" + std::to_string(number);
    layers.push_back({weight, unique});
  }
  return layers;
}

static constexpr const char *header = R"(
#pattern = {0}
#x_map = affine_map<(m, n, k) -> (m, k)>
#w_map = affine_map<(m, n, k) -> (n, k)>
#y_map = affine_map<(m, n, k) -> (m, n)>
#row = affine_map<(m, n) -> (m, n)>
)";

/// The sum of the products, which begins at zero.
static constexpr const char *product = R"(
func.func @{0}(%x: tensor<?x{2}x{3}>,
               %w: tensor<{1}x{2}x{3}, #pattern>) -> tensor<?x{1}x{5}> {{
  %c0 = arith.constant 0 : index
  %zero = arith.constant {6} : {4}
  %m = tensor.dim %x, %c0 : tensor<?x{2}x{3}>
  %empty = tensor.empty(%m) : tensor<?x{1}x{4}>
  %init = linalg.fill ins(%zero : {4})
      outs(%empty : tensor<?x{1}x{4}>) -> tensor<?x{1}x{4}>
  %sum = linalg.matmul indexing_maps = [#x_map, #w_map, #y_map]
      ins(%x, %w : tensor<?x{2}x{3}>, tensor<{1}x{2}x{3}, #pattern>)
      outs(%init : tensor<?x{1}x{4}>) -> tensor<?x{1}x{4}>
)";

static constexpr const char *rounding = R"(
  %y_empty = tensor.empty(%m) : tensor<?x{1}x{5}>
  %y = linalg.generic {{indexing_maps = [#row, #row],
                       iterator_types = ["parallel", "parallel"]}
      ins(%sum : tensor<?x{1}x{4}>) outs(%y_empty : tensor<?x{1}x{5}>) {{
  ^bb0(%s: {4}, %out: {5}):{8}
    %rounded = arith.truncf {9} : f32 to {5}
    linalg.yield %rounded : {5}
  } -> tensor<?x{1}x{5}>
)";

static constexpr const char *end = R"(
  return {7} : tensor<?x{1}x{5}>
}
)";

/// The text of a function that multiplies by a weight of this shape.
static std::string makeFunction(llvm::StringRef name, const LayerShape &shape) {
  llvm::StringRef x = shape.type->element;
  int64_t bits = shape.type->bits;
  bool isInteger = x == "i8";
  bool rounds = bits == 16 || (bits == 8 && shape.roundsSums);
  llvm::StringRef sum = isInteger ? "i32" : "f32";
  llvm::StringRef result = !rounds ? sum : bits == 8 ? "bf16" : x;
  std::string text;
  for (const char *part : {product, rounds ? rounding : "", end})
    text += llvm::formatv(
                /*Validate=*/false, part, name, shape.outputs, shape.inputs, x,
                sum, result, isInteger ? "0" : "0.0", rounds ? "%y" : "%sum",
                isInteger ? "\n    %number = arith.sitofp %s : i32 to f32" : "",
                isInteger ? "%number" : "%s")
                .str();
  return text;
}

llvm::Expected<OwningOpRef<ModuleOp>>
nm_sparse::makeLayers(MLIRContext &context,
                      llvm::ArrayRef<LinearLayer> layers) {
  std::string text = llvm::formatv(header, "#nm_sparse.encoding<2:4, dim = 1>");
  for (const LinearLayer &layer : layers)
    text += makeFunction(
        layer.function,
        {layer.weight->outputs, layer.weight->inputs, layer.weight->type});
  return parseModule(context, text, "checkpoint");
}

llvm::Expected<OwningOpRef<ModuleOp>>
nm_sparse::makeLayer(const LayerShape &shape, EncodingAttr encoding) {
  std::string pattern;
  llvm::raw_string_ostream(pattern) << encoding;
  return parseModule(*encoding.getContext(),
                     llvm::formatv(header, pattern).str() +
                         makeFunction("linear", shape),
                     "layer");
}

PackedAttr nm_sparse::getPacked(func::FuncOp function) {
  StringRef name = NMSparseDialect::ComponentAttrHelper::getNameStr();
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (auto component = function.getArgAttrOfType<ComponentAttr>(i, name))
      return component.getPacked();
  return {};
}

llvm::Error nm_sparse::findStorage(ModuleOp module,
                                   llvm::MutableArrayRef<LinearLayer> layers) {
  // The module has one of several equal functions.
  auto getKey = [](const LinearLayer &layer) {
    return std::tuple(layer.weight->outputs, layer.weight->inputs,
                      layer.weight->type);
  };
  std::map<std::tuple<int64_t, int64_t, const StoredType *>, PackedAttr> found;
  for (const LinearLayer &layer : layers)
    if (auto function = module.lookupSymbol<func::FuncOp>(layer.function))
      found[getKey(layer)] = getPacked(function);
  for (LinearLayer &layer : layers) {
    layer.packed = found[getKey(layer)];
    if (!layer.packed)
      return llvm::createStringError("@" + layer.function +
                                     " takes no packed weight");
  }
  return llvm::Error::success();
}
