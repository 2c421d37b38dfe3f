//===- ClockSweep.cpp - kernels measured at other clocks ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Energy/ClockSweep.h"

#include "nm_sparse/Support/Json.h"
#include "nm_sparse/Support/QuoteName.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>
#include <set>

using namespace mlir;
using namespace mlir::nm_sparse;

static constexpr llvm::StringLiteral kWhat = "the sweep";
/// Layers, and points of all of them; fits take a time that grows with both.
static constexpr size_t kMostLayers = 100, kMostPoints = 20000;

bool SweepPoint::keptClocks() const {
  auto isKept = [](double asked, double had) {
    return std::fabs(had - asked) <= 0.02 * asked;
  };
  return askedCoreMHz > 0 && isKept(askedCoreMHz, sample.at.coreMHz) &&
         isKept(askedMemoryMHz, sample.at.memoryMHz);
}

std::vector<DvfsSample> SweepLayer::getSamples() const {
  std::vector<DvfsSample> samples;
  samples.reserve(points.size() + 1);
  for (const SweepPoint &point : points)
    samples.push_back(point.sample);
  if (unlocked)
    samples.push_back(unlocked->sample);
  return samples;
}

namespace {
/// Reads members of one object; the first error stays.
class Members {
public:
  Members(const llvm::json::Object &object, std::string where,
          std::string &error)
      : object(object), where(std::move(where)), error(error) {}

  void fail(llvm::StringRef name, const llvm::Twine &legal) {
    if (error.empty())
      error = llvm::formatv("{0}: {1} is not {2}", where, quoteName(name),
                            legal.str());
  }
  std::string getString(llvm::StringRef name, bool isOptional = false) {
    if (auto text = object.getString(name))
      return text->str();
    if (!isOptional || object.get(name))
      fail(name, "a string");
    return "";
  }
  int64_t getSize(llvm::StringRef name) {
    constexpr int64_t kMost = int64_t(1) << 31;
    auto size = object.getInteger(name);
    if (size && *size >= 1 && *size <= kMost)
      return *size;
    fail(name, "a whole number from 1 to " + llvm::Twine(kMost));
    return 1;
  }
  double getNumber(llvm::StringRef name, double least, double most) {
    auto number = object.getNumber(name);
    if (number && *number >= least && *number <= most)
      return *number;
    std::string legal;
    llvm::raw_string_ostream(legal)
        << llvm::format("a number from %g to %g", least, most);
    fail(name, legal);
    return least;
  }
  /// 0 for null, or where it is not there.
  double getOptional(llvm::StringRef name, double least, double most) {
    const llvm::json::Value *value = object.get(name);
    return !value || value->getAsNull() ? 0 : getNumber(name, least, most);
  }
  const llvm::json::Object *getObject(llvm::StringRef name) {
    const llvm::json::Value *value = object.get(name);
    if (!value || value->getAsNull())
      return nullptr;
    if (!value->getAsObject())
      fail(name, "an object");
    return value->getAsObject();
  }
  const llvm::json::Array *getArray(llvm::StringRef name) {
    const llvm::json::Array *array = object.getArray(name);
    if (!array || array->empty())
      fail(name, "a list of at least one object");
    return array;
  }

private:
  const llvm::json::Object &object;
  std::string where;
  std::string &error;
};

class SweepReader {
public:
  llvm::Error read(const llvm::json::Object &object, ClockSweep &sweep);

private:
  SweepPoint readPoint(const llvm::json::Object &object,
                       const std::string &where, bool isLocked);
  ClockParts readParts(const llvm::json::Object &object,
                       const std::string &where);
  SweepLayer readLayer(const llvm::json::Object &object, std::string where);
  void checkLayer(const SweepLayer &layer, const std::string &where);

  std::string error;
  size_t numPoints = 0;
};
} // namespace

SweepPoint SweepReader::readPoint(const llvm::json::Object &object,
                                  const std::string &where, bool isLocked) {
  constexpr double kMostMHz = 1e5;
  Members members(object, where, error);
  SweepPoint point;
  DvfsSample &sample = point.sample;
  sample.at.coreMHz = members.getNumber("core_mhz", 1, kMostMHz);
  sample.at.memoryMHz = members.getNumber("memory_mhz", 1, kMostMHz);
  sample.at.volts = members.getOptional("volts", 0.1, 10);
  sample.seconds = 1e-6 * members.getNumber("us", 1e-3, 1e9);
  sample.watts = members.getNumber("watts", 1e-3, 1e5);
  if (isLocked) {
    point.askedCoreMHz = members.getNumber("asked_core_mhz", 1, kMostMHz);
    point.askedMemoryMHz = members.getNumber("asked_memory_mhz", 1, kMostMHz);
  }
  return point;
}

