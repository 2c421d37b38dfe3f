//===- DescribeOps.cpp - what is emulated, for people ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ops/Inline/InlineCompiler.h"
#include "Ops/OpTable.h"
#include "nm_sparse/Emulator/Emulator.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::nm_sparse;
using namespace mlir::nm_sparse::emulator;

/// The common prefix of all names, up to a dot; empty if it is the dialect.
static StringRef getCommonPrefix(ArrayRef<OpEntry> ops) {
  StringRef prefix = ops.front().name;
  for (const OpEntry &entry : ops)
    while (!entry.name.starts_with(prefix))
      prefix = prefix.drop_back();
  prefix = prefix.take_front(prefix.rfind('.') + 1);
  return prefix.count('.') > 1 ? prefix : "";
}

std::string nm_sparse::describeEmulatedOps() {
  std::string text;
  llvm::raw_string_ostream stream(text);
  auto printRow = [&](StringRef title, StringRef prefix, const auto &names) {
    stream << "| " << title << " | ";
    if (!prefix.empty())
      stream << "`" << prefix << "` and ";
    llvm::interleaveComma(names, stream, [&](StringRef name) {
      stream << "`" << name.drop_front(prefix.size()) << "`";
    });
    stream << " |\n";
  };
  stream << "| What | Operations |\n|---|---|\n";
  for (const OpTable &table : getOpTables())
    printRow(table.title, getCommonPrefix(table.ops),
             llvm::map_range(table.ops,
                             [](const OpEntry &entry) { return entry.name; }));
  stream << "\n| Inline PTX | Instructions |\n|---|---|\n";
  for (const auto &[family, forms] : listInlinePtx())
    printRow(family, "", forms);
  return text;
}
