//===- Options.cpp - command line of nm-tune ------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Options.h"

#include "nm_sparse/Chip/Chip.h"
#include "nm_sparse/Pipelines/Run.h"
#include "nm_sparse/Support/CommandLine.h"

using namespace mlir;
using namespace mlir::nm_sparse;

static constexpr StringLiteral usage =
    R"(usage: nm-tune [IN.mlir ...] --database FILE [options]
Measures schedules of the sparse products of programs and layers on a GPU, and adds
the fastest ones to a tuning database (docs/Tuning.md). What the database has is
not measured again, so that a search goes on where another one ended.

  --database FILE    lines of JSON; made if there is none
  --shape K=I,N=O    a linear layer of I inputs and O outputs; may be given again
  --encoding E       of its weight, such as 2:4 or '8:32, block = [1, 64]'
  --type T           of its elements: f16 (default), bf16, f32, f8E4M3FN, f8E5M2 or
                     i8; results are of the same type, and bf16 where that has 8 bits
  --checkpoint MODEL the 2:4 weights of a .safetensors file, an index of several, or
                     a folder; with --encoding the dense ones, for that pattern
  --weight NAME      of the checkpoint, this one alone; may be given again, and be a
                     pattern such as 'model.layers.0.*'
  --tokens LIST      numbers of tokens, such as 1,16,2048, each a problem of its own;
                     own (default): those that programs for any number have kernels
                     for
  --gpu G            the GPU that is measured, such as h100; default: the one that
                     there is, and h200 where there is none
  --candidates N     schedules to measure of each product at most; default 12
  --neighbours N     further ones, which differ from the best in one field; default 4
  --objective O      what the best one has least of: time (default), energy, or edp
                     (energy times time)
  --minutes M        after which no further product is begun
  --sample-ms N      milliseconds of samples for each product, and as many for the
                     neighbours; default 400
  --lock FILE        searches, and runs of nm-run, that name the same FILE take times
                     one after another, and use the GPU for nothing else meanwhile
  --seed S           of weights and activations; default 0
  --jobs N           schedules that are compiled at a time; default: one a core
  --device D         cuda (default), or emulate: results of all candidates are
                     checked in the emulator, and nothing is written
  --times            say with each product what its search took
  --list             say what would be measured, and what not, and stop
  --merge            the inputs are databases, of which --database becomes one; of
                     two entries for one problem the better one stays
  --verify           compile the entries of --database again, and say which ones are
                     not legal any more, or were measured with other code
  --prune            with --verify, take these out
  --version          print which build this is

Status: 0 all well, 1 a schedule was wrong, a product has no right one, or the search
could not go on, 2 bad usage.
)";

StringRef nm_sparse::getTuneUsage() { return usage; }

/// Far above any model's; products of three such sizes fit 64 bits.
static constexpr int64_t kLargestSize = 1 << 20;

static llvm::Error parseShape(StringRef text, NmTuneOptions &options) {
  LayerShape shape = {0, 0, nullptr};
  SmallVector<StringRef> parts;
  text.split(parts, ',');
  bool isRight = parts.size() == 2;
  for (StringRef part : parts) {
    auto [name, number] = part.split('=');
    int64_t size = 0;
    isRight &=
        !number.getAsInteger(10, size) && size >= 1 && size <= kLargestSize;
    if (name == "K")
      shape.inputs = size;
    if (name == "N")
      shape.outputs = size;
  }
  if (!isRight || shape.inputs == 0 || shape.outputs == 0)
    return llvm::createStringError(
        "'" + text.str() +
        "' is not the shape of a layer; legal is K=4096,N=14336 for 4096 "
        "inputs and 14336 outputs, each from 1 to " +
        std::to_string(kLargestSize));
  options.shapes.push_back(shape);
  return llvm::Error::success();
}

static llvm::Error parseMinutes(StringRef text, NmTuneOptions &options) {
  double minutes = 0;
  // In this order, as nan is neither less nor more.
  bool isLegal = !text.getAsDouble(minutes) && minutes > 0 && minutes <= 1e6;
  if (!isLegal)
    return llvm::createStringError("'" + text.str() +
                                   "' is not a number of minutes above 0");
  options.search.minutes = minutes;
  return llvm::Error::success();
}

static llvm::Error parseTokens(StringRef text, NmTuneOptions &options) {
  options.tokens.clear();
  if (text == "own")
    return llvm::Error::success();
  auto counts = parseTokenCounts(text);
  if (!counts || counts->empty()) {
    if (!counts)
      llvm::consumeError(counts.takeError());
    return llvm::createStringError(
        "'" + text.str() +
        "' is not a list of numbers of tokens, such as 16,2048, or own");
  }
  options.tokens = *counts;
  return llvm::Error::success();
}

