//===- Compile.cpp - linalg to PTX ----------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Compile/Compile.h"
#include "Advice.h"
#include "CheckpointInput.h"
#include "Explain.h"
#include "Options.h"
#include "Recommend.h"
#include "mlir/Transforms/Passes.h"
#include "nm_sparse/Base/Error.h"
#include "nm_sparse/Chip/Chip.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "nm_sparse/GPU/Codegen.h"
#include "nm_sparse/Hosts/C/CSource.h"
#include "nm_sparse/Hosts/Transforms.h"
#include "nm_sparse/InitAll.h"
#include "nm_sparse/Pipelines/Pipelines.h"
#include "nm_sparse/Pipelines/Run.h"
#include "nm_sparse/Support/ErrorCollector.h"
#include "nm_sparse/Support/OutputFile.h"
#include "nm_sparse/Support/ReadModule.h"
#include "nm_sparse/Support/Version.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include <chrono>
#include <optional>

using namespace mlir;
using namespace mlir::nm_sparse;

/// The options were checked.
static const Chip &getChip(const CompileOptions &options) {
  return *findChip(options.pipeline.chip, options.pipeline.gpu);
}

/// Standard output, unless a result goes there.
static llvm::raw_ostream &getLog(const CompileOptions &options) {
  return options.output == "-" || options.manifest == "-" ? *options.host.err
                                                          : *options.host.out;
}

/// Says what `stage` did, which took `milliseconds`.
static void explain(const Stage &stage, ModuleOp module,
                    const CompileOptions &options,
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
                      getExpectedTokens(options.pipeline), options.objective);
  }
  if (stage.name == "nvvm")
    explainLaunches(log, module);
}

/// Runs the stages up to the one that `options` name, and collects `products`
/// and how the weights of `checkpoint` are stored.
static llvm::Error runStages(ModuleOp module, const CompileOptions &options,
                             std::vector<ScheduledProduct> &products,
                             CheckpointInput *checkpoint) {
  OpCounts before = countOps(module);
  for (const Stage &stage : getStages()) {
    auto start = std::chrono::steady_clock::now();
    if (llvm::Error error = runPipeline(
            module, ("stage " + stage.name).str(),
            [&](OpPassManager &pm) { stage.build(pm, options.pipeline); }))
      return error;
    std::chrono::duration<double, std::milli> time =
        std::chrono::steady_clock::now() - start;
    if (stage.name == "front" && checkpoint)
      if (llvm::Error error = checkpoint->findStorage(module))
        return error;
    if (stage.name == "layout" && options.candidates)
      return llvm::Error::success();
    if (stage.name == "schedule") {
      products = collectProducts(module);
      warnOfSlowProducts(*options.host.err, module, getChip(options),
                         getExpectedTokens(options.pipeline));
    }
    if (options.explain) {
      OpCounts after = countOps(module);
      explain(stage, module, options, products, before, after, time.count());
      before = std::move(after);
    }
    // Where no kernels are asked for, weights still are.
    bool isLast = options.recommend.isAsked ? stage.name == "schedule"
                  : options.output.empty() || options.emit == kInputStage
                      ? stage.name == "front"
                      : stage.name == options.emit;
    if (isLast && !options.candidates)
      break;
  }
  return llvm::Error::success();
}

static llvm::Error makeNoKernelError(const CompileOptions &options) {
  return llvm::createStringError(
      options.input +
      " has no contraction with an encoded weight, so there is no kernel");
}

/// Fails when a module inside of `module` holds an encoded weight: stages look
/// at the functions of the outermost one.
static llvm::Error checkNesting(ModuleOp module,
                                const CompileOptions &options) {
  WalkResult result = module.walk([&](Operation *op) {
    bool isEncoded = llvm::any_of(op->getOperandTypes(), [](Type type) {
      return getEncoding(type) != nullptr;
    });
    return isEncoded && op->getParentOfType<ModuleOp>() != module
               ? WalkResult::interrupt()
               : WalkResult::advance();
  });
  if (!result.wasInterrupted())
    return llvm::Error::success();
  return llvm::createStringError(
      options.input + " has a contraction with an encoded weight in a module "
                      "inside of its outermost one, where nothing is compiled: "
                      "move its functions there");
}

/// The kernels as text that the emulator takes.
static llvm::Expected<std::string>
makeEmulatorImage(ModuleOp module, const CompileOptions &options) {
  auto kernels = module.getOps<gpu::GPUModuleOp>();
  if (kernels.empty())
    return makeNoKernelError(options);
  if (!llvm::hasSingleElement(kernels))
    return llvm::createStringError(
        "--emit emulator takes one gpu.module, and there are several");
  return printKernels(*kernels.begin());
}

