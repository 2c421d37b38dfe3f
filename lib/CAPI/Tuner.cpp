//===- Tuner.cpp - the search for schedules behind a C interface ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse-c/Tuner.h"

#include "nm_sparse/Chip/Chip.h"
#include "nm_sparse/Runtime/Error.h"
#include "nm_sparse/Support/Version.h"
#include "nm_sparse/Tuner/DeviceMeter.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::nm_sparse;

struct NmSparseTuner {
  NmSparseTuner(const TuneTarget &target, ArrayRef<int64_t> tokens)
      : target(target), finder(target, tokens) {}

  TuneTarget target;
  TunableFinder finder;
  std::string list; ///< The text that nmSparseTunerList returned.
};

/// Records `error` as the runtime's last one.
static int record(llvm::Error error) {
  nmsSetLastError(llvm::toString(std::move(error)).c_str());
  return 1;
}

static llvm::Expected<TuneTarget> makeTarget(StringRef gpu,
                                             StringRef objective) {
  const Chip *chip = findGPU(gpu);
  if (!chip)
    return llvm::createStringError(llvm::formatv(
        "gpu is '{0}': legal is one of {1}", gpu, llvm::join(getGPUs(), ", ")));
  auto parsed = parseObjective(objective, *chip);
  if (!parsed)
    return parsed.takeError();
  return TuneTarget{chip, *parsed};
}

NmSparseTuner *nmSparseTunerCreate(const char *gpu, const char *objective,
                                   const int64_t *tokens, int32_t count) {
  ArrayRef numbers(tokens, size_t(count));
  auto target = makeTarget(gpu, objective);
  if (!target) {
    record(target.takeError());
    return nullptr;
  }
  for (int64_t number : numbers)
    if (number < 1) {
      record(llvm::createStringError(
          llvm::formatv("tokens has {0}: legal are 1 and more", number)));
      return nullptr;
    }
  return new NmSparseTuner(*target, numbers);
}

int nmSparseTunerAdd(NmSparseTuner *tuner, const char *program, size_t bytes,
                     const char *label, int32_t isOfModel) {
  TunableSource source = {std::string(program, bytes), label, isOfModel != 0};
  std::string fault = tuner->finder.add(source).front();
  return fault.empty() ? 0 : record(llvm::createStringError(fault));
}

static std::string print(llvm::json::Value value) {
  return llvm::formatv("{0}", std::move(value));
}

const char *nmSparseTunerList(NmSparseTuner *tuner) {
  llvm::json::Array products, skipped;
  for (const TunableProduct &product : tuner->finder.getProducts()) {
    llvm::json::Object own = toJSON(product.problem);
    own["names"] = llvm::json::Array(product.names);
    products.push_back(std::move(own));
  }
  for (const SkippedProduct &one : tuner->finder.getSkipped())
    skipped.push_back(
        llvm::json::Object{{"name", one.name}, {"reason", one.reason}});
  tuner->list = print(llvm::json::Object{{"products", std::move(products)},
                                         {"skipped", std::move(skipped)}});
  return tuner->list.c_str();
}

static llvm::json::Array listFaults(ArrayRef<ComparedSchedule> schedules) {
  llvm::json::Array faults;
  for (const ComparedSchedule &one : schedules)
    faults.push_back(llvm::json::Object{{"schedule", one.schedule},
                                        {"problem", one.problem}});
  return faults;
}

static std::string print(const TunedProduct &found, size_t place) {
  llvm::json::Value entry = nullptr;
  if (found.entry.us > 0)
    entry = toJSON(found.entry);
  return print(llvm::json::Object{{"product", int64_t(place)},
                                  {"entry", std::move(entry)},
                                  {"measured", int64_t(found.measured)},
                                  {"wrong", listFaults(found.wrong)},
                                  {"refused", listFaults(found.refused)},
                                  {"failure", found.failure},
                                  {"dense_fault", found.denseFault}});
}

static llvm::Error checkOptions(const NmSparseTuneOptions &options) {
  auto check = [](StringRef name, int64_t value, int64_t least) -> llvm::Error {
    if (value >= least)
      return llvm::Error::success();
    return llvm::createStringError(llvm::formatv(
        "{0} is {1}: legal are {2} and more", name, value, least));
  };
  if (!options.emulates && (!options.database || !*options.database))
    return llvm::createStringError("database is empty: legal is a file");
  if (llvm::Error error = check("candidates", options.candidates, 1))
    return error;
  if (llvm::Error error = check("neighbours", options.neighbours, 0))
    return error;
  return check("sample_ms", options.sampleMs, 1);
}

static llvm::Error run(const NmSparseTuner &tuner,
                       const NmSparseTuneOptions &given, NmSparseTuned report,
                       void *context) {
  if (llvm::Error error = checkOptions(given))
    return error;
  TuneOptions options;
  options.checksOnly = given.emulates != 0;
  options.candidates = given.candidates;
  options.neighbours = given.neighbours;
  if (given.minutes >= 0)
    options.minutes = given.minutes;
  options.compiler = StringRef(describeVersion("libnm_sparse")).trim().str();
  TuningDatabase database;
  if (!options.checksOnly) {
    options.database = given.database;
    if (llvm::sys::fs::exists(options.database))
      if (llvm::Error error = database.read(options.database))
        return error;
    if (auto own = findOwnGPU(tuner.target.chip->gpu); !own)
      return own.takeError();
    options.driver = getDriverVersion();
  }
  MeterOptions meters;
  meters.device = options.checksOnly ? Device::Emulate : Device::CUDA;
  meters.sampleMs = given.sampleMs;
  meters.seed = given.seed;
  meters.lock = given.lock ? given.lock : "";
  ArrayRef<TunableProduct> products = tuner.finder.getProducts();
  return tune(findUnknown(products, database, tuner.target.objective),
              tuner.target, options, makeDeviceMeters(tuner.target, meters),
              [&](const TunedProduct &found) {
                size_t place = found.product - products.data();
                return report(print(found, place).c_str(), context) == 0;
              });
}

int nmSparseTunerRun(NmSparseTuner *tuner, const NmSparseTuneOptions *options,
                     NmSparseTuned report, void *context) {
  if (llvm::Error error = run(*tuner, *options, report, context))
    return record(std::move(error));
  return 0;
}

void nmSparseTunerDestroy(NmSparseTuner *tuner) { delete tuner; }
