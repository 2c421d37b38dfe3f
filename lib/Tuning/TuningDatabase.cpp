//===- TuningDatabase.cpp - schedules that were measured ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Tuning/TuningDatabase.h"

#include "nm_sparse/Support/InputFile.h"
#include "nm_sparse/Support/Json.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace mlir;
using namespace mlir::nm_sparse;

/// The version that each line names. Files of another version are refused: a
/// field that is not known could change what was measured. Lines of the first
/// version name no objective, which is time.
static constexpr int64_t kVersion = 1, kObjectiveVersion = 2;

llvm::json::Object nm_sparse::toJSON(const TunedProblem &problem) {
  return llvm::json::Object{{"version", kVersion},
                            {"gpu", problem.gpu},
                            {"encoding", problem.encoding},
                            {"storage", problem.storage},
                            {"type", problem.type},
                            {"x", problem.x},
                            {"y", problem.y},
                            {"patches", problem.patches},
                            {"written_bytes", problem.writtenBytes},
                            {"read_bytes", problem.readBytes},
                            {"batch", problem.batch},
                            {"inputs", problem.inputs},
                            {"outputs", problem.outputs},
                            {"tokens", problem.tokens}};
}

llvm::json::Object nm_sparse::toJSON(const TunedEntry &entry) {
  llvm::json::Object object = toJSON(entry.problem);
  object["schedule"] = entry.schedule;
  object["us"] = entry.us;
  object["spread"] = entry.spread;
  object["dense_us"] = entry.denseUs;
  object["compiler"] = entry.compiler;
  object["driver"] = entry.driver;
  if (entry.modelUs > 0)
    object["model_us"] = entry.modelUs;
  if (!entry.code.empty())
    object["code"] = entry.code;
  if (entry.millijoules > 0) {
    object["mj"] = entry.millijoules;
    object["dense_mj"] = entry.denseMillijoules;
  }
  if (entry.objective == Objective::Time)
    return object;
  object["version"] = kObjectiveVersion;
  object["objective"] = getName(entry.objective);
  return object;
}

/// Reads what not every line has.
static bool readOptional(llvm::json::ObjectMapper &fields, int64_t version,
                         TunedEntry &entry, llvm::json::Path path) {
  if (!fields.mapOptional("model_us", entry.modelUs) ||
      !fields.mapOptional("code", entry.code) ||
      !fields.mapOptional("mj", entry.millijoules) ||
      !fields.mapOptional("dense_mj", entry.denseMillijoules))
    return false;
  if (version == kVersion)
    return true;
  std::string text;
  if (!fields.map("objective", text))
    return false;
  for (Objective objective :
       {Objective::Time, Objective::Energy, Objective::EDP})
    if (getName(objective) == text) {
      entry.objective = objective;
      return true;
    }
  path.field("objective").report("legal are time, energy and edp");
  return false;
}

/// Returns true if `entry` is of some problem and some time; else reports why
/// not.
static bool isLegal(const TunedEntry &entry, llvm::json::Path path) {
  const TunedProblem &problem = entry.problem;
  for (auto [name, number] :
       {std::pair("batch", problem.batch), std::pair("inputs", problem.inputs),
        std::pair("outputs", problem.outputs),
        std::pair("tokens", problem.tokens)})
    if (number < 1) {
      path.field(name).report("legal are 1 and more");
      return false;
    }
  for (auto [name, layout] :
       {std::pair("x", &problem.x), std::pair("y", &problem.y)})
    if (*layout != "feature-major" && *layout != "token-major") {
      path.field(name).report("legal are feature-major and token-major");
      return false;
    }
  if (!(entry.us > 0) || !std::isfinite(entry.us)) {
    path.field("us").report("legal are times above 0");
    return false;
  }
  bool needsEnergy = entry.objective != Objective::Time;
  if (entry.millijoules < 0 || (needsEnergy && entry.millijoules == 0)) {
    path.field("mj").report("legal are energies above 0");
    return false;
  }
  return true;
}

bool nm_sparse::fromJSON(const llvm::json::Value &value, TunedEntry &entry,
                         llvm::json::Path path) {
  TunedProblem &problem = entry.problem;
  llvm::json::ObjectMapper fields(value, path);
  int64_t version = 0;
  if (!fields || !fields.map("version", version))
    return false;
  if (version != kVersion && version != kObjectiveVersion) {
    path.field("version").report("this compiler reads versions 1 and 2");
    return false;
  }
  return fields.map("gpu", problem.gpu) &&
         fields.map("encoding", problem.encoding) &&
         fields.map("storage", problem.storage) &&
         fields.map("type", problem.type) && fields.map("x", problem.x) &&
         fields.map("y", problem.y) && fields.map("patches", problem.patches) &&
         fields.map("written_bytes", problem.writtenBytes) &&
         fields.map("read_bytes", problem.readBytes) &&
         fields.map("batch", problem.batch) &&
         fields.map("inputs", problem.inputs) &&
         fields.map("outputs", problem.outputs) &&
         fields.map("tokens", problem.tokens) &&
         fields.map("schedule", entry.schedule) && fields.map("us", entry.us) &&
         fields.map("spread", entry.spread) &&
         fields.map("dense_us", entry.denseUs) &&
         fields.map("compiler", entry.compiler) &&
         fields.map("driver", entry.driver) &&
         readOptional(fields, version, entry, path) && isLegal(entry, path);
}

