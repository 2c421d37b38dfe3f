//===- ReadManifest.cpp - how to launch kernels, as read ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ManifestReader.h"

using namespace nms;

static constexpr int64_t kVersions[] = {2, 6};

std::optional<ManifestSource>
ManifestFunction::findSource(std::string_view wanted) const {
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].name == wanted)
      return ManifestSource{false, static_cast<int>(i)};
  for (size_t i = 0; i < buffers.size(); ++i)
    if (buffers[i].name == wanted)
      return ManifestSource{true, static_cast<int>(i)};
  return std::nullopt;
}

const Json *ManifestReader::get(const Json &json, const char *key,
                                Json::value_t type) {
  if (json.is_object()) {
    auto found = json.find(key);
    if (found != json.end() && found->type() == type)
      return &*found;
  }
  refuse(std::string("'") + key + "' is missing or of another type");
  return nullptr;
}

bool ManifestReader::getText(const Json &json, const char *key,
                             std::string &text) {
  const Json *value = get(json, key, Json::value_t::string);
  if (value)
    text = value->get<std::string>();
  return value != nullptr;
}

bool ManifestReader::getNumber(const Json &json, int64_t &number) {
  auto wide = json.get<uint64_t>();
  number = static_cast<int64_t>(wide);
  return number >= 0 || refuse(std::to_string(wide) + " is too large");
}

bool ManifestReader::getType(const Json &json, ManifestType &type) {
  std::string text;
  return getText(json, "type", text) &&
         (ManifestType::parse(text, type) || explain());
}

bool ManifestReader::getExpression(const Json &json, const char *key,
                                   Expression &result) {
  std::string text;
  return getText(json, key, text) &&
         (Expression::parse(text, result) || explain());
}

bool ManifestReader::getExpressions(const Json &json, const char *key,
                                    std::vector<Expression> &result) {
  const Json *list = get(json, key, Json::value_t::array);
  if (!list)
    return false;
  for (const Json &entry : *list) {
    if (!entry.is_string())
      return refuse(std::string("'") + key + "' is not a list of expressions");
    if (!Expression::parse(entry.get<std::string>(), result.emplace_back()))
      return explain();
  }
  return true;
}

bool ManifestReader::getView(const Json &json,
                             std::optional<ManifestView> &view) {
  if (!json.contains("offset"))
    return true;
  view.emplace();
  return getExpression(json, "offset", view->offset) &&
         getExpressions(json, "sizes", view->sizes) &&
         getExpressions(json, "strides", view->strides) &&
         (view->sizes.size() == view->strides.size() ||
          refuse("a view has other than one stride for each size")) &&
         (view->sizes.size() <= kMaxManifestRank ||
          refuse("a view has " + std::to_string(view->sizes.size()) +
                 " sizes, at most 8 are legal"));
}

bool ManifestReader::getSource(const std::string &name,
                               ManifestSource &source) {
  std::optional<ManifestSource> found = result->findSource(name);
  if (!found)
    return refuse("'" + name + "' is no argument or buffer");
  source = *found;
  return true;
}

bool ManifestReader::readKernels(const Json &json, Manifest &manifest) {
  if (!json.contains("kernels"))
    return true;
  const Json *list = get(json, "kernels", Json::value_t::array);
  if (!list)
    return false;
  for (const Json &entry : *list) {
    ManifestKernel &kernel = manifest.kernels.emplace_back();
    if (!getText(entry, "name", kernel.name))
      return false;
    if (!entry.contains("waits"))
      continue;
    const Json *waits = get(entry, "waits", Json::value_t::boolean);
    if (!waits)
      return false;
    kernel.waits = waits->get<bool>();
  }
  return true;
}

bool ManifestReader::readArguments(const Json &json) {
  const Json *list = get(json, "arguments", Json::value_t::array);
  if (!list)
    return false;
  for (const Json &entry : *list) {
    ManifestArgument &argument = result->arguments.emplace_back();
    if (!getText(entry, "name", argument.name) ||
        !getType(entry, argument.type))
      return false;
    if (entry.contains("label") && !getText(entry, "label", argument.label))
      return false;
    if (!entry.contains("component"))
      continue;
    const Json *weight = get(entry, "weight", Json::value_t::number_unsigned);
    if (!weight || !getText(entry, "component", argument.component))
      return false;
    if (!getNumber(*weight, argument.weight))
      return false;
  }
  return true;
}

bool ManifestReader::readWeights(const Json &json) {
  if (!json.contains("weights"))
    return true;
  const Json *list = get(json, "weights", Json::value_t::array);
  if (!list)
    return false;
  for (const Json &entry : *list) {
    ManifestWeight &weight = result->weights.emplace_back();
    const Json *number = get(entry, "number", Json::value_t::number_unsigned);
    const Json *shape = get(entry, "shape", Json::value_t::array);
    if (!number || !shape || !getText(entry, "encoding", weight.encoding) ||
        !getText(entry, "element_type", weight.elementType))
      return false;
    if (!getNumber(*number, weight.number))
      return false;
    for (const Json &size : *shape) {
      if (!size.is_number_unsigned())
        return refuse("the shape of a weight is not a list of sizes");
      if (!getNumber(size, weight.shape.emplace_back()))
        return false;
    }
  }
  return true;
}

bool ManifestReader::readBuffers(const Json &json) {
  const Json *list = get(json, "buffers", Json::value_t::array);
  if (!list)
    return false;
  for (const Json &entry : *list) {
    ManifestBuffer &buffer = result->buffers.emplace_back();
    if (!getText(entry, "name", buffer.name) || !getType(entry, buffer.type) ||
        !getExpressions(entry, "sizes", buffer.sizes))
      return false;
    if (buffer.type.isNumber || buffer.sizes.size() != buffer.type.shape.size())
      return refuse("buffer '" + buffer.name + "' has other sizes than " +
                    buffer.type.text);
    if (entry.contains("initial") &&
        !getExpression(entry, "initial", buffer.initial.emplace()))
      return false;
  }
  return true;
}

