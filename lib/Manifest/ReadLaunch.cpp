//===- ReadLaunch.cpp - a launch of a manifest ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ManifestReader.h"

#include <algorithm>

using namespace nms;

static constexpr uint64_t kMostAlignment = uint64_t(1) << 40;

bool ManifestReader::readIm2col(const Json &json,
                                ManifestParameter &parameter) {
  if (!json.contains("im2col"))
    return true;
  const Json *fields = get(json, "im2col", Json::value_t::object);
  if (!fields)
    return false;
  struct {
    const char *name;
    std::array<int64_t, kIm2colPixelRank> Im2colPixels::*numbers;
    Im2colRange legal;
  } const all[] = {{"lower", &Im2colPixels::lower, kIm2colCorners},
                   {"upper", &Im2colPixels::upper, kIm2colCorners},
                   {"strides", &Im2colPixels::strides, kIm2colStrides}};
  Im2colPixels &pixels = parameter.map.im2col.emplace();
  for (const auto &[name, numbers, legal] : all) {
    const Json *list = get(*fields, name, Json::value_t::array);
    if (!list)
      return false;
    auto isLegal = [range = legal](const Json &number) {
      // Numbers above 63 bits would become others.
      return number.is_number_integer() &&
             (!number.is_number_unsigned() ||
              number.get<uint64_t>() <= INT64_MAX) &&
             range.contains(number.get<int64_t>());
    };
    if (list->size() != kIm2colPixelRank ||
        !std::all_of(list->begin(), list->end(), isLegal))
      return refuse("'" + std::string(name) + "' of im2col is " + list->dump() +
                    ", legal are two numbers, for h and w, from " +
                    std::to_string(legal.least) + " to " +
                    std::to_string(legal.most));
    for (size_t i = 0; i < kIm2colPixelRank; ++i)
      (pixels.*numbers)[i] = (*list)[i].get<int64_t>();
  }
  if (parameter.map.box.size() != 2)
    return refuse("a tensor map in mode im2col has a box of " +
                  std::to_string(parameter.map.box.size()) +
                  " sizes, legal are two: pixels and channels");
  const ManifestSource &source = parameter.source;
  const ManifestType &type = source.isBuffer
                                 ? result->buffers[source.number].type
                                 : result->arguments[source.number].type;
  size_t rank =
      parameter.view ? parameter.view->sizes.size() : type.shape.size();
  return rank == kIm2colRank ||
         refuse("a tensor map in mode im2col is of an array of " +
                std::to_string(rank) +
                " sizes, legal are four: images of (h, w, channels)");
}

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
  if (parameter.map.swizzle < 0 || parameter.map.l2Promotion < 0)
    return refuse("swizzle '" + swizzle + "' or l2_promotion '" + promotion +
                  "' is not known");
  return readIm2col(json, parameter);
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
