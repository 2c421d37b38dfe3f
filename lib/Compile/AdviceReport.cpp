//===- AdviceReport.cpp - tables and JSON of --advise ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Advice.h"
#include "Explain.h"
#include "Table.h"

#include "nm_sparse/Chip/Chip.h"
#include "nm_sparse/Support/QuoteName.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <map>

using namespace mlir;
using namespace mlir::nm_sparse;

static std::string describeTokens(int64_t tokens) {
  return tokens == 1 ? "1 token" : std::to_string(tokens) + " tokens";
}

/// Names the product and its bound.
static std::string explain(const PatternTime &time) {
  if (time.bound.empty())
    return time.product;
  std::string text = time.product + ", bound by " + time.bound;
  if (time.measured)
    text += ", measured";
  return time.before.empty() ? text : text + ", with a " + time.before;
}

static std::string print(double value, int digits) {
  return llvm::formatv(("{0:f" + std::to_string(digits) + "}").c_str(), value);
}

static std::string printPercent(double share) {
  return print(100 * share, 1) + " %";
}

/// `dense`: predicted seconds of the dense product.
static TableRow describe(const PatternAdvice &row, const PatternTime &time,
                         double dense) {
  if (time.measured && time.measured->dense > 0)
    dense = time.measured->dense;
  TableRow cells = {std::string(time.isFastest ? "*" : " ") +
                        (time.isBest ? "+" : ""),
                    row.pattern, print(100 * (1 - row.density), 0) + " %",
                    print(time.getSeconds() * 1e6, 1),
                    print(dense / time.getSeconds(), 2) + "x"};
  if (time.energy) {
    cells.push_back(printMillijoules(time.energy->joules));
    cells.push_back(print(time.energy->getWatts(), 0));
  }
  cells.push_back(print(double(row.bytes) * 1e-6, 1));
  if (row.kept) {
    cells.push_back(printPercent(row.kept->importance));
    cells.push_back(printPercent(row.kept->outputError));
  }
  std::string storage = row.storage;
  if (row.embedded)
    storage +=
        llvm::formatv(" as {0}:{1}", row.embedded.getN(), row.embedded.getM());
  cells.push_back(storage);
  cells.push_back(explain(time));
  return cells;
}

/// The patterns that are compiled, for number `i` of the tokens.
static void printTimes(const Advice &advice, size_t i, llvm::raw_ostream &os) {
  std::vector<const PatternAdvice *> rows;
  for (const PatternAdvice &row : advice.patterns)
    if (row.times[i].isCompiled())
      rows.push_back(&row);
  llvm::sort(rows, [&](const auto *a, const auto *b) {
    return std::pair(a->times[i].getSeconds(), a) <
           std::pair(b->times[i].getSeconds(), b);
  });
  TableRow header = {"", "pattern", "zeros", "us", "speed"};
  if (advice.patterns.front().times[i].energy)
    header.insert(header.end(), {"mJ", "W"});
  header.emplace_back("MB");
  if (!advice.weight.empty())
    header.insert(header.end(), {"kept", "error"});
  auto numbers = llvm::to_vector(llvm::seq<size_t>(2, header.size()));
  header.insert(header.end(), {"storage", "what multiplies"});
  std::vector<TableRow> table = {header};
  double dense = advice.patterns.front().times[i].seconds;
  for (const PatternAdvice *row : rows)
    table.push_back(describe(*row, row->times[i], dense));
  os << "\n" << describeTokens(advice.tokens[i]) << "\n";
  printTable(os, table, numbers);
}

/// Why patterns are not compiled, and for which tokens.
static void printErrors(const Advice &advice, llvm::raw_ostream &os) {
  llvm::MapVector<
      std::pair<const PatternAdvice *, StringRef>, SmallVector<std::string>,
      std::map<std::pair<const PatternAdvice *, StringRef>, unsigned>>
      errors;
  for (const PatternAdvice &row : advice.patterns)
    for (const PatternTime &time : row.times)
      if (!time.isCompiled())
        errors[{&row, time.error}].push_back(std::to_string(time.tokens));
  if (errors.empty())
    return;
  os << "\nnot compiled\n";
  for (const auto &[key, tokens] : errors) {
    const PatternAdvice *row = key.first;
    os << "  " << row->pattern;
    if (row->kept)
      os << ", kept " << printPercent(row->kept->importance) << ", error "
         << printPercent(row->kept->outputError);
    if (tokens.size() < advice.tokens.size())
      os << ", " << llvm::join(tokens, ", ") << " tokens";
    os << ": " << key.second << "\n";
  }
}