static llvm::Expected<TunedEntry> parseLine(StringRef line, StringRef where) {
  auto object = parseObject(line, where, "the entry");
  if (!object)
    return object.takeError();
  TunedEntry entry;
  llvm::json::Path::Root root("entry");
  if (!fromJSON(llvm::json::Value(std::move(*object)), entry, root))
    return llvm::createStringError(where + ": " +
                                   llvm::toString(root.getError()) +
                                   " (docs/Tuning.md lists the fields)");
  return entry;
}

/// The number that a line has behind `name`, in quotes, without reading the
/// rest of it; none where it is not that plain.
static std::optional<int64_t> skim(StringRef line, StringRef name) {
  size_t at = line.find(name);
  if (at == StringRef::npos)
    return std::nullopt;
  StringRef rest = line.drop_front(at + name.size()).ltrim();
  if (!rest.consume_front(":"))
    return std::nullopt;
  rest = rest.ltrim();
  int64_t number;
  if (rest.consumeInteger(10, number))
    return std::nullopt;
  return number;
}

/// The line is of sizes that are not asked for. One that is not plain is read.
static bool isOfOthers(StringRef line, const TuningDatabase::Sizes *sizes) {
  if (!sizes)
    return false;
  std::optional<int64_t> inputs = skim(line, "\"inputs\"");
  std::optional<int64_t> outputs = skim(line, "\"outputs\"");
  return inputs && outputs && !sizes->count({*inputs, *outputs});
}

llvm::Error TuningDatabase::read(StringRef path, const Sizes *sizes) {
  auto buffer = readInput(path);
  if (!buffer)
    return buffer.takeError();
  std::vector<TunedEntry> entries;
  StringRef rest = (*buffer)->getBuffer();
  for (int64_t number = 1; !rest.empty(); ++number) {
    auto [line, behind] = rest.split('\n');
    rest = behind;
    if (line.trim().empty() || isOfOthers(line, sizes))
      continue;
    auto entry = parseLine(line, llvm::formatv("{0}:{1}", path, number).str());
    if (!entry)
      return entry.takeError();
    entries.push_back(std::move(*entry));
  }
  for (TunedEntry &entry : entries)
    add(std::move(entry));
  return llvm::Error::success();
}

/// Entries by different objectives are of different layers.
static std::string getKey(const TunedProblem &problem, Objective objective) {
  return problem.getLayer() + std::to_string(int(objective));
}

/// The best entry for a problem has the least of these.
static double rate(const TunedEntry &entry) {
  if (entry.objective == Objective::Time)
    return entry.us;
  return entry.objective == Objective::Energy ? entry.millijoules
                                              : entry.us * entry.millijoules;
}

void TuningDatabase::add(TunedEntry entry) {
  auto &layer = layers[getKey(entry.problem, entry.objective)];
  int64_t tokens = entry.problem.tokens;
  auto [found, isNew] = layer.try_emplace(tokens, entry);
  if (!isNew && rate(entry) < rate(found->second))
    found->second = std::move(entry);
}

const TunedEntry *TuningDatabase::findExact(const TunedProblem &problem,
                                            Objective objective) const {
  auto layer = layers.find(getKey(problem, objective));
  if (layer == layers.end())
    return nullptr;
  auto entry = layer->second.find(problem.tokens);
  return entry == layer->second.end() ? nullptr : &entry->second;
}

const TunedEntry *TuningDatabase::find(const TunedProblem &problem,
                                       Objective objective) const {
  auto layer = layers.find(getKey(problem, objective));
  if (layer == layers.end())
    return nullptr;
  // Doublings apart; a schedule for twice as many tokens is another one.
  constexpr double kMost = 1;
  const TunedEntry *nearest = nullptr;
  double least = kMost;
  for (const auto &[tokens, entry] : layer->second) {
    double distance =
        std::fabs(std::log2(double(tokens) / double(problem.tokens)));
    if (distance > least || (nearest && distance == least))
      continue;
    least = distance;
    nearest = &entry;
  }
  return nearest;
}

std::set<int64_t> TuningDatabase::findTokens(const TunedProblem &problem,
                                             Objective objective) const {
  auto getLike = [](const TunedProblem &one) {
    return std::tie(one.gpu, one.encoding, one.type, one.inputs, one.outputs);
  };
  std::set<int64_t> tokens;
  for (const TunedEntry *entry : getEntries())
    if (entry->objective == objective &&
        getLike(entry->problem) == getLike(problem))
      tokens.insert(entry->problem.tokens);
  return tokens;
}

size_t TuningDatabase::size() const {
  size_t sum = 0;
  for (const auto &[name, layer] : layers)
    sum += layer.size();
  return sum;
}

std::vector<const TunedEntry *> TuningDatabase::getEntries() const {
  std::vector<const TunedEntry *> entries;
  for (const auto &[name, layer] : layers)
    for (const auto &[tokens, entry] : layer)
      entries.push_back(&entry);
  return entries;
}

void TuningDatabase::print(llvm::raw_ostream &os) const {
  for (const TunedEntry *entry : getEntries())
    os << llvm::json::Value(toJSON(*entry)) << "\n";
}
