//===- ProductProgram.cpp - a product as a program of its own -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProductProgram.h"

#include "nm_sparse/Dialect/NMTile/IR/ElementFormat.h"
#include "nm_sparse/Pipelines/Run.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {
/// `y = x W + addend`, where numbers that are added are f32.
struct ProductProgram {
  std::string encoding;
  std::string type, sum; ///< Of x and W, and of the sums of their products.
  int64_t outputs, inputs;
  bool outputsFirst; ///< The weight is outputs x inputs.
  StringRef result;
  StringRef addend;                    ///< Empty: nothing is added.
  bool turnsX = false, turnsY = false; ///< They have their tokens last.

  std::string write() const;
};
} // namespace

static EncodingAttr parseEncoding(const TunedProblem &problem,
                                  MLIRContext &context) {
  auto attribute = parseAttributeText(context, problem.encoding);
  if (!attribute) {
    llvm::consumeError(attribute.takeError());
    return {};
  }
  return dyn_cast<EncodingAttr>(*attribute);
}

/// Elements that weights are stored in, or null.
static const ElementFormat *findStored(StringRef type) {
  const ElementFormat *format = findElementFormat(type);
  return format && format->isStored ? format : nullptr;
}

/// All of those, as in "f16, bf16 and i8".
static std::string listTypes() {
  SmallVector<StringRef> names;
  for (const ElementFormat &format : getElementFormats())
    if (format.isStored)
      names.push_back(format.name);
  StringRef last = names.pop_back_val();
  return llvm::join(names, ", ") + " and " + last.str();
}

/// The type of so many bytes beside elements of `format`: their own, else one
/// that the largest sums fit. Of 8 bits, these may be too large for f16.
static StringRef getTypeOf(int64_t bytes, const ElementFormat &format) {
  if (bytes == 4)
    return "f32";
  return format.bits == 16 ? format.name : format.bits == 8 ? "bf16" : "f16";
}

