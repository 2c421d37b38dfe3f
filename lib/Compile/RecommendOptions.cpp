//===- RecommendOptions.cpp - command line of --recommend -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Options.h"
#include "nm_sparse/Support/CommandLine.h"
#include "nm_sparse/Support/OutputFile.h"

using namespace mlir;
using namespace mlir::nm_sparse;

void nm_sparse::addRecommendOptions(CommandLine &line,
                                    RecommendOptions &options) {
  line.addFlag("recommend", options.isAsked);
  line.addString("clocks", options.clocks);
  line.addNumber<int64_t>("max-loss", options.maxLoss, 0, 1000);
}

llvm::Error nm_sparse::checkRecommendOptions(const CompileOptions &options) {
  const RecommendOptions &recommend = options.recommend;
  if (!recommend.isAsked) {
    StringRef flag = findGiven({{"--clocks", !recommend.clocks.empty()},
                                {"--max-loss", recommend.maxLoss >= 0}});
    if (!flag.empty())
      return llvm::createStringError(flag.str() + " needs --recommend");
    return llvm::Error::success();
  }
  if (recommend.clocks.empty())
    return llvm::createStringError(
        "--recommend needs --clocks FILE, a sweep that bench/collect_clocks.py "
        "recorded (docs/Clocks.md)");
  StringRef flag = findGiven({{"-o", !options.output.empty()},
                              {"--manifest", !options.manifest.empty()},
                              {"--packed", !options.packed.empty()},
                              {"--candidates", options.candidates > 0},
                              {"--explain", options.explain},
                              {"--advise", options.advice.isAsked},
                              {"--list", options.list}});
  if (!flag.empty())
    return llvm::createStringError("--recommend only advises, and does nothing "
                                   "for " +
                                   flag.str() + "; leave out one of them");
  const std::string &json = options.advice.json;
  if (!json.empty() && isSameFile(recommend.clocks, json))
    return llvm::createStringError("--json names the sweep, " + json +
                                   ", which would be lost; choose another "
                                   "file");
  return llvm::Error::success();
}
