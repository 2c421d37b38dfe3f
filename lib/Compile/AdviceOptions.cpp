//===- AdviceOptions.cpp - command line of --advise -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Options.h"
#include "nm_sparse/Support/CommandLine.h"
#include "nm_sparse/Support/OutputFile.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// Far above any model's; products of three such sizes fit 64 bits.
static constexpr int64_t kLargestSize = 1 << 20;

static llvm::Error parseShape(StringRef text, AdviceOptions &options) {
  SmallVector<StringRef> parts;
  text.split(parts, ',');
  options.inputs = options.outputs = 0;
  bool isRight = parts.size() == 2;
  for (StringRef part : parts) {
    auto [name, number] = part.split('=');
    int64_t size = 0;
    isRight &=
        !number.getAsInteger(10, size) && size >= 1 && size <= kLargestSize;
    if (name == "K")
      options.inputs = size;
    if (name == "N")
      options.outputs = size;
  }
  if (isRight && options.inputs > 0 && options.outputs > 0)
    return llvm::Error::success();
  return llvm::createStringError(
      "'" + text.str() +
      "' is not the shape of a layer; legal is K=4096,N=14336 for 4096 inputs "
      "and 14336 outputs, each from 1 to " +
      std::to_string(kLargestSize));
}

void nm_sparse::addAdviceOptions(CommandLine &line, AdviceOptions &options) {
  line.addFlag("advise", options.isAsked);
  line.addValue("shape",
                [&](StringRef text) { return parseShape(text, options); });
  line.addValue("type", [&](StringRef text) -> llvm::Error {
    options.type = findElementType(text);
    if (!options.type)
      return llvm::createStringError("'" + text.str() + "' is not one of " +
                                     llvm::join(getElementTypes(), ", "));
    return llvm::Error::success();
  });
  line.addValue("pattern", [&](StringRef text) {
    options.patterns.push_back(text.str());
    return llvm::Error::success();
  });
  line.addString("gram", options.gram);
  line.addNumber<int64_t>("fit-rows", options.fitRows, 1, kLargestSize);
  line.addString("json", options.json);
}

StringRef nm_sparse::findGiven(ArrayRef<std::pair<StringRef, bool>> given) {
  for (auto [flag, isGiven] : given)
    if (isGiven)
      return flag;
  return "";
}

/// The layer is of a shape, or of a weight.
static llvm::Error checkLayer(const CompileOptions &options) {
  const AdviceOptions &advice = options.advice;
  bool hasShape = advice.inputs > 0, hasWeight = !options.checkpoint.empty();
  if (hasShape && hasWeight)
    return llvm::createStringError("--shape and --checkpoint both say which "
                                   "layer; leave out one of them");
  if (!hasShape && !hasWeight)
    return llvm::createStringError(
        "--advise needs a layer: --shape K=4096,N=14336, or a --checkpoint and "
        "a --weight of it");
  if (hasWeight && options.weights.size() != 1)
    return llvm::createStringError(
        llvm::formatv("--advise needs one --weight of the checkpoint, and {0} "
                      "are given; --list prints those that it has",
                      options.weights.size()));
  if (!hasWeight && !advice.gram.empty())
    return llvm::createStringError(
        "--gram says which inputs of a weight matter; name the weight with "
        "--checkpoint and --weight");
  if (advice.gram.empty() && advice.fitRows > 0)
    return llvm::createStringError("--fit-rows needs a --gram");
  return llvm::Error::success();
}

llvm::Error nm_sparse::checkAdviceOptions(const CompileOptions &options,
                                          ArrayRef<std::string> positional) {
  const AdviceOptions &advice = options.advice;
  if (!advice.isAsked) {
    StringRef flag = findGiven({{"--shape", advice.inputs > 0},
                                {"--type", advice.type != nullptr},
                                {"--pattern", !advice.patterns.empty()},
                                {"--gram", !advice.gram.empty()},
                                {"--fit-rows", advice.fitRows > 0}});
    if (!flag.empty())
      return llvm::createStringError(flag.str() + " needs --advise");
    if (!advice.json.empty() && !options.recommend.isAsked)
      return llvm::createStringError("--json needs --advise or --recommend");
    return llvm::Error::success();
  }
  if (!positional.empty())
    return llvm::createStringError("--advise reads no program, and " +
                                   positional.front() +
                                   " is one; leave out one of them");
  StringRef flag = findGiven({{"-o", !options.output.empty()},
                              {"--manifest", !options.manifest.empty()},
                              {"--packed", !options.packed.empty()},
                              {"--candidates", options.candidates > 0},
                              {"--explain", options.explain},
                              {"--list", options.list}});
  if (!flag.empty())
    return llvm::createStringError("--advise compiles nothing for " +
                                   flag.str() + "; leave out one of them");
  if (llvm::Error error = checkLayer(options))
    return error;
  for (StringRef input :
       {StringRef(options.checkpoint), StringRef(advice.gram)})
    if (!input.empty() && !advice.json.empty() &&
        isSameFile(input, advice.json))
      return llvm::createStringError("--json names an input, " + advice.json +
                                     ", which would be lost; choose another "
                                     "file");
  return llvm::Error::success();
}