bool ManifestReader::readLaunches(const Json &json) {
  const Json *list = get(json, "launches", Json::value_t::array);
  if (!list)
    return false;
  for (const Json &entry : *list)
    if (!readLaunch(entry, result->launches.emplace_back()))
      return false;
  return true;
}

bool ManifestReader::readResults(const Json &json) {
  const Json *list = get(json, "results", Json::value_t::array);
  if (!list)
    return false;
  for (const Json &entry : *list) {
    ManifestResult &out = result->results.emplace_back();
    std::string source;
    if (!getType(entry, out.type) || !getText(entry, "buffer", source) ||
        !getSource(source, out.source) || !getView(entry, out.view))
      return false;
  }
  return true;
}

bool ManifestReader::readChecks(const Json &json) {
  if (!json.contains("checks"))
    return true;
  const Json *list = get(json, "checks", Json::value_t::array);
  if (!list)
    return false;
  for (const Json &entry : *list)
    if (!readCheck(entry, result->checks.emplace_back()))
      return false;
  return true;
}

bool ManifestReader::readCheck(const Json &json, ManifestCheck &check) {
  std::string kind, name;
  ManifestSource source;
  if (!getText(json, "kind", kind) || !getText(json, "buffer", name) ||
      !getSource(name, source))
    return false;
  if (kind != "packed")
    return refuse("a check is '" + kind + "', legal is 'packed'");
  if (!source.isBuffer ||
      result->buffers[source.number].type.text != "memref<1xi64>" ||
      !result->buffers[source.number].initial)
    return refuse("'" + name +
                  "', which is checked, is no buffer of one i64 "
                  "with an initial value");
  check.buffer = source.number;
  std::pair<const char *, int64_t *> numbers[] = {
      {"n", &check.packed.n},
      {"m", &check.packed.m},
      {"batch", &check.packed.batch},
      {"windows", &check.packed.windows},
      {"panels", &check.packed.panels}};
  for (auto [key, number] : numbers) {
    const Json *value = get(json, key, Json::value_t::number_unsigned);
    if (!value)
      return false;
    *number = value->get<int64_t>();
    if (*number < 1)
      return refuse(std::string("a check has '") + key + "' of " +
                    std::to_string(*number) + ", legal is at least 1");
  }
  return true;
}

bool ManifestReader::readCases(const Json &json) {
  const Json *list = get(json, "cases", Json::value_t::array);
  if (!list || !getExpression(json, "tokens", result->tokens.emplace()))
    return false;
  for (const Json &entry : *list) {
    ManifestCase &one = result->cases.emplace_back();
    if (!getText(entry, "function", caseNames.back().emplace_back()))
      return false;
    auto found = entry.find("at_most");
    if (found == entry.end())
      continue;
    if (!found->is_number_integer())
      return refuse("'at_most' is not an integer");
    one.atMost = found->get<int64_t>();
  }
  if (result->cases.empty() || result->cases.back().atMost)
    return refuse("the last of its cases has an 'at_most'");
  return true;
}

bool ManifestReader::readFunction(const Json &json, ManifestFunction &into) {
  result = &into;
  function.clear();
  caseNames.emplace_back();
  if (!getText(json, "name", into.name))
    return false;
  function = into.name;
  if (!readArguments(json) || !readWeights(json))
    return false;
  if (json.contains("cases"))
    return readCases(json);
  return readBuffers(json) && readLaunches(json) && readResults(json) &&
         readChecks(json);
}

/// A case names a function that does not select others again.
bool ManifestReader::linkCases(Manifest &manifest) {
  for (size_t i = 0; i < manifest.functions.size(); ++i) {
    ManifestFunction &selecting = manifest.functions[i];
    function = selecting.name;
    for (size_t j = 0; j < selecting.cases.size(); ++j) {
      const std::string &name = caseNames[i][j];
      int &number = selecting.cases[j].function;
      for (size_t k = 0; k < manifest.functions.size(); ++k)
        if (manifest.functions[k].name == name &&
            manifest.functions[k].cases.empty() &&
            manifest.functions[k].arguments.size() ==
                selecting.arguments.size())
          number = static_cast<int>(k);
      if (number < 0)
        return refuse("its case '" + name +
                      "' is no function with the same arguments");
    }
  }
  return true;
}

bool ManifestReader::read(const Json &json, Manifest &manifest) {
  const Json *version =
      get(json, "manifest_version", Json::value_t::number_unsigned);
  const Json *functions =
      version ? get(json, "functions", Json::value_t::array) : nullptr;
  if (!functions)
    return false;
  auto number = version->get<int64_t>();
  if (number < kVersions[0] || number > kVersions[1])
    return refuse("manifest_version is " + std::to_string(number) +
                  ", legal are 2 to 6");
  if (!readKernels(json, manifest))
    return false;
  for (const Json &entry : *functions)
    if (!readFunction(entry, manifest.functions.emplace_back()))
      return false;
  if (manifest.functions.empty())
    return refuse("it has no functions");
  return linkCases(manifest);
}

bool Manifest::parse(std::string_view text, Manifest &manifest) {
  manifest = Manifest();
  Json json = Json::parse(text.begin(), text.end(), nullptr,
                          /*allow_exceptions=*/false);
  if (json.is_discarded())
    return !fail("the manifest is not JSON");
  return ManifestReader().read(json, manifest);
}
