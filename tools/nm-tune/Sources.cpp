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

/// Adds the programs of files.
static llvm::Error addFiles(ArrayRef<std::string> paths,
                            TunableFinder &finder) {
  std::vector<TunableSource> sources;
  for (const std::string &path : paths) {
    auto buffer = readInput(path);
    if (!buffer)
      return buffer.takeError();
    sources.push_back({(*buffer)->getBuffer().str(),
                       paths.size() == 1 ? "" : path, /*isOfModel=*/false});
  }
  for (auto [path, fault] : llvm::zip_equal(paths, finder.add(sources)))
    if (!fault.empty())
      return llvm::createStringError(llvm::formatv("{0}: {1}", path, fault));
  return llvm::Error::success();
}

/// A linear layer with a weight of that encoding.
static llvm::Expected<TunableSource>
makeSource(LayerShape shape, StringRef encoding, StringRef label) {
  shape.roundsSums = true;
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
  TunableSource source = {"", label.str(), /*isOfModel=*/true};
  llvm::raw_string_ostream(source.program) << **module;
  return source;
}

static llvm::Error addShapes(const NmTuneOptions &options,
                             TunableFinder &finder) {
  std::vector<TunableSource> sources;
  for (const LayerShape &shape : options.shapes) {
    auto source = makeSource(
        shape, options.encoding,
        llvm::formatv("K={0},N={1}", shape.inputs, shape.outputs).str());
    if (!source)
      return source.takeError();
    sources.push_back(std::move(*source));
  }
  for (const std::string &fault : finder.add(sources))
    if (!fault.empty())
      return llvm::createStringError(fault);
  return llvm::Error::success();
}

/// The weights that `patterns` name, or, without any, all.
static llvm::Expected<std::vector<const CheckpointWeight *>>
choose(const Checkpoint &checkpoint, ArrayRef<std::string> patterns) {
  std::vector<const CheckpointWeight *> all, chosen;
  for (const CheckpointWeight &weight : checkpoint.getWeights())
    all.push_back(&weight);
  if (patterns.empty())
    return all;
  for (StringRef text : patterns) {
    auto pattern = llvm::GlobPattern::create(text);
    size_t before = chosen.size();
    for (const CheckpointWeight *weight : all)
      if ((weight->name == text || (pattern && pattern->match(weight->name))) &&
          !llvm::is_contained(chosen, weight))
        chosen.push_back(weight);
    if (!pattern)
      llvm::consumeError(pattern.takeError());
    if (chosen.size() == before)
      return llvm::createStringError(llvm::formatv(
          "{0} has no further weight {1}; nm-compile --checkpoint {0} --list "
          "prints those that it has",
          checkpoint.getPath(), quoteName(text)));
  }
  return chosen;
}

/// The pattern that a weight is tuned in; empty, and `reason` says why, where
/// it is not.
static llvm::Expected<std::string> getEncoding(const NmTuneOptions &options,
                                               const Checkpoint &checkpoint,
                                               const CheckpointWeight &weight,
                                               std::string &reason) {
  if (!weight.scale.empty()) {
    reason = "it has a scale beside it";
    return "";
  }
  if (weight.isCompressed())
    return "2:4";
  if (!options.encoding.empty()) {
    // Those are multiplied by nothing.
    bool isNamed = llvm::is_contained(options.weights, weight.name);
    if (StringRef(weight.name).contains_insensitive("embed") && !isNamed) {
      reason = "it is an embedding, as its name says";
      return "";
    }
    return options.encoding;
  }
  auto data = checkpoint.read(weight);
  if (!data)
    return data.takeError();
  if (checkTwoFour(data->bytes, weight.outputs, weight.inputs, *weight.type)
          .isTwoFour())
    return "2:4";
  reason = "it is not 2:4; --encoding says what it is to become";
  return "";
}

namespace {
/// Weights of one shape, type and pattern.
struct Alike {
  LayerShape shape;
  std::string encoding, label;
  size_t count = 0;
};
} // namespace

static bool isAlike(const Alike &one, const CheckpointWeight &weight,
                    StringRef encoding) {
  return one.shape.outputs == weight.outputs &&
         one.shape.inputs == weight.inputs && one.shape.type == weight.type &&
         one.encoding == encoding;
}

/// Adds the weights of the checkpoint that are 2:4, or all that are dense where
/// there is an encoding that they are to get.
static llvm::Error addCheckpoint(const NmTuneOptions &options,
                                 TunableFinder &finder) {
  auto checkpoint = Checkpoint::open(options.checkpoint);
  if (!checkpoint)
    return checkpoint.takeError();
  auto chosen = choose(*checkpoint, options.weights);
  if (!chosen)
    return chosen.takeError();
  std::vector<Alike> layers;
  for (const CheckpointWeight *weight : *chosen) {
    std::string reason;
    auto encoding = getEncoding(options, *checkpoint, *weight, reason);
    if (!encoding)
      return encoding.takeError();
    if (encoding->empty()) {
      finder.skip(quoteName(weight->name), reason);
      continue;
    }
    auto found = llvm::find_if(layers, [&](const Alike &one) {
      return isAlike(one, *weight, *encoding);
    });
    if (found == layers.end())
      found =
          layers.insert(found, {{weight->outputs, weight->inputs, weight->type},
                                *encoding,
                                quoteName(weight->name)});
    ++found->count;
  }
  std::vector<TunableSource> sources;
  for (Alike &one : layers) {
    if (one.count > 1)
      one.label += llvm::formatv(" and {0} more", one.count - 1);
    auto source = makeSource(one.shape, one.encoding, one.label);
    if (source)
      sources.push_back(std::move(*source));
    else
      finder.skip(one.label, llvm::toString(source.takeError()));
  }
  for (auto [source, fault] : llvm::zip_equal(sources, finder.add(sources)))
    if (!fault.empty())
      finder.skip(source.label, fault);
  if (!layers.empty())
    return llvm::Error::success();
  return llvm::createStringError(llvm::formatv(
      "{0}: none of {1} weights can be tuned: {2}", options.checkpoint,
      chosen->size(),
      finder.getSkipped().empty() ? "there are none"
                                  : finder.getSkipped().front().reason));
}

llvm::Error nm_sparse::addSources(const NmTuneOptions &options,
                                  TunableFinder &finder) {
  if (llvm::Error error = addFiles(options.files, finder))
    return error;
  if (llvm::Error error = addShapes(options, finder))
    return error;
  if (!options.checkpoint.empty())
    return addCheckpoint(options, finder);
  return llvm::Error::success();
}
