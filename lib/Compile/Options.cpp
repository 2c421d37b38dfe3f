//===- Options.cpp - command line of nm-compile ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Options.h"

#include "nm_sparse/Analysis/Objective.h"
#include "nm_sparse/Chip/Chip.h"
#include "nm_sparse/Pipelines/Run.h"
#include "nm_sparse/Support/CommandLine.h"
#include "nm_sparse/Support/OutputFile.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"

using namespace mlir;
using namespace mlir::nm_sparse;

static constexpr const char *usage =
    R"(usage: nm-compile IN.mlir -o OUT [options]
       nm-compile --checkpoint MODEL -o OUT [options]
       nm-compile --advise --shape K=4096,N=14336 [options]
Compiles linalg with sparse weights to GPU kernels.

  -o OUT             output file; - is standard output
  --chip C           GPU to compile for; default sm_90a
  --gpu G            GPU whose rates to choose kernels by, such as h100; default
                     h200 where the chip is sm_90a. It names the chip, too
  --emit WHAT        ptx (default), cubin, emulator (the kernels as text that the
                     emulator takes in place of PTX), c (functions of C that
                     launch them; OUT ends in .c, and a header is written beside
                     it, docs/Hosts.md), iree (the model for iree-compile,
                     docs/IREE.md), or the IR after a stage; linalg is the
                     program itself, as it was read or made of a checkpoint
  --object WHAT      in which form c and iree hold the kernels: ptx (default),
                     cubin or emulator
  --iree-version V   of IREE that reads the model: 3.13 (default) or 3.12
  --weights HOW      for IREE: parameters (default; PARAMETER.COMPONENT of the
                     scope `model`) or arguments
  --parameter NAME   for IREE: argument %NAME is a parameter, too; may be given
                     again
  --manifest FILE    also write how to launch the kernels, as JSON
  --host-memory      callers pass host memory: copy it to the device and back
  --tokens LIST      where the number of tokens is dynamic: auto (default; what
                     is compiled serves any number, with kernels as the model
                     says), or the numbers to compile for, such as 16,2048
  --max-kernels N    with --tokens, compile for at most N numbers; default 8
  --layout L         of activations between products: auto (default; as the
                     model says), feature-major, or keep
  --objective O      what schedules are compared by: time (default), energy, or
                     edp, energy times time (docs/Energy.md)
  --tuned FILE       take schedules that were measured from this database, where
                     it has some (docs/Tuning.md); may be given again, and be
                     empty for none. Default: those that NM_SPARSE_TUNED names,
                     between colons
  --storage S        of packed weights: auto (default; as the pattern and the
                     elements say), canonical, bitmap or k_major
  --embed HOW        weights of other patterns that are 2:4, too, such as all of
                     1:4, as 2:4 for sparse tensor cores, and those of two
                     levels by their elements: auto (default; where the model
                     says that this is faster), always or never
  --embed-checked    also arguments and weights packed at run time whose pattern
                     need not be 2:4: packing them fails if they are not
  --density P        percent of the elements that free weights are expected to
                     keep, by which schedules are chosen; default 50
  --bind W=FILE      make argument %W of the only public function a constant, of
                     FILE.safetensors or, where that has several tensors, of
                     FILE.safetensors:TENSOR; may be given again
  --specialize-constants
                     weights that are constants may become code of kernels,
                     where the model says that this is faster
  --max-code-bytes N of instructions at most for each of them; default 3145728
  --pack WHERE       weights that the program packs when it runs: auto (default;
                     by a kernel if one can, but with --host-memory on the
                     host), device (by a kernel), or host
  --launches HOW     of products of few tokens: merged (default; those of the
                     same activations are one) or separate
  --arguments HOW    what kernels take: fields (default; of each array all that a
                     manifest lists), bound (pointers, tensor maps by value and
                     32-bit numbers), or device-maps (as bound, and kernels make
                     the tensor maps; docs/Hosts.md)
  --candidates N     print the N best schedules of each family of kernels, for
                     each sparse matmul, and what the model predicts, as JSON,
                     and stop
  --checkpoint MODEL instead of IN.mlir, compile linear layers of the 2:4 weights
                     of a .safetensors file, an index of several, or a folder
                     (docs/Checkpoints.md)
  --weight NAME      of the checkpoint, compile this one alone; may be given
                     again, and be a pattern such as 'model.layers.0.*'
  --packed FILE      also write the weights as the kernels read them, as
                     safetensors; then -o may be left out
  --list             print the weights of the checkpoint and how far they are
                     2:4, and stop
  --advise           compare sparsity patterns for a layer, by predicted time and
                     by what they keep of a weight, and stop (docs/Advise.md).
                     The layer is of this --shape, or a --weight of a --checkpoint
  --shape K=I,N=O    inputs and outputs of the layer
  --type T           type of its elements; default that of the weight, or f16
  --pattern P        compare this pattern alone, such as '8:32, block = [1, 64]';
                     may be given again
  --gram FILE[:NAME] X^T X of the layer's inputs X, a tensor of a .safetensors
                     file: also say how far outputs change at least
  --fit-rows N       of that many outputs, drawn at random; default 32
  --recommend        print the clocks at which each sparse matmul is predicted to
                     take the least energy, and stop; nothing is set
  --clocks FILE      by this sweep over clocks, recorded on the same kind of GPU
                     (docs/Clocks.md)
  --max-loss P       of clocks that make it at most P percent slower; default 5
  --json FILE        write what --advise or --recommend finds as JSON; - is
                     standard output
  --explain          say what each stage did, and which schedules the model
                     compared (docs/Schedule.md lists their fields)
  --print-support    print what can be compiled, as tables, and stop
  --version          print which build this is, and stop

