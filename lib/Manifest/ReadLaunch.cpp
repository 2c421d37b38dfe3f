//===- ReadLaunch.cpp - a launch of a manifest ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ManifestReader.h"

using namespace nms;

static constexpr uint64_t kMostAlignment = uint64_t(1) << 40;

bool ManifestReader::readTensorMap(const Json &json,
                                   ManifestParameter &parameter) {
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

bool ManifestReader::readAccess(const Json &json,
                                ManifestParameter &parameter) {
  // Manifests of other compilers' versions do not say it.
  std::string access;
  if (json.contains("alignment")) {
    const Json *bytes = get(json, "alignment", Json::value_t::number_unsigned);
    if (!bytes)
      return false;
    // The reader keeps all 64 bits: no number becomes another one.
    auto number = bytes->get<uint64_t>();
    if (number == 0 || number > kMostAlignment || (number & (number - 1)) != 0)
      return refuse("the alignment " + std::to_string(number) +
                    " is no power of 2 up to " +
                    std::to_string(kMostAlignment));
    parameter.alignment = static_cast<int64_t>(number);
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

bool ManifestReader::readParameter(const Json &json,
                                   ManifestParameter &parameter) {
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

bool ManifestReader::readLaunch(const Json &json, ManifestLaunch &launch) {
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
