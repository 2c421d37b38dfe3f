//===- HostOptions.cpp - options of --emit c and --emit iree --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Options.h"

#include "nm_sparse/Support/CommandLine.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace mlir::nm_sparse;

std::string nm_sparse::getHeaderPath(StringRef source) {
  return (source.drop_back() + "h").str();
}

bool nm_sparse::isHost(StringRef name) { return name == "c" || name == "iree"; }

void nm_sparse::addHostOptions(CommandLine &line, CompileOptions &options,
                               HostForm &form) {
  line.addChoice("arguments", form.arguments,
                 {"fields", "bound", "device-maps"});
  line.addChoice("object", form.object, {"ptx", "cubin", "emulator"});
  line.addChoice("iree-version", form.version,
                 llvm::to_vector(getIREEVersions()));
  line.addChoice("weights", form.weights, {"parameters", "arguments"});
  line.addValue("parameter", [&](StringRef text) {
    text.consume_front("%");
    options.iree.parameters.push_back(text.str());
    return llvm::Error::success();
  });
}

/// The options that only a file for IREE has.
static llvm::Error chooseIREEForm(const HostForm &form,
                                  CompileOptions &options) {
  if (options.emit == "iree") {
    if (!form.version.empty())
      options.iree.version = form.version;
    options.iree.hasParameters = form.weights != "arguments";
    if (!options.iree.hasParameters && !options.iree.parameters.empty())
      return llvm::createStringError(
          "--parameter makes arguments parameters, and --weights arguments "
          "has none; leave out one of them");
    return llvm::Error::success();
  }
  StringRef given =
      findGiven({{"--iree-version", !form.version.empty()},
                 {"--weights", !form.weights.empty()},
                 {"--parameter", !options.iree.parameters.empty()}});
  if (given.empty())
    return llvm::Error::success();
  return llvm::createStringError(given.str() + " needs --emit iree");
}

/// A host takes kernels of one form.
llvm::Error nm_sparse::chooseHostForm(const HostForm &form,
                                      CompileOptions &options) {
  if (llvm::Error error = chooseIREEForm(form, options))
    return error;
  if (!isHost(options.emit)) {
    if (!form.object.empty())
      return llvm::createStringError(
          "--object says how a host's file holds the kernels, and --emit " +
          options.emit + " writes none; leave it out");
    if (!form.arguments.empty())
      options.pipeline.arguments = form.arguments;
    return llvm::Error::success();
  }
  StringRef arguments = options.emit == "c" ? "bound" : "device-maps";
  if (!form.arguments.empty() && form.arguments != arguments)
    return llvm::createStringError(
        llvm::formatv("--emit {0} takes kernels with --arguments {1}, not {2}; "
                      "leave it out",
                      options.emit, arguments, form.arguments));
  options.pipeline.arguments = arguments.str();
  options.pipeline.exactResults = true;
  if (!form.object.empty())
    options.object = form.object;
  if (options.emit != "c" || options.help || options.version)
    return llvm::Error::success();
  StringRef stem = options.output;
  if (!stem.consume_back(".c") || llvm::sys::path::filename(stem).empty())
    return llvm::createStringError(
        "--emit c writes FILE.c, and FILE.h beside it: end the name in -o with "
        ".c, not '" +
        options.output + "'");
  return llvm::Error::success();
}
