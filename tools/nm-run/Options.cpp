//===- Options.cpp - command line of nm-run -------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Options.h"

#include "nm_sparse/Pipelines/Pipelines.h"
#include "nm_sparse/Pipelines/Run.h"
#include "nm_sparse/Support/CommandLine.h"
#include "nm_sparse/Support/OutputFile.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::nm_sparse;

static llvm::Error parseSize(StringRef text, int64_t &size) {
  StringRef value = text;
  value.consume_front("m=");
  // 2^24 tokens are more than any index computation is tested for.
  if (value.getAsInteger(10, size) || size < 0 || size > (1 << 24))
    return llvm::createStringError(
        "'" + text.str() +
        "' is not a size; expected a number from 0 to 16777216, or m=NUMBER");
  return llvm::Error::success();
}

/// FIRST:LAST, numbers of tokens.
static llvm::Error parseRange(StringRef text, RunOptions &options) {
  auto [first, last] = text.split(':');
  int64_t least, most;
  if (first.getAsInteger(10, least) || last.getAsInteger(10, most) ||
      least < 1 || most < least || most > (1 << 24))
    return llvm::createStringError(
        "'" + text.str() +
        "' is not a range of tokens; expected FIRST:LAST with 1 <= FIRST <= "
        "LAST <= 16777216, such as 1:8192");
  options.sweep = {least, most};
  return llvm::Error::success();
}

static llvm::Error parseDevice(StringRef text, Device &device) {
  std::optional<Device> parsed = llvm::StringSwitch<std::optional<Device>>(text)
                                     .Case("auto", Device::Auto)
                                     .Case("cpu", Device::CPU)
                                     .Case("cuda", Device::CUDA)
                                     .Case("emulate", Device::Emulate)
                                     .Default(std::nullopt);
  if (!parsed)
    return llvm::createStringError("'" + text.str() +
                                   "' is not auto, cuda, emulate or cpu");
  device = *parsed;
  return llvm::Error::success();
}

/// Which numbers of tokens to compile and run for.
static void addTokenOptions(CommandLine &line, RunOptions &options) {
  RunRequest &request = options.request;
  line.addChoice("storage", request.storage,
                 {"auto", "canonical", "bitmap", "k_major"});
  line.addChoice("embed", request.embed, {"auto", "always", "never"});
  line.addFlag("embed-checked", request.embedChecked);
  line.addNumber<int64_t>("density", request.density, 0, 100);
  line.addValue("bind", [&](StringRef text) -> llvm::Error {
    auto binding = WeightBinding::parse(text);
    if (!binding)
      return binding.takeError();
    request.bindings.push_back(std::move(*binding));
    return llvm::Error::success();
  });
  line.addFlag("specialize-constants", request.specializeConstants);
  line.addNumber<int64_t>("max-code-bytes", request.maxCodeBytes, 1, INT64_MAX);
  line.addChoice("pack", request.pack, {"auto", "host", "device"});
  line.addChoice("launches", request.launches, {"merged", "separate"});
  line.addNumber<int64_t>("max-kernels", request.maxKernels, 1, 1000);
  line.addValue("size", [&](StringRef text) {
    return parseSize(text, request.dynamicSize);
  });
  line.addValue("tokens", [&](StringRef text) -> llvm::Error {
    auto counts = parseTokenCounts(text);
    if (!counts)
      return counts.takeError();
    request.tokens = *counts;
    return llvm::Error::success();
  });
  line.addValue("sweep-tokens",
                [&](StringRef text) { return parseRange(text, options); });
}

/// Adds the options for measurements on a GPU, and for their duration.
static void addMeasurements(CommandLine &line, RunRequest &request) {
  line.addFlag("bench", request.bench);
  line.addNumber<int64_t>("bench-ms", request.benchBudget, 1, 3600000);
  line.addFlag("energy", request.energy);
  line.addNumber<int64_t>("energy-repeats", request.energyRepeats, 1, 1000);
  line.addValue("energy-seconds", [&request](StringRef text) -> llvm::Error {
    double seconds = 0;
    // In this order, as nan is neither less nor more.
    bool isLegal =
        !text.getAsDouble(seconds) && seconds >= 0.2 && seconds <= 600;
    if (!isLegal)
      return llvm::createStringError(
          "'" + text.str() +
          "' is not a number of seconds from 0.2 to 600: the counter of a GPU "
          "moves some 10 times a second");
    request.energySeconds = seconds;
    return llvm::Error::success();
  });
}