/// Text or object code of the kernels; `assembled` is filled where they were
/// assembled.
static llvm::Expected<std::string>
makeKernels(ModuleOp module, const CompileOptions &options,
            std::optional<Assembled> &assembled) {
  StringRef form = isHost(options.emit) ? options.object : options.emit;
  if (form == "emulator")
    return makeEmulatorImage(module, options);
  auto ptx = translateToPTX(module);
  if (!ptx)
    return ptx.takeError();
  if (ptx->empty())
    return makeNoKernelError(options);
  if (form == "cubin" || (options.explain && !findPtxas().empty())) {
    auto result = assemblePTX(*ptx, options.pipeline.chip);
    if (!result)
      return result.takeError();
    assembled = std::move(*result);
  }
  if (options.explain)
    explainPTX(getLog(options), *ptx, assembled ? &*assembled : nullptr);
  return form == "cubin" ? assembled->cubin : std::move(*ptx);
}

/// The contents of the files beside the weights.
struct Outputs {
  std::string main, header, manifest;
};

/// The module inside a model for another compiler that has its sparse programs.
static constexpr llvm::StringLiteral kPrograms = "nm_sparse_programs";

/// Moves the sparse programs of `model` to a module of their own.
static llvm::Expected<OwningOpRef<ModuleOp>>
splitModel(ModuleOp model, const CompileOptions &options) {
  if (llvm::Error error = runPipeline(model, "inlining", [](OpPassManager &pm) {
        pm.addPass(createInlinerPass());
      }))
    return std::move(error);
  ErrorCollector errors(model.getContext());
  if (failed(outlinePrograms(model, kPrograms)))
    return llvm::createStringError(errors.getFirst());
  auto programs = model.lookupSymbol<ModuleOp>(kPrograms);
  if (!programs)
    return makeNoKernelError(options);
  programs->remove();
  return OwningOpRef<ModuleOp>(programs);
}

/// Puts functions that launch the kernels in place of the kernels alone.
/// `model` calls them, where there is one.
static llvm::Error writeHost(const CompileOptions &options, ModuleOp model,
                             Outputs &outputs) {
  nms::Manifest manifest;
  if (!nms::Manifest::parse(outputs.manifest, manifest))
    return llvm::createStringError(nmsLastError());
  if (options.emit == "iree") {
    ErrorCollector errors(model.getContext());
    auto written =
        writeIREEModule(model, kPrograms, manifest, outputs.main, options.iree);
    if (!written)
      return written.takeError();
    auto described = addParameters(outputs.manifest, written->parameters);
    if (!described)
      return described.takeError();
    outputs.main = std::move(written->text);
    outputs.manifest = std::move(*described);
    return llvm::Error::success();
  }
  auto source = writeCSource(manifest, outputs.main,
                             llvm::sys::path::stem(options.output));
  if (!source)
    return source.takeError();
  outputs.main = std::move(source->source);
  outputs.header = std::move(source->header);
  return llvm::Error::success();
}

/// Returns true for standard output, devices and pipes, which are written to
/// rather than replaced.
static bool isStream(StringRef path) {
  return path == "-" ||
         (llvm::sys::fs::exists(path) && !llvm::sys::fs::is_regular_file(path));
}

/// Writes all files that `options` name, or none.
static llvm::Error writeFiles(const CompileOptions &options, Outputs outputs,
                              const CheckpointInput *checkpoint) {
  // Streams first: if one fails, no file has got its name yet.
  SmallVector<OutputFile, 4> streams, files;
  llvm::Error error = llvm::Error::success();
  auto add = [&](StringRef path,
                 llvm::function_ref<llvm::Expected<OutputFile>()> create) {
    if (error || path.empty())
      return;
    if (!options.host.files && llvm::sys::fs::is_directory(path)) {
      error = llvm::createStringError("cannot write " + path +
                                      ": it is a directory");
      return;
    }
    llvm::Expected<OutputFile> file = create();
    if (file)
      (isStream(path) ? streams : files).push_back(std::move(*file));
    else
      error = file.takeError();
  };
  auto addText = [&](StringRef path, std::string &text) {
    add(path, [&] { return options.host.createFile(path, std::move(text)); });
  };
  add(options.packed, [&] { return checkpoint->pack(options.packed); });
  addText(options.manifest, outputs.manifest);
  if (!outputs.header.empty())
    addText(getHeaderPath(options.output), outputs.header);
  addText(options.output, outputs.main);
  for (SmallVectorImpl<OutputFile> *list : {&streams, &files})
    for (OutputFile &file : *list) {
      if (error)
        file.discard();
      else
        error = file.keep();
    }
  return error;
}