static void addSources(CommandLine &line, NmTuneOptions &options) {
  line.addValue("shape",
                [&](StringRef text) { return parseShape(text, options); });
  line.addString("encoding", options.encoding);
  line.addValue("type", [&](StringRef text) -> llvm::Error {
    options.type = findElementType(text);
    if (!options.type)
      return llvm::createStringError("'" + text.str() + "' is not one of " +
                                     llvm::join(getElementTypes(), ", "));
    return llvm::Error::success();
  });
  line.addString("checkpoint", options.checkpoint);
  line.addValue("weight", [&](StringRef text) {
    options.weights.push_back(text.str());
    return llvm::Error::success();
  });
  line.addValue("tokens",
                [&](StringRef text) { return parseTokens(text, options); });
}

static void addSearch(CommandLine &line, NmTuneOptions &options) {
  TuneOptions &search = options.search;
  line.addString("database", search.database);
  line.addValue("gpu", [&](StringRef text) -> llvm::Error {
    if (!findGPU(text))
      return llvm::createStringError("'" + text.str() +
                                     "' is not a known GPU; expected one of " +
                                     llvm::join(getGPUs(), ", "));
    options.gpu = text.str();
    return llvm::Error::success();
  });
  line.addNumber<int64_t>("candidates", search.candidates, 1, 1000);
  line.addNumber<int64_t>("neighbours", search.neighbours, 0, 1000);
  line.addChoice("objective", options.objective, {"time", "energy", "edp"});
  line.addString("lock", options.lock);
  line.addValue("minutes",
                [&](StringRef text) { return parseMinutes(text, options); });
  line.addNumber<int64_t>("sample-ms", options.sampleMs, 1, 3600000);
  line.addNumber<uint64_t>("seed", options.seed, 0, UINT64_MAX);
  line.addNumber<int64_t>("jobs", options.jobs, 1, 1024);
  line.addValue("device", [&](StringRef text) -> llvm::Error {
    if (text != "cuda" && text != "emulate")
      return llvm::createStringError("'" + text.str() +
                                     "' is not cuda or emulate");
    options.device = text == "cuda" ? Device::CUDA : Device::Emulate;
    return llvm::Error::success();
  });
}

/// Options must fit together.
static llvm::Error check(const NmTuneOptions &options) {
  bool hasLayers = !options.shapes.empty();
  if (options.merges && options.verifies)
    return llvm::createStringError(
        "--merge and --verify are two things to do; leave out one of them");
  if (options.prunes && !options.verifies)
    return llvm::createStringError("--prune takes out what --verify finds, "
                                   "which is not given");
  bool isOfDatabases = options.merges || options.verifies;
  bool writesNothing = options.lists || options.device == Device::Emulate;
  if (isOfDatabases && writesNothing)
    return llvm::createStringError(
        "--merge and --verify are no searches: leave out --list and --device");
  if (options.search.database.empty() && !writesNothing)
    return llvm::createStringError("--database FILE is missing");
  if (isOfDatabases) {
    if (hasLayers || !options.checkpoint.empty() ||
        (options.verifies && !options.files.empty()))
      return llvm::createStringError(options.merges
                                         ? "--merge takes databases alone"
                                         : "--verify takes --database alone");
    if (options.merges && options.files.empty())
      return llvm::createStringError("--merge needs databases as inputs");
    return llvm::Error::success();
  }
  if (options.files.empty() && !hasLayers && options.checkpoint.empty())
    return llvm::createStringError("nothing to tune: expected files, --shape "
                                   "or --checkpoint; --help shows the usage");
  if (hasLayers && options.encoding.empty())
    return llvm::createStringError("--shape needs an --encoding, such as 2:4");
  if (!options.encoding.empty() && !hasLayers && options.checkpoint.empty())
    return llvm::createStringError(
        "--encoding is of a --shape or of dense weights of a --checkpoint, and "
        "there is none");
  if (!options.weights.empty() && options.checkpoint.empty())
    return llvm::createStringError("--weight needs a --checkpoint");
  return llvm::Error::success();
}

llvm::Expected<NmTuneOptions>
nm_sparse::parseTuneOptions(ArrayRef<const char *> arguments) {
  NmTuneOptions options;
  options.type = findElementType("f16");
  CommandLine line;
  addSources(line, options);
  addSearch(line, options);
  line.addFlag("list", options.lists);
  line.addFlag("times", options.showsTimes);
  line.addFlag("merge", options.merges);
  line.addFlag("verify", options.verifies);
  line.addFlag("prune", options.prunes);
  line.addFlag("help", options.help);
  line.addFlag("h", options.help);
  line.addFlag("version", options.version);
  auto positional = line.parse(arguments);
  if (!positional)
    return positional.takeError();
  options.files.assign(positional->begin(), positional->end());
  if (options.help || options.version)
    return std::move(options);
  if (llvm::Error error = check(options))
    return std::move(error);
  for (LayerShape &shape : options.shapes)
    shape.type = options.type;
  options.search.checksOnly = options.device == Device::Emulate;
  return std::move(options);
}
