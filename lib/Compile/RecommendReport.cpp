//===- RecommendReport.cpp - text and JSON of --recommend -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Recommend.h"
#include "Table.h"

#include "nm_sparse/Checkpoint/TensorFile.h"
#include "nm_sparse/Support/QuoteName.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace mlir;
using namespace mlir::nm_sparse;

static std::string count(size_t number, llvm::StringRef what) {
  return llvm::formatv("{0} {1}{2}", number, what, number == 1 ? "" : "s");
}

static std::string print(double value, int digits) {
  return llvm::formatv(("{0:f" + std::to_string(digits) + "}").c_str(), value);
}

/// How far `value` is from `from`, such as -12.5 %.
static std::string printChange(double value, double from) {
  double percent = 100 * (value / from - 1);
  return (percent < 0 ? "-" : "+") + print(std::fabs(percent), 1) + " %";
}

static TableRow describe(llvm::StringRef name, const ClockPrediction &what) {
  return {"  " + name.str(),           print(what.at.coreMHz, 0),
          print(what.at.memoryMHz, 0), print(what.seconds * 1e6, 1),
          print(what.watts, 0),        print(what.getJoules() * 1e3, 3)};
}

static void printAdvice(const ClockAdvice &advice, llvm::raw_ostream &os) {
  const ClockPrediction &own = advice.unlocked, &chosen = advice.chosen;
  printTable(os,
             {{"  clocks", "core MHz", "memory MHz", "us", "W", "mJ"},
              describe("without a lock", own),
              describe("advised", chosen),
              {"  change", printChange(chosen.at.coreMHz, own.at.coreMHz),
               printChange(chosen.at.memoryMHz, own.at.memoryMHz),
               printChange(chosen.seconds, own.seconds),
               printChange(chosen.watts, own.watts),
               printChange(chosen.getJoules(), own.getJoules())}},
             {1, 2, 3, 4, 5});
  os << "  knee: ";
  if (advice.kneeMHz > own.at.coreMHz)
    os << llvm::formatv("none up to {0:f0} MHz: the cores bound the kernel\n",
                        own.at.coreMHz);
  else
    os << llvm::formatv("{0:f0} MHz of the cores, beyond which the memory at "
                        "{1:f0} MHz bounds the kernel\n",
                        advice.kneeMHz, chosen.at.memoryMHz);
}

/// Where the parameters are from, and how far they are off.
static void printSource(const RecommendedProduct &product,
                        llvm::raw_ostream &os) {
  const FittedKernel &fitted = *product.fitted;
  if (product.layer) {
    os << "  fitted to this layer of the sweep, "
       << quoteName(product.layer->name)
       << llvm::formatv(", at {0}; off by {1:f1} % in time and {2:f1} % in "
                        "power\n",
                        count(product.layer->points.size(), "point"),
                        100 * *fitted.timeError, 100 * *fitted.powerError);
    if (product.hasOtherSchedule())
      os << "  it was recorded with another schedule, "
         << quoteName(product.layer->schedule) << "\n";
    return;
  }
  os << "  not in the sweep: by what the cost model counts and the sweep's "
        "other "
        "layers";
  if (fitted.timeError)
    os << llvm::formatv("; layers left out of that fit are off by {0:f1} % in "
                        "time and {1:f1} % in power\n",
                        100 * *fitted.timeError, 100 * *fitted.powerError);
  else
    os << "; how far this is off is not known, as the sweep has one layer\n";
}

void nm_sparse::printRecommendation(const ClockModel &model,
                                    ArrayRef<RecommendedProduct> products,
                                    double maxLoss, llvm::raw_ostream &os) {
  const ClockSweep &sweep = model.getSweep();
  os << llvm::formatv("{0}: {1}recorded on {2}, {3}\n", sweep.path,
                      sweep.isSynthetic ? "SYNTHETIC, as if " : "",
                      quoteName(sweep.gpu),
                      count(sweep.layers.size(), "layer"));
  for (const std::string &note : model.getNotes())
    os << "  " << note << "\n";
  for (const RecommendedProduct &product : products) {
    os << llvm::formatv("\n@{0}: {1}, {2} inputs, {3} outputs, {4}\n  {5}\n",
                        product.function,
                        count(size_t(product.tokens), "token"), product.inputs,
                        product.outputs, product.type, product.encoding);
    if (!product.fitted) {
      os << "  no advice: it is not in the sweep, which does not have what the "
            "cost model says of its layers\n";
      continue;
    }
    printSource(product, os);
    printAdvice(product.advice, os);
  }
  os << llvm::formatv(
      "\nAdvised are the clocks of the least predicted energy among those of "
      "the "
      "sweep that are predicted to\ntake at most {0:f0} % longer than the "
      "fastest. Nothing was measured there now, and no clock is set.\n",
      100 * maxLoss);
}

static llvm::json::Object toJSON(const ClockPrediction &what) {
  return llvm::json::Object{{"core_mhz", what.at.coreMHz},
                            {"memory_mhz", what.at.memoryMHz},
                            {"predicted_us", what.seconds * 1e6},
                            {"predicted_watts", what.watts},
                            {"predicted_mj", what.getJoules() * 1e3}};
}

static llvm::json::Object toJSON(const RecommendedProduct &product) {
  llvm::json::Object object{
      {"function", product.function}, {"type", product.type},
      {"batch", product.batch},       {"tokens", product.tokens},
      {"outputs", product.outputs},   {"inputs", product.inputs},
      {"encoding", product.encoding}, {"schedule", product.schedule}};
  object["layer"] = nullptr;
  if (product.layer) {
    object["layer"] = product.layer->name;
    object["recorded_schedule"] = product.layer->schedule;
  }
  if (!product.fitted) {
    object["error"] = "not in the sweep, which has no clock parts";
    return object;
  }
  const FittedKernel &fitted = *product.fitted;
  object["time_error"] = fitted.timeError;
  object["power_error"] = fitted.powerError;
  object["unlocked"] = toJSON(product.advice.unlocked);
  object["advised"] = toJSON(product.advice.chosen);
  object["knee_mhz"] = nullptr;
  if (std::isfinite(product.advice.kneeMHz))
    object["knee_mhz"] = product.advice.kneeMHz;
  return object;
}

llvm::json::Value nm_sparse::toJSON(const ClockModel &model,
                                    ArrayRef<RecommendedProduct> products,
                                    double maxLoss) {
  const ClockSweep &sweep = model.getSweep();
  llvm::json::Array notes, list;
  for (const std::string &note : model.getNotes())
    notes.push_back(note);
  for (const RecommendedProduct &product : products)
    list.push_back(::toJSON(product));
  return llvm::json::Object{{"sweep", sweep.path},
                            {"gpu", sweep.gpu},
                            {"synthetic", sweep.isSynthetic},
                            {"max_loss", maxLoss},
                            {"measured", false},
                            {"notes", std::move(notes)},
                            {"products", std::move(list)}};
}
