//===- nm-compile.cpp - linalg to PTX -------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../common/CommandLine.h"
#include "../common/OutputFile.h"
#include "../common/Version.h"
#include "Explain.h"
#include "nm_sparse/Analysis/Chip.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "nm_sparse/InitAll.h"
#include "nm_sparse/Pipelines/ErrorCollector.h"
#include "nm_sparse/Pipelines/Pipelines.h"
#include "nm_sparse/Pipelines/Run.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include <chrono>
#include <optional>

using namespace mlir;
using namespace mlir::nm_sparse;

static constexpr const char *usage =
    R"(usage: nm-compile IN.mlir -o OUT [options]
Compiles linalg with sparse weights to GPU kernels.

  -o OUT             output file; - is standard output
  --chip C           GPU to compile for; default sm_90a
  --gpu G            GPU whose rates to choose kernels by, such as h100; default
                     h200 where the chip is sm_90a. It names the chip, too
  --emit WHAT        ptx (default), cubin, or the IR after a stage
  --manifest FILE    also write how to launch the kernels, as JSON
  --host-memory      callers pass host memory: copy it to the device and back
  --tokens LIST      where the number of tokens is dynamic: auto (default; what
                     is compiled serves any number, with kernels as the model
                     says), or the numbers to compile for, such as 16,2048
  --max-kernels N    with --tokens, compile for at most N numbers; default 8
  --layout L         of activations between products: auto (default; as the
                     model says), feature-major, or keep
  --storage S        of packed weights: auto (default; as the pattern and the
                     elements say), canonical or bitmap
  --density P        percent of the elements that free weights are expected to
                     keep, by which schedules are chosen; default 50
  --pack WHERE       weights that the program packs when it runs: auto (default;
                     by a kernel if one can, but with --host-memory on the
                     host), device (by a kernel), or host
  --launches HOW     of products of few tokens: merged (default; those of the
                     same activations are one) or separate
  --candidates N     print the N best schedules of each family of kernels, for
                     each sparse matmul, and what the model predicts, as JSON,
                     and stop
  --explain          say what each stage did, and which schedules the model
                     compared (docs/Schedule.md lists their fields)
  --print-support    print what can be compiled, as tables, and stop
  --version          print which build this is, and stop

Stages: )";

namespace {

struct Options {
  std::string output, emit = "ptx", manifest, chip;
  GPUPipelineOptions pipeline;
  int64_t candidates = 0;
  bool explain = false, printSupport = false, help = false;
  bool version = false, saysDensity = false;
  std::string input;
};

} // namespace

static std::string listStages() {
  std::string names;
  for (const Stage &stage : getStages())
    names += (stage.name + ", ").str();
  return names + "ptx, cubin";
}

static bool isStage(StringRef name) {
  return llvm::any_of(getStages(),
                      [&](const Stage &stage) { return stage.name == name; });
}

/// A GPU says which chip it has, which the user may say, too.
static llvm::Error chooseChip(StringRef chip, StringRef gpu,
                              GPUPipelineOptions &options) {
  const Chip *found = findGPU(gpu);
  if (!found)
    return llvm::Error::success();
  if (!chip.empty() && chip != found->name)
    return llvm::createStringError(
        llvm::formatv("--gpu {0} has the chip {1}, and --chip says {2}; leave "
                      "out one of them",
                      gpu, found->name, chip));
  options.chip = found->name.str();
  return llvm::Error::success();
}

static llvm::Error checkGPU(StringRef gpu) {
  if (findGPU(gpu))
    return llvm::Error::success();
  return llvm::createStringError("'" + gpu.str() +
                                 "' is not a known GPU; expected one of " +
                                 llvm::join(getGPUs(), ", "));
}

/// What is written where.
static llvm::Error checkFiles(const Options &options) {
  if (options.output.empty() && !options.candidates)
    return llvm::createStringError("-o OUT is missing; - is standard output");
  for (auto [flag, path] : {std::pair("-o", &options.output),
                            std::pair("--manifest", &options.manifest)})
    if (isSameFile(options.input, *path))
      return llvm::createStringError(llvm::formatv(
          "{0} names the input, {1}, which would be lost; choose another file",
          flag, *path));
  if (options.manifest == options.output && options.output != "-" &&
      !options.output.empty())
    return llvm::createStringError("-o and --manifest both name " +
                                   options.output +
                                   "; each needs a file of its own");
  if (!options.manifest.empty() && isStage(options.emit) &&
      options.emit != "nvvm")
    return llvm::createStringError("--manifest describes kernels, and --emit " +
                                   options.emit + " makes none");
  return llvm::Error::success();
}

