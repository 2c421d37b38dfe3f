//===- ReadManifest.cpp - how to launch kernels, as read ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Base/Error.h"
#include "nm_sparse/Base/Fail.h"
#include "nm_sparse/Manifest/Manifest.h"

#include <nlohmann/json.hpp>

using namespace nms;
using Json = nlohmann::json;

namespace {

constexpr int64_t kVersions[] = {2, 5};

class Reader {
public:
  bool read(const Json &json, Manifest &manifest);

private:
  bool readFunction(const Json &json, ManifestFunction &result);
  bool readKernels(const Json &json, Manifest &manifest);
  bool readArguments(const Json &json);
  bool readBuffers(const Json &json);
  bool readLaunches(const Json &json);
  bool readLaunch(const Json &json, ManifestLaunch &launch);
  bool readParameter(const Json &json, ManifestParameter &parameter);
  bool readTensorMap(const Json &json, ManifestParameter &parameter);
  bool readAccess(const Json &json, ManifestParameter &parameter);
  bool readResults(const Json &json);
  bool readChecks(const Json &json);
  bool readCheck(const Json &json, ManifestCheck &check);
  bool readCases(const Json &json);
  bool linkCases(Manifest &manifest);

  /// The member `key` of `json`; null, with the reason recorded, where there is
  /// none of this type.
  const Json *get(const Json &json, const char *key, Json::value_t type);
  bool getText(const Json &json, const char *key, std::string &text);
  bool getType(const Json &json, ManifestType &type);
  bool getExpression(const Json &json, const char *key, Expression &result);
  bool getExpressions(const Json &json, const char *key,
                      std::vector<Expression> &result);
  bool getView(const Json &json, std::optional<ManifestView> &view);
  bool getSource(const std::string &name, ManifestSource &source);

  bool refuse(const std::string &what) {
    return !fail("the manifest is malformed: %s%s%s", what.c_str(),
                 function.empty() ? "" : " in function @", function.c_str());
  }
  /// Puts where it was before the reason that was recorded.
  bool explain() { return refuse(std::string(nmsLastError())); }

  std::string function; ///< That is being read.
  ManifestFunction *result = nullptr;
  std::vector<std::vector<std::string>> caseNames; ///< For each function.
};

} // namespace

const Json *Reader::get(const Json &json, const char *key, Json::value_t type) {
  if (json.is_object()) {
    auto found = json.find(key);
    if (found != json.end() && found->type() == type)
      return &*found;
  }
  refuse(std::string("'") + key + "' is missing or of another type");
  return nullptr;
}

bool Reader::getText(const Json &json, const char *key, std::string &text) {
  const Json *value = get(json, key, Json::value_t::string);
  if (value)
    text = value->get<std::string>();
  return value != nullptr;
}

bool Reader::getType(const Json &json, ManifestType &type) {
  std::string text;
  return getText(json, "type", text) &&
         (ManifestType::parse(text, type) || explain());
}

bool Reader::getExpression(const Json &json, const char *key,
                           Expression &result) {
  std::string text;
  return getText(json, key, text) &&
         (Expression::parse(text, result) || explain());
}