llvm::Expected<RunOptions>
nm_sparse::parseRunOptions(ArrayRef<const char *> arguments) {
  RunOptions options;
  RunRequest &request = options.request;
  CommandLine line;
  line.addFlag("help", options.help);
  line.addFlag("h", options.help);
  line.addFlag("version", options.version);
  line.addFlag("probe-device", options.probe);
  line.addFlag("print-emulated", options.printEmulated);
  line.addFlag("last-first", request.lastFirst);
  line.addFlag("bank-conflicts", request.bankConflicts);
  line.addFlag("check", request.check);
  addMeasurements(line, request);
  line.addString("entry", request.entry);
  line.addValue("schedule", [&](StringRef text) -> llvm::Error {
    if (text.trim().empty())
      return llvm::createStringError(
          "the schedule is empty; legal is 'tile = [16, 64, 32], product = "
          "mma<warps = [1, 4]>', for example, or all of it in "
          "#nm_tile.schedule<...>; docs/Schedule.md lists all fields");
    request.schedule = text.str();
    return llvm::Error::success();
  });
  line.addString("gpu", request.gpu);
  line.addString("lowered", request.lowered);
  line.addString("output", request.output);
  line.addString("lock", request.lock);
  line.addString("json", options.json);
  line.addString("batch", options.batch);
  line.addNumber<int64_t>("jobs", options.jobs, 1, 256);
  line.addNumber<int64_t>("deadline", options.deadline, 1, 86400);
  line.addNumber<int64_t>("timeout", options.timeout, 1, 86400);
  line.addNumber<uint64_t>("seed", request.seed, 0, INT64_MAX);
  addTokenOptions(line, options);
  line.addValue("device", [&](StringRef text) {
    return parseDevice(text, request.device);
  });
  line.addValue("chip", [&](StringRef text) -> llvm::Error {
    if (getDefaultFeatures(text).empty())
      return llvm::createStringError("'" + text.str() +
                                     "' is not a known chip; expected one of " +
                                     llvm::join(getSupportedChips(), ", "));
    request.chip = text.str();
    return llvm::Error::success();
  });
  line.addValue("tolerance", [&](StringRef text) -> llvm::Error {
    if (text.getAsDouble(request.tolerance) || !(request.tolerance >= 0))
      return llvm::createStringError("'" + text.str() +
                                     "' is not a number of at least 0");
    return llvm::Error::success();
  });

  auto positional = line.parse(arguments);
  if (!positional)
    return positional.takeError();
  // The faster of cuBLAS's layouts is measured.
  request.bench |= request.energy;
  if (options.help || options.version || options.probe || options.printEmulated)
    return options;
  size_t expected = options.batch.empty() ? 1 : 0;
  if (positional->size() != expected)
    return llvm::createStringError(
        expected ? "expected one input file; --help shows the usage"
                 : "--batch takes its inputs from the list alone");
  if (expected)
    request.file = positional->front();
  if (options.sweep && !options.batch.empty())
    return llvm::createStringError("--sweep-tokens takes one input, not a "
                                   "--batch");
  SmallVector<StringRef> inputs = {request.file, request.lowered,
                                   options.batch};
  for (const WeightBinding &binding : request.bindings)
    inputs.push_back(binding.file);
  for (StringRef input : inputs)
    if (!input.empty() && isSameFile(input, options.json))
      return llvm::createStringError("--json names an input, " + options.json +
                                     ", which would be lost; choose another "
                                     "file");
  return options;
}

llvm::Error nm_sparse::writeJSON(StringRef path, llvm::json::Value value) {
  auto file = OutputFile::create(path, llvm::formatv("{0:2}\n", value).str());
  if (!file)
    return file.takeError();
  return file->keep();
}
