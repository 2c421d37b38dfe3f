//===- ManifestType.cpp - types of arguments and buffers ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Base/Fail.h"
#include "nm_sparse/Base/Kind.h"
#include "nm_sparse/Manifest/Manifest.h"

#include <cctype>
#include <charconv>

using namespace nms;

int64_t ManifestType::getMapType() const {
  static constexpr std::pair<const char *, int64_t> types[] = {
      {"i16", 1}, {"i32", 3}, {"i64", 5}, {"f16", 6},
      {"f32", 7}, {"f64", 8}, {"bf16", 9}};
  for (auto [name, number] : types)
    if (element == name)
      return number;
  return 0;
}

int32_t ManifestType::getKind() const {
  for (int32_t kind = 0; nmsKindBytes(kind) > 0; ++kind)
    if (element == nmsKindName(kind))
      return kind;
  return -1;
}

static bool refuse(std::string_view text, const char *why) {
  return !fail("'%.*s' is no type of a manifest: %s",
               static_cast<int>(text.size()), text.data(), why);
}

/// Bytes of an element: the digits in the name of a type are its bits.
static int64_t countElementBytes(std::string_view element) {
  if (element == "index")
    return 8;
  if (element.substr(0, 2) == "f8")
    return 1;
  size_t digits = element.find_first_of("0123456789");
  if (digits == std::string_view::npos)
    return 0;
  int64_t bits = 0;
  auto [end, code] = std::from_chars(element.data() + digits,
                                     element.data() + element.size(), bits);
  bool isWhole = code == std::errc() && end == element.data() + element.size();
  return isWhole && bits <= 64 ? (bits + 7) / 8 : 0;
}

/// Reads `?` or a number at the front of `text`.
static bool takeSize(std::string_view &text, int64_t &size) {
  if (!text.empty() && text.front() == '?') {
    size = kDynamicSize;
    text.remove_prefix(1);
    return true;
  }
  auto [end, code] =
      std::from_chars(text.data(), text.data() + text.size(), size);
  if (code != std::errc() || size < 0)
    return false;
  text.remove_prefix(end - text.data());
  return true;
}

/// strided<[?, 1], offset: ?>: where an array begins is the pointer's affair.
static bool parseLayout(std::string_view layout,
                        std::vector<int64_t> &strides) {
  constexpr std::string_view head = "strided<[";
  size_t end = layout.find(']');
  if (layout.substr(0, head.size()) != head || end == std::string_view::npos)
    return false;
  std::string_view list = layout.substr(head.size(), end - head.size());
  while (!list.empty()) {
    strides.emplace_back();
    if (!takeSize(list, strides.back()))
      return false;
    while (!list.empty() && (list.front() == ',' || list.front() == ' '))
      list.remove_prefix(1);
  }
  return true;
}

bool ManifestType::parse(std::string_view text, ManifestType &type) {
  type = ManifestType();
  type.text = std::string(text);
  constexpr std::string_view head = "memref<";
  if (text.substr(0, head.size()) != head) {
    type.isNumber = true;
    type.element = type.text;
    type.elementBytes = countElementBytes(text);
    return type.elementBytes || refuse(text, "it is neither memref nor number");
  }
  if (text.back() != '>')
    return refuse(text, "it does not end in '>'");
  std::string_view inside =
      text.substr(head.size(), text.size() - head.size() - 1);
  size_t comma = inside.find(',');
  std::string_view shape = inside.substr(0, comma);
  while (!shape.empty() && (shape.front() == '?' || isdigit(shape.front()))) {
    int64_t size = 0;
    if (!takeSize(shape, size) || shape.empty() || shape.front() != 'x')
      return refuse(text, "its shape is not sizes with an x after each");
    shape.remove_prefix(1);
    type.shape.push_back(size);
  }
  type.element = std::string(shape);
  type.elementBytes = countElementBytes(shape);
  if (!type.elementBytes)
    return refuse(text, "its elements are not known");
  if (type.shape.size() > kMaxManifestRank)
    return refuse(text, "it has more than 8 dimensions");
  if (comma == std::string_view::npos)
    return true;
  std::string_view layout = inside.substr(comma + 1);
  layout.remove_prefix(std::min(layout.find_first_not_of(' '), layout.size()));
  // The space of a memory, such as of the device, says nothing of the layout.
  if (!layout.empty() && isdigit(layout.front()))
    return true;
  std::vector<int64_t> strides;
  if (!parseLayout(layout, strides) || strides.size() != type.shape.size())
    return refuse(text, "its layout is not strided<[...]> of its rank");
  type.strides = std::move(strides);
  return true;
}
