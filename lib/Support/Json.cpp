//===- Json.cpp - JSON of strangers ---------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Support/Json.h"

#include "nm_sparse/Support/QuoteName.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include <optional>

using namespace mlir;
using namespace mlir::nm_sparse;

/// Objects and arrays in one another; those of models are nested five deep.
static constexpr size_t kMostLevels = 64;
/// Bytes of an index or a config.
static constexpr uint64_t kLargestFile = uint64_t(1) << 28;

namespace {
/// The errors that json::parse does not report.
struct Nesting {
  bool isTooDeep = false;
  std::optional<std::string> duplicate; ///< Means nothing if it is no JSON.
};
} // namespace

/// The number of bytes of the string that `text` begins with, quotes included.
static size_t getStringLength(llvm::StringRef text) {
  for (size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '"')
      return i + 1;
    if (text[i] == '\\')
      ++i;
  }
  return text.size();
}

static std::string unescape(llvm::StringRef quoted) {
  auto value = llvm::json::parse(quoted);
  if (!value) {
    llvm::consumeError(value.takeError());
    return quoted.str();
  }
  auto name = value->getAsString();
  return name ? name->str() : quoted.str();
}

static Nesting findNesting(llvm::StringRef text) {
  struct Level {
    bool isObject;
    llvm::StringSet<> names;
  };
  Nesting found;
  std::vector<Level> levels;
  bool expectsName = false;
  for (size_t i = 0; i < text.size(); ++i) {
    switch (text[i]) {
    case '{':
    case '[':
      if (levels.size() == kMostLevels) {
        found.isTooDeep = true;
        return found;
      }
      expectsName = text[i] == '{';
      levels.push_back({expectsName, {}});
      break;
    case '}':
    case ']':
      if (!levels.empty())
        levels.pop_back();
      expectsName = false;
      break;
    case ',':
      expectsName = !levels.empty() && levels.back().isObject;
      break;
    case '"': {
      llvm::StringRef quoted = text.substr(i, getStringLength(text.substr(i)));
      if (expectsName && !found.duplicate) {
        std::string name = unescape(quoted);
        if (!levels.back().names.insert(name).second)
          found.duplicate = name;
      }
      expectsName = false;
      i += quoted.size() - 1;
      break;
    }
    default:
      break;
    }
  }
  return found;
}

llvm::Expected<llvm::json::Object>
nm_sparse::parseObject(llvm::StringRef text, llvm::StringRef path,
                       llvm::StringRef what) {
  Nesting nesting = findNesting(text);
  if (nesting.isTooDeep)
    return llvm::createStringError(llvm::formatv(
        "{0}: {1} is nested more than {2} deep", path, what, kMostLevels));
  auto value = llvm::json::parse(text);
  if (!value)
    return llvm::createStringError(
        llvm::formatv("{0}: {1} is not JSON: {2}", path, what,
                      llvm::toString(value.takeError())));
  if (nesting.duplicate)
    return llvm::createStringError(
        llvm::formatv("{0}: in {1}, {2} is there twice", path, what,
                      quoteName(*nesting.duplicate)));
  llvm::json::Object *object = value->getAsObject();
  if (!object)
    return llvm::createStringError(
        llvm::formatv("{0}: {1} is not a JSON object", path, what));
  return std::move(*object);
}

llvm::Expected<llvm::json::Object> nm_sparse::readObject(llvm::StringRef path,
                                                         llvm::StringRef what) {
  uint64_t size = 0;
  std::error_code code = llvm::sys::fs::file_size(path, size);
  if (!code && size > kLargestFile)
    return llvm::createStringError(llvm::formatv(
        "{0}: has {1} bytes: legal is {2}", path, size, kLargestFile));
  if (!code && !llvm::sys::fs::is_regular_file(path))
    return llvm::createStringError(llvm::formatv("{0}: legal is a file", path));
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!code)
    code = buffer.getError();
  if (code)
    return llvm::createStringError(
        llvm::formatv("cannot read {0}: {1}", path, code.message()));
  return parseObject((*buffer)->getBuffer(), path, what);
}