bool Reader::getExpressions(const Json &json, const char *key,
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

bool Reader::getView(const Json &json, std::optional<ManifestView> &view) {
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

bool Reader::getSource(const std::string &name, ManifestSource &source) {
  for (size_t i = 0; i < result->arguments.size(); ++i)
    if (result->arguments[i].name == name) {
      source = {false, static_cast<int>(i)};
      return true;
    }
  for (size_t i = 0; i < result->buffers.size(); ++i)
    if (result->buffers[i].name == name) {
      source = {true, static_cast<int>(i)};
      return true;
    }
  return refuse("'" + name + "' is no argument or buffer");
}

bool Reader::readKernels(const Json &json, Manifest &manifest) {
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

bool Reader::readArguments(const Json &json) {
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
    argument.weight = weight->get<int64_t>();
  }
  return true;
}

bool Reader::readBuffers(const Json &json) {
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

bool Reader::readTensorMap(const Json &json, ManifestParameter &parameter) {
  const Json *box = get(json, "box", Json::value_t::array);
  std::string swizzle, promotion;
  if (!box || !getText(json, "swizzle", swizzle) ||
      !getText(json, "l2_promotion", promotion) ||
      !getView(json, parameter.view))
    return false;
  for (const Json &size : *box) {
    if (!size.is_number_integer())
      return refuse("'box' is not a list of integers");
    parameter.map.box.push_back(size.get<int64_t>());
  }
  auto find = [](const std::string &name,
                 std::initializer_list<const char *> names) {
    int number = 0;
    for (const char *candidate : names) {
      if (name == candidate)
        return number;
      ++number;
    }
    return -1;
  };
  parameter.map.swizzle =
      find(swizzle, {"none", "swizzle_32b", "swizzle_64b", "swizzle_128b"});
  parameter.map.l2Promotion =
      find(promotion, {"none", "l2promo_64b", "l2promo_128b", "l2promo_256b"});
  return (parameter.map.swizzle >= 0 && parameter.map.l2Promotion >= 0) ||
         refuse("swizzle '" + swizzle + "' or l2_promotion '" + promotion +
                "' is not known");
}

bool Reader::readAccess(const Json &json, ManifestParameter &parameter) {
  // Manifests of other compilers' versions do not say it.
  std::string access;
  if (json.contains("alignment")) {
    const Json *bytes = get(json, "alignment", Json::value_t::number_unsigned);
    if (!bytes)
      return false;
    parameter.alignment = bytes->get<int64_t>();
  }
  if (!json.contains("access"))
    return true;
  if (!getText(json, "access", access))
    return false;
  constexpr std::pair<const char *, ManifestAccess> names[] = {
      {"none", ManifestAccess::None},
      {"read", ManifestAccess::Read},
      {"write", ManifestAccess::Write},
      {"read_write", ManifestAccess::ReadWrite}};
  for (auto [name, value] : names)
    if (access == name) {
      parameter.access = value;
      return true;
    }
  return refuse("the access '" + access +
                "' is not known, legal are none, read, write and read_write");
}

bool Reader::readParameter(const Json &json, ManifestParameter &parameter) {
  std::string source, field;
  const std::string &type = parameter.type;
  if (!getText(json, "type", parameter.type) ||
      !getText(json, "source", source) || !getText(json, "field", field))
    return false;
  parameter.isByValue = type == "tensor_map";
  if (type == "ptr" || type == "tensor_map") {
    parameter.kind = field == "tensor_map" ? ManifestParameter::Kind::TensorMap
                                           : ManifestParameter::Kind::Pointer;
    if (parameter.isByValue &&
        parameter.kind != ManifestParameter::Kind::TensorMap)
      return refuse("a tensor_map has the field '" + field +
                    "', legal is 'tensor_map'");
    if (!getSource(source, parameter.source) || !readAccess(json, parameter))
      return false;
    return parameter.kind == ManifestParameter::Kind::Pointer ||
           readTensorMap(json, parameter);
  }
  // A field of a source is the quantity of that name.
  std::string text = field == "value" ? source : source + "." + field;
  return Expression::parse(text, parameter.value) || explain();
}

bool Reader::readLaunch(const Json &json, ManifestLaunch &launch) {
  const Json *parameters = get(json, "parameters", Json::value_t::array);
  if (!parameters || !getText(json, "kernel", launch.kernel) ||
      !getExpressions(json, "grid", launch.grid) ||
      !getExpressions(json, "block", launch.block) ||
      !getExpression(json, "dynamic_shared_memory", launch.sharedBytes))
    return false;
  if (json.contains("cluster") &&
      !getExpressions(json, "cluster", launch.cluster))
    return false;
  if (launch.grid.size() != 3 || launch.block.size() != 3 ||
      (!launch.cluster.empty() && launch.cluster.size() != 3))
    return refuse("the grid, block or cluster of kernel '" + launch.kernel +
                  "' does not have three sizes");
  for (const Json &entry : *parameters)
    if (!readParameter(entry, launch.parameters.emplace_back()))
      return false;
  return true;
}

bool Reader::readLaunches(const Json &json) {
  const Json *list = get(json, "launches", Json::value_t::array);
  if (!list)
    return false;
  for (const Json &entry : *list)
    if (!readLaunch(entry, result->launches.emplace_back()))
      return false;
  return true;
}

bool Reader::readResults(const Json &json) {
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

bool Reader::readChecks(const Json &json) {
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

bool Reader::readCheck(const Json &json, ManifestCheck &check) {
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

bool Reader::readCases(const Json &json) {
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

bool Reader::readFunction(const Json &json, ManifestFunction &into) {
  result = &into;
  function.clear();
  caseNames.emplace_back();
  if (!getText(json, "name", into.name))
    return false;
  function = into.name;
  if (!readArguments(json))
    return false;
  if (json.contains("cases"))
    return readCases(json);
  return readBuffers(json) && readLaunches(json) && readResults(json) &&
         readChecks(json);
}

/// A case names a function that does not select others again.
bool Reader::linkCases(Manifest &manifest) {
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

bool Reader::read(const Json &json, Manifest &manifest) {
  const Json *version =
      get(json, "manifest_version", Json::value_t::number_unsigned);
  const Json *functions =
      version ? get(json, "functions", Json::value_t::array) : nullptr;
  if (!functions)
    return false;
  auto number = version->get<int64_t>();
  if (number < kVersions[0] || number > kVersions[1])
    return refuse("manifest_version is " + std::to_string(number) +
                  ", legal are 2 to 5");
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
  return Reader().read(json, manifest);
}