static llvm::Error parseOptions(ArrayRef<const char *> arguments,
                                Options &options) {
  bool hostMemory = false;
  int64_t maxKernels = -1, density = -1;
  CommandLine line;
  line.addString("o", options.output);
  line.addString("manifest", options.manifest);
  line.addFlag("explain", options.explain);
  line.addFlag("print-support", options.printSupport);
  line.addFlag("host-memory", hostMemory);
  line.addFlag("version", options.version);
  line.addFlag("help", options.help);
  line.addFlag("h", options.help);
  line.addNumber<int64_t>("max-kernels", maxKernels, 1, 1000);
  line.addNumber<int64_t>("density", density, 0, 100);
  line.addValue("tokens", [&](StringRef text) -> llvm::Error {
    auto counts = parseTokenCounts(text);
    if (!counts)
      return counts.takeError();
    options.pipeline.tokens = *counts;
    return llvm::Error::success();
  });
  line.addNumber<int64_t>("candidates", options.candidates, 1, 1000);
  line.addValue("chip", [&](StringRef text) -> llvm::Error {
    if (getDefaultFeatures(text).empty())
      return llvm::createStringError("'" + text.str() +
                                     "' is not a known chip; expected one of " +
                                     llvm::join(getSupportedChips(), ", "));
    options.pipeline.chip = options.chip = text.str();
    return llvm::Error::success();
  });
  line.addValue("gpu", [&](StringRef text) {
    options.pipeline.gpu = text.str();
    return checkGPU(text);
  });
  line.addChoice("layout", options.pipeline.layout,
                 {"auto", "feature-major", "keep"});
  line.addChoice("storage", options.pipeline.storage,
                 {"auto", "canonical", "bitmap"});
  line.addChoice("pack", options.pipeline.pack, {"auto", "device", "host"});
  line.addChoice("launches", options.pipeline.launches, {"merged", "separate"});
  line.addValue("emit", [&](StringRef text) -> llvm::Error {
    if (text != "ptx" && text != "cubin" && !isStage(text))
      return llvm::createStringError("'" + text.str() + "' is not one of " +
                                     listStages());
    options.emit = text.str();
    return llvm::Error::success();
  });
  auto positional = line.parse(arguments);
  if (!positional)
    return positional.takeError();
  options.pipeline.hostMemory = hostMemory;
  if (llvm::Error error =
          chooseChip(options.chip, options.pipeline.gpu, options.pipeline))
    return error;
  if (maxKernels > 0)
    options.pipeline.maxKernels = maxKernels;
  options.saysDensity = density >= 0;
  if (options.saysDensity)
    options.pipeline.density = density;
  if (options.help || options.version || options.printSupport)
    return llvm::Error::success();
  if (positional->size() != 1)
    return llvm::createStringError(
        "expected one input file; --help shows the usage");
  options.input = positional->front();
  return checkFiles(options);
}

/// The options were checked.
static const Chip &getChip(const Options &options) {
  return *findChip(options.pipeline.chip, options.pipeline.gpu);
}

/// Standard output, unless a result goes there.
static llvm::raw_ostream &getLog(const Options &options) {
  return options.output == "-" || options.manifest == "-" ? llvm::errs()
                                                          : llvm::outs();
}

/// Says what `stage` did, which took `milliseconds`.
static void explain(const Stage &stage, ModuleOp module, const Options &options,
                    ArrayRef<ScheduledProduct> products, const OpCounts &before,
                    const OpCounts &after, double milliseconds) {
  llvm::raw_ostream &log = getLog(options);
  explainStage(log, stage.name, before, after, milliseconds);
  if (stage.name == "specialize")
    explainClasses(log, module);
  if (stage.name == "layout")
    explainTransposes(log, module, getChip(options),
                      getExpectedTokens(options.pipeline));
  if (stage.name == "schedule") {
    explainProducts(log, products);
    explainCandidates(log, module, getChip(options),
                      getExpectedTokens(options.pipeline));
  }
  if (stage.name == "nvvm")
    explainLaunches(log, module);
}

/// Runs the stages up to the one that `options` name, and collects `products`.
static llvm::Error runStages(ModuleOp module, const Options &options,
                             std::vector<ScheduledProduct> &products) {
  OpCounts before = countOps(module);
  for (const Stage &stage : getStages()) {
    auto start = std::chrono::steady_clock::now();
    if (llvm::Error error = runPipeline(
            module, ("stage " + stage.name).str(),
            [&](OpPassManager &pm) { stage.build(pm, options.pipeline); }))
      return error;
    std::chrono::duration<double, std::milli> time =
        std::chrono::steady_clock::now() - start;
    if (stage.name == "layout" && options.candidates)
      return llvm::Error::success();
    if (stage.name == "schedule") {
      products = collectProducts(module);
      warnOfSlowProducts(llvm::errs(), module, getChip(options),
                         getExpectedTokens(options.pipeline));
    }
    if (options.explain) {
      OpCounts after = countOps(module);
      explain(stage, module, options, products, before, after, time.count());
      before = std::move(after);
    }
    if (stage.name == options.emit && !options.candidates)
      break;
  }
  return llvm::Error::success();
}

