//===- Batch.cpp - many runs from a list ----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Pool.h"

#include "nm_sparse/Support/InputFile.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Allocator.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/StringSaver.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::nm_sparse;

int nm_sparse::runBatch(const RunOptions &options, llvm::json::Object header) {
  auto buffer = readInput(options.batch);
  if (!buffer) {
    llvm::errs() << "nm-run: " << llvm::toString(buffer.takeError()) << "\n";
    return 2;
  }
  std::vector<RunOptions> runs;
  std::vector<std::string> texts;
  SmallVector<StringRef> lines;
  (*buffer)->getBuffer().split(lines, '\n');
  for (auto [number, line] : llvm::enumerate(lines)) {
    StringRef text = line.trim();
    if (text.empty() || text.starts_with("#"))
      continue;
    llvm::BumpPtrAllocator allocator;
    llvm::StringSaver saver(allocator);
    SmallVector<const char *> arguments;
    llvm::cl::TokenizeGNUCommandLine(text, saver, arguments);
    auto parsed = parseRunOptions(arguments);
    if (!parsed || !parsed->batch.empty() || parsed->request.file.empty()) {
      llvm::errs() << "nm-run: " << options.batch << ":" << number + 1 << ": "
                   << (parsed ? "expected one input file"
                              : llvm::toString(parsed.takeError()))
                   << "\n";
      return 2;
    }
    runs.push_back(std::move(*parsed));
    texts.push_back(text.str());
  }

  size_t count = runs.size();
  PoolResults pool = runPool(options, std::move(runs), std::move(texts));
  llvm::outs() << count << " runs: " << pool.done - pool.failed - pool.errors
               << " passed, " << pool.failed << " failed, " << pool.errors
               << " could not run";
  if (pool.done < count)
    llvm::outs() << ", " << count - pool.done << " not begun in time";
  llvm::outs() << "\n";
  return finishPool(options, std::move(header), std::move(pool));
}