/// Explains the marks and the columns of a weight.
static void printLegend(const Advice &advice, llvm::raw_ostream &os) {
  os << "\n* the fastest; times are predicted";
  if (advice.patterns.front().times.front().energy)
    os << ", and so are energy and power in a loop";
  bool isMeasured = llvm::any_of(advice.patterns, [](const auto &row) {
    return llvm::any_of(row.times, [](const PatternTime &time) {
      return time.measured.has_value();
    });
  });
  if (isMeasured)
    os << "; those that say so were measured, like those of dense products "
          "that "
          "they are compared with";
  os << "\n";
  if (advice.weight.empty())
    return;
  os << "+ nothing else is as fast and changes outputs as little\n"
     << "kept: share of the importance, which is the squares of the elements"
     << (advice.hasGram ? " times those of their inputs\n" : "\n")
     << "error: of the layer's outputs, relative, ";
  if (advice.hasGram)
    os << "after a fit of what is kept, of " << advice.fitted.size() << " of "
       << advice.shape.outputs << " outputs\n";
  else
    os << "if inputs are alike and independent; --gram says what they are\n";
}

void nm_sparse::printAdvice(const Advice &advice, llvm::raw_ostream &os) {
  if (!advice.weight.empty())
    os << StringRef(quoteName(advice.weight)).drop_front().drop_back() << ": ";
  os << llvm::formatv(
      "{0} inputs, {1} outputs, {2}, on {3} ({4}){5}\n", advice.shape.inputs,
      advice.shape.outputs, advice.shape.type->element, advice.chip->name,
      advice.chip->gpu,
      advice.chip->isEstimated ? ": estimates, as nobody has measured this GPU"
                               : "");
  for (size_t i = 0; i < advice.tokens.size(); ++i)
    printTimes(advice, i, os);
  printErrors(advice, os);
  printLegend(advice, os);
}

static llvm::json::Object describe(const PatternTime &time, bool hasWeight) {
  llvm::json::Object object{{"tokens", time.tokens}};
  if (!time.isCompiled()) {
    object["error"] = time.error;
    return object;
  }
  object["predicted_us"] = time.seconds * 1e6;
  if (const auto &measured = time.measured) {
    object["measured_us"] = measured->seconds * 1e6;
    if (measured->dense > 0)
      object["measured_dense_us"] = measured->dense * 1e6;
  }
  if (time.energy) {
    object["mj"] = time.energy->joules * 1e3;
    object["watts"] = time.energy->getWatts();
  }
  object["product"] = time.product;
  object["fastest"] = time.isFastest;
  if (hasWeight)
    object["best"] = time.isBest;
  if (!time.bound.empty()) {
    object["bound"] = time.bound;
    object["before"] = time.before;
    object["schedule"] = time.schedule;
  }
  return object;
}

static std::string print(EncodingAttr encoding) {
  std::string text;
  llvm::raw_string_ostream(text) << encoding;
  return text;
}

llvm::json::Value nm_sparse::toJSON(const Advice &advice) {
  llvm::json::Array patterns;
  for (const PatternAdvice &row : advice.patterns) {
    llvm::json::Array times;
    for (const PatternTime &time : row.times)
      times.push_back(describe(time, !advice.weight.empty()));
    llvm::json::Object pattern{{"pattern", row.pattern},
                               {"density", row.density},
                               {"bytes", row.bytes},
                               {"times", std::move(times)}};
    if (!row.isDense()) {
      pattern["encoding"] = print(row.encoding);
      pattern["storage"] = row.storage;
      if (row.embedded)
        pattern["embedded"] = print(row.embedded);
    }
    if (row.kept) {
      pattern["importance"] = row.kept->importance;
      pattern["output_error"] = row.kept->outputError;
      if (advice.hasGram && !row.isDense())
        pattern["ridge"] = row.kept->ridge;
    }
    patterns.push_back(std::move(pattern));
  }
  llvm::json::Object report{{"inputs", advice.shape.inputs},
                            {"outputs", advice.shape.outputs},
                            {"type", advice.shape.type->element},
                            {"chip", advice.chip->name},
                            {"gpu", advice.chip->gpu},
                            {"estimated", advice.chip->isEstimated},
                            {"patterns", std::move(patterns)}};
  if (!advice.weight.empty())
    report["weight"] = advice.weight;
  if (advice.hasGram)
    report["fitted_outputs"] = llvm::json::Array(advice.fitted);
  return report;
}