/// Returns true if a type or an attribute of `module` is of a weight of free
/// elements.
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

static llvm::Expected<OwningOpRef<ModuleOp>>
readProgram(MLIRContext &context, const CompileOptions &options) {
  if (options.input == "-" && options.host.program)
    return parseModule(context, *options.host.program, "<program>");
  return readModule(context, options.input);
}

static llvm::Error compile(MLIRContext &context,
                           const CompileOptions &options) {
  std::optional<CheckpointInput> checkpoint;
  if (!options.checkpoint.empty()) {
    auto opened = CheckpointInput::open(options);
    if (!opened)
      return opened.takeError();
    checkpoint = std::move(*opened);
  }
  auto read = checkpoint ? checkpoint->makeModule(context)
                         : readProgram(context, options);
  if (!read)
    return read.takeError();
  ModuleOp module = **read;
  if (llvm::Error error = checkNesting(module, options))
    return error;
  if (llvm::Error error = bindWeights(module, options.bindings))
    return error;
  if (options.saysDensity && !hasFreeWeights(module))
    *options.host.err << "nm-compile: warning: --density says what free "
                         "weights keep, and there are none\n";
  std::string program;
  if (options.emit == kInputStage)
    llvm::raw_string_ostream(program) << module << "\n";
  OwningOpRef<ModuleOp> programs;
  if (options.emit == "iree") {
    auto split = splitModel(module, options);
    if (!split)
      return split.takeError();
    programs = std::move(*split);
    module = *programs;
  }
  std::vector<ScheduledProduct> products;
  if (llvm::Error error = runStages(module, options, products,
                                    checkpoint ? &*checkpoint : nullptr))
    return error;
  if (options.candidates)
    return printCandidates(
        module, getChip(options), getExpectedTokens(options.pipeline),
        options.candidates, options.objective, *options.host.out);
  if (options.recommend.isAsked)
    return recommend(module, options);

  Outputs outputs;
  std::optional<Assembled> assembled;
  if (options.output.empty()) {
    // The weights alone are written.
  } else if (options.emit == kInputStage) {
    outputs.main = std::move(program);
  } else if (isStage(options.emit)) {
    llvm::raw_string_ostream(outputs.main) << module << "\n";
  } else {
    auto kernels = makeKernels(module, options, assembled);
    if (!kernels)
      return kernels.takeError();
    outputs.main = std::move(*kernels);
  }

  if (!options.manifest.empty() || isHost(options.emit)) {
    ErrorCollector errors(&context);
    auto manifest = makeManifest(
        module, products, assembled ? &assembled->resources : nullptr,
        isHost(options.emit) ? "--emit " + options.emit : "--manifest");
    if (failed(manifest))
      return llvm::createStringError(errors.getFirst());
    outputs.manifest =
        llvm::formatv("{0:2}\n", llvm::json::Value(std::move(*manifest))).str();
  } else if (!isStage(options.emit) && !options.output.empty()) {
    std::string left = describeHostOps(module, options.pipeline.hostMemory);
    if (!left.empty())
      *options.host.err << "nm-compile: warning: " << left << "\n";
  }
  if (isHost(options.emit))
    if (llvm::Error error = writeHost(options, **read, outputs))
      return error;
  return writeFiles(options, std::move(outputs),
                    checkpoint ? &*checkpoint : nullptr);
}

int nm_sparse::runCompiler(ArrayRef<const char *> arguments,
                           const CompileHost &host) {
  CompileOptions options;
  options.host = host;
  if (llvm::Error error = parseCompileOptions(arguments, options)) {
    *host.err << "nm-compile: " << llvm::toString(std::move(error)) << "\n";
    return 2;
  }
  if (options.help) {
    *host.out << describeUsage();
    return 0;
  }
  if (options.version) {
    *host.out << describeVersion("nm-compile");
    return 0;
  }
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry);
  if (options.printSupport) {
    printSupport(context, *host.out);
    return 0;
  }
  if (llvm::Error error = options.list ? printWeights(options, *host.out)
                          : options.advice.isAsked
                              ? advise(context, options)
                              : compile(context, options)) {
    *host.err << "nm-compile: " << llvm::toString(std::move(error)) << "\n";
    return 1;
  }
  return 0;
}