static std::string print(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

std::string nm_sparse::explainNoProgram(const TunedProblem &problem,
                                        MLIRContext &context) {
  if (!findStored(problem.type))
    return "its type is " + problem.type + ": legal are " + listTypes();
  if (!problem.patches.empty())
    return "it is a convolution: legal are products of matrices";
  if (problem.batch != 1)
    return llvm::formatv("it is a batch of {0} products: legal is one",
                         problem.batch);
  EncodingAttr encoding = parseEncoding(problem, context);
  if (!encoding)
    return "this compiler cannot read its encoding, " + problem.encoding;
  if (encoding.isFree())
    return "its encoding is free, and times depend on what is kept: legal is "
           "n:m";
  for (auto [what, bytes, isLegal] :
       {std::tuple("written", problem.writtenBytes,
                   llvm::is_contained({2, 4}, problem.writtenBytes)),
        std::tuple("read", problem.readBytes,
                   llvm::is_contained({0, 2, 4}, problem.readBytes))})
    if (!isLegal)
      return llvm::formatv("{0} bytes are {1} for each element of its result: "
                           "legal are 2 and 4",
                           bytes, what);
  return "";
}

static constexpr const char *head = R"(#weight = {0}
func.func @product(%x: tensor<{1}x{2}>, %w: tensor<{3}x{2}, #weight>{4})
    -> tensor<{5}> {{
  %zero = arith.constant {17} : {16}
  %axis = arith.constant {6} : index
  %m = tensor.dim %x, %axis : tensor<{1}x{2}>
  %empty = tensor.empty(%m) : tensor<?x{7}x{16}>
  %init = linalg.fill ins(%zero : {16}) outs(%empty : tensor<?x{7}x{16}>)
      -> tensor<?x{7}x{16}>
  %sums = linalg.matmul indexing_maps = [
      affine_map<(m, n, k) -> ({8})>, affine_map<(m, n, k) -> ({9})>,
      affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %w : tensor<{1}x{2}>, tensor<{3}x{2}, #weight>)
    outs(%init : tensor<?x{7}x{16}>) -> tensor<?x{7}x{16}>
  %place = tensor.empty(%m) : tensor<{5}>
  %y = linalg.generic {{indexing_maps = [affine_map<(m, n) -> (m, n)>{10},
      affine_map<(m, n) -> ({11})>], iterator_types = ["parallel", "parallel"]}
    ins(%sums{12} : tensor<?x{7}x{16}>{13}) outs(%place : tensor<{5}>) {{
  ^bb0(%sum: {16}{14}, %unused: {15}):
)";

std::string ProductProgram::write() const {
  std::string size = std::to_string(outputs);
  std::string xShape =
      turnsX ? std::to_string(inputs) + "x?" : "?x" + std::to_string(inputs);
  std::string weight = outputsFirst
                           ? llvm::formatv("{0}x{1}", outputs, inputs).str()
                           : llvm::formatv("{0}x{1}", inputs, outputs).str();
  auto getArray = [&](StringRef element) {
    return (turnsY ? size + "x?x" : "?x" + size + "x") + element.str();
  };
  StringRef yMap = turnsY ? "n, m" : "m, n";
  std::string argument, map, operand, operandType, blockArgument;
  if (!addend.empty()) {
    operandType = ", tensor<" + getArray(addend) + ">";
    argument = ", %addend: tensor<" + getArray(addend) + ">";
    map = (", affine_map<(m, n) -> (" + yMap + ")>").str();
    operand = ", %addend";
    blockArgument = (", %added: " + addend).str();
  }
  std::string text = llvm::formatv(
      head, encoding, xShape, type, weight, argument, getArray(result),
      int64_t(turnsX), size, turnsX ? "k, m" : "m, k",
      outputsFirst ? "n, k" : "k, n", map, yMap, operand, operandType,
      blockArgument, result, sum, sum == "f32" ? "0.0" : "0");
  StringRef value = "%sum";
  if (sum != "f32") {
    text +=
        llvm::formatv("    %number = arith.sitofp %sum : {0} to f32\n", sum);
    value = "%number";
  }
  if (!addend.empty()) {
    StringRef wide = "%added";
    if (addend != "f32") {
      text +=
          llvm::formatv("    %wide = arith.extf %added : {0} to f32\n", addend);
      wide = "%wide";
    }
    text +=
        llvm::formatv("    %whole = arith.addf {0}, {1} : f32\n", value, wide);
    value = "%whole";
  }
  if (result != "f32") {
    text += llvm::formatv("    %short = arith.truncf {0} : f32 to {1}\n", value,
                          result);
    value = "%short";
  }
  return text + llvm::formatv("    linalg.yield {0} : {1}\n"
                              "  } -> tensor<{2}>\n"
                              "  return %y : tensor<{2}>\n"
                              "}\n",
                              value, result, getArray(result))
                    .str();
}

SmallVector<std::string> nm_sparse::writePrograms(const TunedProblem &problem,
                                                  MLIRContext &context) {
  const ElementFormat &format = *findStored(problem.type);
  ProductProgram program;
  program.encoding = problem.encoding;
  program.type = print(format.getType(&context));
  program.sum = print(format.getAccumulatorType(&context));
  program.outputs = problem.outputs;
  program.inputs = problem.inputs;
  program.outputsFirst = parseEncoding(problem, context).getDim() == 1;
  program.result = getTypeOf(problem.writtenBytes, format);
  if (problem.readBytes)
    program.addend = getTypeOf(problem.readBytes, format);
  bool turnsX = problem.x == "feature-major";
  bool turnsY = problem.y == "feature-major";
  SmallVector<std::string> programs;
  // First as the product has them, and then with transpositions around it. Rows
  // of elements of 8 bits begin at multiples of 16 bytes in layers, which have
  // them transposed so. Those of a program's argument have no gaps: for other
  // numbers of tokens it takes a transposition to read them as layers do.
  bool hasGaps = format.bits == 8 && turnsX && problem.tokens % 16 != 0;
  for (bool otherX : {hasGaps, !hasGaps})
    for (bool otherY : {false, true}) {
      program.turnsX = turnsX != otherX;
      program.turnsY = turnsY != otherY;
      programs.push_back(program.write());
    }
  return programs;
}