/// Text or object code of the kernels; `assembled` is filled where they were
/// assembled.
static llvm::Expected<std::string>
makeKernels(ModuleOp module, const Options &options,
            std::optional<Assembled> &assembled) {
  auto ptx = translateToPTX(module);
  if (!ptx)
    return ptx.takeError();
  if (ptx->empty())
    return llvm::createStringError(
        options.input +
        " has no contraction with an encoded weight, so there is no kernel");
  if (options.emit == "cubin" || (options.explain && !findPtxas().empty())) {
    auto result = assemblePTX(*ptx, options.pipeline.chip);
    if (!result)
      return result.takeError();
    assembled = std::move(*result);
  }
  if (options.explain)
    explainPTX(getLog(options), *ptx,
               assembled ? &assembled->resources : nullptr);
  return options.emit == "cubin" ? assembled->cubin : std::move(*ptx);
}

/// Writes both files that `options` name, or none.
static llvm::Error writeFiles(const Options &options, std::string output,
                              std::string description) {
  auto file = OutputFile::create(options.output, std::move(output));
  if (!file)
    return file.takeError();
  if (!options.manifest.empty()) {
    auto manifest =
        OutputFile::create(options.manifest, std::move(description));
    if (!manifest) {
      file->discard();
      return manifest.takeError();
    }
    if (llvm::Error error = manifest->keep()) {
      file->discard();
      return error;
    }
  }
  return file->keep();
}

/// Whether a type or an attribute of `module` is of a weight of free elements.
static bool hasFreeWeights(ModuleOp module) {
  bool found = false;
  AttrTypeWalker walker;
  walker.addWalk([&](EncodingAttr encoding) { found |= encoding.isFree(); });
  module.walk([&](Operation *op) {
    walker.walk(op->getAttrDictionary());
    for (Type type : op->getResultTypes())
      walker.walk(type);
  });
  return found;
}

static llvm::Error compile(MLIRContext &context, const Options &options) {
  auto read = readModule(context, options.input);
  if (!read)
    return read.takeError();
  ModuleOp module = **read;
  if (options.saysDensity && !hasFreeWeights(module))
    llvm::errs() << "nm-compile: warning: --density says what free weights "
                    "keep, and there are none\n";
  std::vector<ScheduledProduct> products;
  if (llvm::Error error = runStages(module, options, products))
    return error;
  if (options.candidates)
    return printCandidates(module, getChip(options),
                           getExpectedTokens(options.pipeline),
                           options.candidates, llvm::outs());

  std::string output;
  std::optional<Assembled> assembled;
  if (isStage(options.emit)) {
    llvm::raw_string_ostream(output) << module << "\n";
  } else {
    auto kernels = makeKernels(module, options, assembled);
    if (!kernels)
      return kernels.takeError();
    output = std::move(*kernels);
  }

  std::string description;
  if (!options.manifest.empty()) {
    ErrorCollector errors(&context);
    auto manifest = makeManifest(module, products,
                                 assembled ? &assembled->resources : nullptr);
    if (failed(manifest))
      return llvm::createStringError(errors.getFirst());
    description =
        llvm::formatv("{0:2}\n", llvm::json::Value(std::move(*manifest))).str();
  } else if (!isStage(options.emit)) {
    std::string left = describeHostOps(module, options.pipeline.hostMemory);
    if (!left.empty())
      llvm::errs() << "nm-compile: warning: " << left << "\n";
  }
  return writeFiles(options, std::move(output), std::move(description));
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  Options options;
  if (llvm::Error error =
          parseOptions(ArrayRef<const char *>(argv + 1, argc - 1), options)) {
    llvm::errs() << "nm-compile: " << llvm::toString(std::move(error)) << "\n";
    return 2;
  }
  if (options.help) {
    llvm::outs() << usage << listStages() << "\n";
    return 0;
  }
  if (options.version) {
    llvm::outs() << describeVersion("nm-compile");
    return 0;
  }
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry);
  if (options.printSupport) {
    printSupport(context, llvm::outs());
    return 0;
  }
  if (llvm::Error error = compile(context, options)) {
    llvm::errs() << "nm-compile: " << llvm::toString(std::move(error)) << "\n";
    return 1;
  }
  return 0;
}