ClockParts SweepReader::readParts(const llvm::json::Object &object,
                                  const std::string &where) {
  Members members(object, where, error);
  auto getSeconds = [&](llvm::StringRef name) {
    return 1e-6 * members.getNumber(name, 0, 1e9);
  };
  return {getSeconds("fixed_us"), getSeconds("core_us"),
          getSeconds("memory_us")};
}

/// The points of a layer must tell the parameters of the equations apart.
void SweepReader::checkLayer(const SweepLayer &layer,
                             const std::string &where) {
  constexpr size_t kLeastPairs = 5, kLeastClocks = 3;
  std::set<std::pair<double, double>> pairs;
  std::set<double> clocks;
  for (const DvfsSample &sample : layer.getSamples()) {
    clocks.insert(std::round(sample.at.coreMHz));
    pairs.insert(
        {std::round(sample.at.coreMHz), std::round(sample.at.memoryMHz)});
  }
  if (!error.empty())
    return;
  if (pairs.size() < kLeastPairs)
    error = llvm::formatv(
        "{0}: has {1} pairs of clocks, fewer than a kernel has parameters; "
        "record at least {2}",
        where, pairs.size(), kLeastPairs);
  else if (clocks.size() < kLeastClocks)
    error = llvm::formatv("{0}: has {1} core clocks; record at least {2}",
                          where, clocks.size(), kLeastClocks);
}

SweepLayer SweepReader::readLayer(const llvm::json::Object &object,
                                  std::string where) {
  Members members(object, where, error);
  SweepLayer layer;
  layer.name = members.getString("layer");
  where = "layer " + quoteName(layer.name);
  layer.encoding = members.getString("encoding");
  layer.type = members.getString("type");
  layer.schedule = members.getString("schedule", /*isOptional=*/true);
  layer.tokens = members.getSize("tokens");
  layer.outputs = members.getSize("outputs");
  layer.inputs = members.getSize("inputs");
  if (object.get("batch"))
    layer.batch = members.getSize("batch");
  if (const llvm::json::Object *parts = members.getObject("parts"))
    layer.parts = readParts(*parts, where + ", parts");
  if (const llvm::json::Object *point = members.getObject("unlocked"))
    layer.unlocked =
        readPoint(*point, where + ", unlocked", /*isLocked=*/false);
  const llvm::json::Array *points = members.getArray("points");
  if (!points)
    return layer;
  for (auto [i, value] : llvm::enumerate(*points)) {
    if (!error.empty())
      return layer;
    std::string name = llvm::formatv("{0}, point {1}", where, i);
    if (const llvm::json::Object *point = value.getAsObject())
      layer.points.push_back(readPoint(*point, name, /*isLocked=*/true));
    else
      error = name + ": is not an object";
  }
  numPoints += layer.points.size();
  checkLayer(layer, where);
  return layer;
}

llvm::Error SweepReader::read(const llvm::json::Object &object,
                              ClockSweep &sweep) {
  Members members(object, kWhat.str(), error);
  sweep.gpu = members.getString("gpu");
  sweep.isSynthetic = object.getBoolean("synthetic").value_or(false);
  const llvm::json::Array *layers = members.getArray("layers");
  if (layers && layers->size() > kMostLayers)
    members.fail("layers", llvm::Twine("a list of at most ") +
                               llvm::Twine(kMostLayers) + " objects");
  for (size_t i = 0; layers && i < layers->size() && error.empty(); ++i) {
    std::string where = llvm::formatv("layer number {0}", i);
    if (const llvm::json::Object *layer = (*layers)[i].getAsObject())
      sweep.layers.push_back(readLayer(*layer, where));
    else
      error = where + ": is not an object";
  }
  if (error.empty() && numPoints > kMostPoints)
    error = llvm::formatv("the sweep has {0} points; legal are {1} at most",
                          numPoints, kMostPoints);
  if (error.empty())
    return llvm::Error::success();
  return llvm::createStringError(sweep.path + ": " + error);
}

static llvm::Expected<ClockSweep>
makeSweep(llvm::Expected<llvm::json::Object> object, llvm::StringRef path) {
  if (!object)
    return object.takeError();
  ClockSweep sweep;
  sweep.path = path.str();
  if (llvm::Error error = SweepReader().read(*object, sweep))
    return std::move(error);
  return sweep;
}

llvm::Expected<ClockSweep> nm_sparse::parseClockSweep(llvm::StringRef text,
                                                      llvm::StringRef path) {
  return makeSweep(parseObject(text, path, kWhat), path);
}

llvm::Expected<ClockSweep> nm_sparse::readClockSweep(llvm::StringRef path) {
  return makeSweep(readObject(path, kWhat), path);
}