Stages: )";

static std::string listStages() {
  std::string names = kInputStage.str() + ", ";
  for (const Stage &stage : getStages())
    names += (stage.name + ", ").str();
  return names + "ptx, cubin, emulator, c, iree";
}

std::string nm_sparse::describeUsage() { return usage + listStages() + "\n"; }

bool nm_sparse::isStage(StringRef name) {
  return name == kInputStage ||
         llvm::any_of(getStages(),
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

/// The chip, and what schedules for it are compared by.
static llvm::Error chooseTarget(CompileOptions &options) {
  GPUPipelineOptions &pipeline = options.pipeline;
  if (llvm::Error error = chooseChip(options.chip, pipeline.gpu, pipeline))
    return error;
  auto objective = parseObjective(pipeline.objective,
                                  *findChip(pipeline.chip, pipeline.gpu));
  if (!objective)
    return objective.takeError();
  options.objective = *objective;
  return llvm::Error::success();
}

static llvm::Error checkGPU(StringRef gpu) {
  if (findGPU(gpu))
    return llvm::Error::success();
  return llvm::createStringError("'" + gpu.str() +
                                 "' is not a known GPU; expected one of " +
                                 llvm::join(getGPUs(), ", "));
}

/// Options that name files, and these.
static SmallVector<std::pair<StringRef, std::string>>
getOutputs(const CompileOptions &options) {
  SmallVector<std::pair<StringRef, std::string>> outputs = {
      {"-o", options.output},
      {"-o, for its header,",
       options.emit == "c" ? getHeaderPath(options.output) : ""},
      {"--manifest", options.manifest},
      {"--packed", options.packed}};
  llvm::erase_if(outputs, [](auto &output) { return output.second.empty(); });
  return outputs;
}

llvm::Error nm_sparse::checkInput(const CompileOptions &options,
                                  StringRef input) {
  for (const auto &[flag, path] : getOutputs(options))
    if (isSameFile(input, path))
      return llvm::createStringError(llvm::formatv(
          "{0} names the input, {1}, which would be lost; choose another file",
          flag, path));
  return llvm::Error::success();
}

/// Returns true if two outputs would replace each other; devices take both.
static bool isOneFile(StringRef a, StringRef b) {
  bool isDevice =
      llvm::sys::fs::exists(a) && !llvm::sys::fs::is_regular_file(a);
  return a != "-" && (a == b || (!isDevice && isSameFile(a, b)));
}

/// Checks the files that are written.
static llvm::Error checkFiles(const CompileOptions &options) {
  bool packsOnly = !options.packed.empty() && options.manifest.empty();
  if (options.output.empty() && !options.candidates && !options.list &&
      !packsOnly && !options.recommend.isAsked)
    return llvm::createStringError("-o OUT is missing; - is standard output");
  if (llvm::Error error = checkInput(options, options.input))
    return error;
  for (const WeightBinding &binding : options.bindings)
    if (llvm::Error error = checkInput(options, binding.file))
      return error;
  for (const std::string &database : options.tuned)
    if (llvm::Error error = checkInput(options, database))
      return error;
  auto outputs = getOutputs(options);
  for (auto [i, a] : llvm::enumerate(outputs))
    for (auto b : ArrayRef(outputs).drop_front(i + 1))
      if (isOneFile(a.second, b.second))
        return llvm::createStringError(
            llvm::formatv("{0} and {1} both name {2}; each needs a file of its "
                          "own",
                          a.first, b.first, a.second));
  if (!options.manifest.empty() && isStage(options.emit) &&
      options.emit != "nvvm")
    return llvm::createStringError("--manifest describes kernels, and --emit " +
                                   options.emit + " makes none");
  return llvm::Error::success();
}

static void addCheckpointOptions(CommandLine &line, CompileOptions &options) {
  line.addString("checkpoint", options.checkpoint);
  line.addString("packed", options.packed);
  line.addFlag("list", options.list);
  line.addValue("weight", [&](StringRef text) {
    options.weights.push_back(text.str());
    return llvm::Error::success();
  });
}

/// Chooses the input: a program or a checkpoint.
static llvm::Error chooseInput(ArrayRef<std::string> positional,
                               CompileOptions &options) {
  bool isCheckpoint = !options.checkpoint.empty();
  if (llvm::Error error = checkAdviceOptions(options, positional))
    return error;
  if (llvm::Error error = checkRecommendOptions(options))
    return error;
  for (auto [flag, isGiven] : {std::pair("--list", options.list),
                               std::pair("--weight", !options.weights.empty()),
                               std::pair("--packed", !options.packed.empty())})
    if (isGiven && !isCheckpoint)
      return llvm::createStringError(
          llvm::formatv("{0} needs a --checkpoint", flag));
  if (options.advice.isAsked)
    return llvm::Error::success();
  if (isCheckpoint && !positional.empty())
    return llvm::createStringError(
        llvm::formatv("--checkpoint takes the place of the input file, and {0} "
                      "is one; leave out one of them",
                      positional.front()));
  if (!isCheckpoint && positional.size() != 1)
    return llvm::createStringError(
        "expected one input file; --help shows the usage");
  options.input = isCheckpoint ? options.checkpoint : positional.front();
  return checkFiles(options);
}

/// Adds the options for the target and for the comparison of schedules.
static void addTargetOptions(CommandLine &line, CompileOptions &options) {
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
  line.addChoice("objective", options.pipeline.objective,
                 {"time", "energy", "edp"});
  line.addValue("tuned", [&](StringRef text) {
    options.tuned.push_back(text.str());
    return llvm::Error::success();
  });
}

/// The compiler's own database for the GPU that kernels are chosen for; empty
/// where it has none.
static std::string findOwnDatabase(const CompileOptions &options) {
  const GPUPipelineOptions &pipeline = options.pipeline;
  if (options.host.databases.empty())
    return "";
  StringRef gpu = findChip(pipeline.chip, pipeline.gpu)->gpu;
  SmallString<128> path(options.host.databases);
  llvm::sys::path::append(path, gpu + ".jsonl");
  return llvm::sys::fs::exists(path) ? path.str().str() : "";
}

/// The databases of measured schedules.
static void chooseTuned(CompileOptions &options) {
  if (options.tuned.empty()) {
    if (std::optional<std::string> names =
            llvm::sys::Process::GetEnv("NM_SPARSE_TUNED")) {
      SmallVector<StringRef> files;
      StringRef(*names).split(files, llvm::sys::EnvPathSeparator, -1,
                              /*KeepEmpty=*/false);
      options.tuned.assign(files.begin(), files.end());
    } else {
      options.tuned.push_back(findOwnDatabase(options));
    }
  }
  // An empty name is none.
  llvm::erase(options.tuned, "");
  options.pipeline.tuned = options.tuned;
}

llvm::Error nm_sparse::parseCompileOptions(ArrayRef<const char *> arguments,
                                           CompileOptions &options) {
  bool hostMemory = false, embedChecked = false, specializeConstants = false;
  int64_t maxKernels = -1, density = -1, maxCodeBytes = -1;
  CommandLine line;
  addCheckpointOptions(line, options);
  addAdviceOptions(line, options.advice);
  addRecommendOptions(line, options.recommend);
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
  addTargetOptions(line, options);
  line.addChoice("layout", options.pipeline.layout,
                 {"auto", "feature-major", "keep"});
  line.addChoice("storage", options.pipeline.storage,
                 {"auto", "canonical", "bitmap", "k_major"});
  line.addChoice("embed", options.pipeline.embed, {"auto", "always", "never"});
  line.addFlag("embed-checked", embedChecked);
  line.addValue("bind", [&](StringRef text) -> llvm::Error {
    auto binding = WeightBinding::parse(text);
    if (!binding)
      return binding.takeError();
    options.bindings.push_back(std::move(*binding));
    return llvm::Error::success();
  });
  line.addFlag("specialize-constants", specializeConstants);
  line.addNumber<int64_t>("max-code-bytes", maxCodeBytes, 1, INT64_MAX);
  line.addChoice("pack", options.pipeline.pack, {"auto", "device", "host"});
  line.addChoice("launches", options.pipeline.launches, {"merged", "separate"});
  line.addValue("emit", [&](StringRef text) -> llvm::Error {
    bool isImage = text == "ptx" || text == "cubin" || text == "emulator";
    if (!isImage && !isStage(text) && !isHost(text))
      return llvm::createStringError("'" + text.str() + "' is not one of " +
                                     listStages());
    options.emit = text.str();
    return llvm::Error::success();
  });
  HostForm form;
  addHostOptions(line, options, form);
  auto positional = line.parse(arguments);
  if (!positional)
    return positional.takeError();
  if (llvm::Error error = chooseHostForm(form, options))
    return error;
  options.pipeline.hostMemory = hostMemory;
  options.pipeline.embedChecked = embedChecked;
  options.pipeline.specializeConstants = specializeConstants;
  if (maxCodeBytes > 0)
    options.pipeline.maxCodeBytes = maxCodeBytes;
  if (llvm::Error error = chooseTarget(options))
    return error;
  chooseTuned(options);
  if (maxKernels > 0)
    options.pipeline.maxKernels = maxKernels;
  options.saysDensity = density >= 0;
  if (options.saysDensity)
    options.pipeline.density = density;
  if (options.help || options.version || options.printSupport)
    return llvm::Error::success();
  return chooseInput(*positional, options);
}
