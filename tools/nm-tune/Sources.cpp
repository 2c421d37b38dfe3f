//===- Sources.cpp - what nm-tune is given to tune ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Sources.h"

#include "nm_sparse/InitAll.h"
#include "nm_sparse/Pipelines/Run.h"
#include "nm_sparse/Support/InputFile.h"
#include "nm_sparse/Support/QuoteName.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/GlobPattern.h"

using namespace mlir;
using namespace mlir::nm_sparse;

static llvm::Error addFile(StringRef path, bool isOnly, TunableFinder &finder) {
  auto buffer = readInput(path);
  if (!buffer)
    return buffer.takeError();
  llvm::Error error =
      finder.add((*buffer)->getBuffer(), isOnly ? StringRef() : path);
  if (!error)
    return error;
  return llvm::createStringError(path + ": " +
                                 llvm::toString(std::move(error)));
}

/// Adds a linear layer with a weight of that encoding.
static llvm::Error addLayer(const LayerShape &shape, StringRef encoding,
                            StringRef label, TunableFinder &finder) {
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  std::string text = ("#nm_sparse.encoding<" + encoding + ">").str();
  // A weight is outputs x inputs.
  if (!encoding.contains("dim"))
    text = ("#nm_sparse.encoding<" + encoding + ", dim = 1>").str();
  auto attribute = parseAttributeText(context, text);
  if (!attribute)
    return llvm::createStringError(llvm::formatv(
        "--encoding: '{0}' is no encoding: {1}; legal are such as 2:4, or "
        "'8:32, block = [1, 64]'",
        encoding, llvm::toString(attribute.takeError())));
  auto module = makeLayer(shape, cast<EncodingAttr>(*attribute));
  if (!module)
    return module.takeError();
  std::string program;
  llvm::raw_string_ostream(program) << **module;
  return finder.add(program, label);
}

static bool isMeant(StringRef name, ArrayRef<std::string> patterns) {
  return patterns.empty() || llvm::any_of(patterns, [&](StringRef text) {
           if (name == text)
             return true;
           auto pattern = llvm::GlobPattern::create(text);
           if (pattern)
             return pattern->match(name);
           llvm::consumeError(pattern.takeError());
           return false;
         });
}

/// Adds the weights of the checkpoint that are 2:4, or all that are dense where
/// there is an encoding that they are to get.
static llvm::Error addCheckpoint(const NmTuneOptions &options,
                                 TunableFinder &finder) {
  auto checkpoint = Checkpoint::open(options.checkpoint);
  if (!checkpoint)
    return checkpoint.takeError();
  size_t added = 0;
  for (const CheckpointWeight &weight : checkpoint->getWeights()) {
    if (!isMeant(weight.name, options.weights))
      continue;
    StringRef encoding = options.encoding;
    if (weight.isCompressed())
      encoding = "2:4";
    if (encoding.empty()) {
      auto data = checkpoint->read(weight);
      if (!data)
        return data.takeError();
      if (!checkTwoFour(data->bytes, weight.outputs, weight.inputs,
                        *weight.type)
               .isTwoFour())
        continue;
      encoding = "2:4";
    }
    ++added;
    if (llvm::Error error =
            addLayer({weight.outputs, weight.inputs, weight.type}, encoding,
                     weight.name, finder))
      return error;
  }
  if (added > 0)
    return llvm::Error::success();
  return llvm::createStringError(llvm::formatv(
      "{0}: none of its {1} weights is meant and 2:4; with --encoding, dense "
      "ones are tuned for that pattern",
      options.checkpoint, checkpoint->getWeights().size()));
}

llvm::Error nm_sparse::addSources(const NmTuneOptions &options,
                                  TunableFinder &finder) {
  for (const std::string &file : options.files)
    if (llvm::Error error = addFile(file, options.files.size() == 1, finder))
      return error;
  for (const LayerShape &shape : options.shapes)
    if (llvm::Error error = addLayer(
            shape, options.encoding,
            llvm::formatv("K={0},N={1}", shape.inputs, shape.outputs).str(),
            finder))
      return error;
  if (!options.checkpoint.empty())
    return addCheckpoint(options, finder);
  return llvm::Error::success();
}
