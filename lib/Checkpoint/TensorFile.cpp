//===- TensorFile.cpp - files of named tensors ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Checkpoint/TensorFile.h"

#include "nm_sparse/Support/Json.h"
#include "nm_sparse/Support/QuoteName.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// The format's own limit, in bytes.
static constexpr uint64_t kLargestHeader = 100'000'000;
static constexpr uint64_t kLengthBytes = 8;
static constexpr llvm::StringLiteral kMetadata = "__metadata__";

static constexpr StoredType types[] = {
    {"BOOL", 8, ""},
    {"F4", 4, ""},
    {"F6_E2M3", 6, ""},
    {"F6_E3M2", 6, ""},
    {"U8", 8, ""},
    {"I8", 8, "i8"},
    {"F8_E5M2", 8, "f8E5M2"},
    {"F8_E4M3", 8, "f8E4M3FN"},
    {"F8_E8M0", 8, ""},
    {"F8_E4M3FNUZ", 8, ""},
    {"F8_E5M2FNUZ", 8, ""},
    {"I16", 16, ""},
    {"U16", 16, ""},
    {"F16", 16, "f16"},
    {"BF16", 16, "bf16"},
    {"I32", 32, ""},
    {"U32", 32, ""},
    {"F32", 32, "f32"},
    {"C64", 64, ""},
    {"F64", 64, ""},
    {"I64", 64, ""},
    {"U64", 64, ""},
};

const StoredType *nm_sparse::findStoredType(llvm::StringRef name) {
  const auto *found = llvm::find_if(
      types, [&](const StoredType &type) { return type.name == name; });
  return found == std::end(types) ? nullptr : found;
}

const StoredType *nm_sparse::findElementType(llvm::StringRef element) {
  const auto *found = llvm::find_if(types, [&](const StoredType &type) {
    return !element.empty() && type.element == element;
  });
  return found == std::end(types) ? nullptr : found;
}

llvm::SmallVector<llvm::StringRef> nm_sparse::getElementTypes() {
  llvm::SmallVector<llvm::StringRef> elements;
  for (const StoredType &type : types)
    if (!type.element.empty())
      elements.push_back(type.element);
  return elements;
}

namespace {
/// A tensor as the header has it; begin and end count from the first tensor.
struct Entry {
  TensorInfo tensor;
  int64_t begin, end;
};

/// Reads what the header says of one tensor.
class EntryReader {
public:
  EntryReader(llvm::StringRef path, llvm::StringRef name)
      : path(path), name(name) {}

  llvm::Expected<Entry> read(const llvm::json::Value &value) const;

private:
  llvm::Error fail(const llvm::Twine &found, const llvm::Twine &legal) const {
    return llvm::createStringError(path + ": tensor " + quoteName(name) + " " +
                                   found + ": legal is " + legal);
  }
  llvm::Error checkSize(const Entry &entry) const;

  llvm::StringRef path, name;
};
} // namespace

/// The text of `value`, cut to the length of a line, or "missing".
static std::string print(const llvm::json::Value *value) {
  constexpr size_t most = 80;
  std::string text = value ? llvm::formatv("{0}", *value).str() : "missing";
  if (text.size() > most)
    text = llvm::json::fixUTF8(llvm::StringRef(text).take_front(most)) + "...";
  return text;
}

/// The elements of a list of sizes, or nothing if it is none.
static std::optional<llvm::SmallVector<int64_t, 2>>
getSizes(const llvm::json::Value *value) {
  const llvm::json::Array *array = value ? value->getAsArray() : nullptr;
  if (!array)
    return std::nullopt;
  llvm::SmallVector<int64_t, 2> sizes;
  for (const llvm::json::Value &element : *array) {
    auto size = element.getAsInteger();
    if (!size || *size < 0)
      return std::nullopt;
    sizes.push_back(*size);
  }
  return sizes;
}

/// The number of elements, or nothing if that is too large for any file.
static std::optional<int64_t> countElements(llvm::ArrayRef<int64_t> shape) {
  if (llvm::is_contained(shape, 0))
    return 0;
  int64_t count = 1;
  for (int64_t size : shape)
    if (llvm::MulOverflow(count, size, count))
      return std::nullopt;
  return count;
}

llvm::Error EntryReader::checkSize(const Entry &entry) const {
  std::optional<int64_t> count = countElements(entry.tensor.shape);
  int64_t bits = 0, held = entry.end - entry.begin;
  if (count && !llvm::MulOverflow(*count, entry.tensor.type->bits, bits) &&
      bits % 8 == 0 && bits / 8 == held)
    return llvm::Error::success();
  const llvm::json::Value shape = llvm::json::Array(entry.tensor.shape);
  return fail("has " + llvm::Twine(held) + " bytes",
              "what " + entry.tensor.type->name + " of shape " + print(&shape) +
                  " takes" +
                  (count && bits % 8 == 0 && bits != 0
                       ? ", " + std::to_string(bits / 8)
                       : std::string()));
}

llvm::Expected<Entry> EntryReader::read(const llvm::json::Value &value) const {
  const llvm::json::Object *object = value.getAsObject();
  if (!object)
    return fail("is " + print(&value), "an object");
  const llvm::json::Value *dtype = object->get("dtype"),
                          *shape = object->get("shape"),
                          *offsets = object->get("data_offsets");
  auto spelled = dtype ? dtype->getAsString() : std::nullopt;
  const StoredType *type = spelled ? findStoredType(*spelled) : nullptr;
  if (!type)
    return fail("has dtype " + print(dtype),
                llvm::join(llvm::map_range(types,
                                           [](const StoredType &type) {
                                             return type.name.str();
                                           }),
                           ", "));
  auto sizes = getSizes(shape), places = getSizes(offsets);
  if (!sizes)
    return fail("has shape " + print(shape), "a list of sizes");
  if (!places || places->size() != 2 || (*places)[0] > (*places)[1])
    return fail("has data_offsets " + print(offsets),
                "[begin, end] with begin <= end");
  Entry entry{
      {name.str(), type, std::move(*sizes), {}}, (*places)[0], (*places)[1]};
  if (llvm::Error error = checkSize(entry))
    return error;
  return entry;
}

llvm::Expected<TensorFile> TensorFile::open(llvm::StringRef path) {
  llvm::sys::fs::file_status status;
  std::error_code code = llvm::sys::fs::status(path, status);
  // A pipe or a device may never end.
  if (!code && !llvm::sys::fs::is_regular_file(status))
    return llvm::createStringError(path + ": legal is a file");
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!code)
    code = buffer.getError();
  if (code)
    return llvm::createStringError(
        llvm::formatv("cannot read {0}: {1}", path, code.message()));
  return read(std::move(*buffer));
}

llvm::Expected<TensorFile>
TensorFile::read(std::unique_ptr<llvm::MemoryBuffer> buffer) {
  TensorFile file;
  file.buffer = std::move(buffer);
  llvm::StringRef bytes = file.buffer->getBuffer();
  uint64_t length = bytes.size() < kLengthBytes
                        ? 0
                        : llvm::support::endian::read64le(bytes.data());
  if (bytes.size() < kLengthBytes || length > bytes.size() - kLengthBytes ||
      length > kLargestHeader)
    return llvm::createStringError(llvm::formatv(
        "{0}: the header has {1} bytes and the file {2}: legal is a header of "
        "at most {3} that is in the file; this is no safetensors file, or a "
        "part of one",
        file.getPath(), length, bytes.size(), kLargestHeader));
  llvm::StringRef data = bytes.drop_front(kLengthBytes + length);
  if (llvm::Error error = file.readHeader(bytes.substr(kLengthBytes, length),
                                          {data.data(), data.size()}))
    return error;
  return file;
}

/// Reads `value`, an object whose entries must be text.
static llvm::Error readMetadata(llvm::StringRef path,
                                const llvm::json::Value &value,
                                llvm::StringMap<std::string> &metadata) {
  const llvm::json::Object *object = value.getAsObject();
  if (!object)
    return llvm::createStringError(path + ": " + kMetadata +
                                   " is not an object");
  for (const auto &[key, entry] : *object) {
    auto text = entry.getAsString();
    if (!text)
      return llvm::createStringError(
          path + ": " + quoteName(llvm::StringRef(key)) + " of " + kMetadata +
          " is " + print(&entry) + ": legal is text");
    metadata[llvm::StringRef(key)] = text->str();
  }
  return llvm::Error::success();
}

llvm::Error TensorFile::readHeader(llvm::StringRef header,
                                   llvm::ArrayRef<char> data) {
  auto object = parseObject(header, getPath(), "the header");
  if (!object)
    return object.takeError();
  std::vector<Entry> entries;
  for (const auto &[key, value] : *object) {
    llvm::StringRef name = key;
    if (name == kMetadata) {
      if (llvm::Error error = readMetadata(getPath(), value, metadata))
        return error;
      continue;
    }
    auto entry = EntryReader(getPath(), name).read(value);
    if (!entry)
      return entry.takeError();
    entries.push_back(std::move(*entry));
  }
  llvm::sort(entries, [](const Entry &a, const Entry &b) {
    return std::tie(a.begin, a.end, a.tensor.name) <
           std::tie(b.begin, b.end, b.tensor.name);
  });

  // Each byte belongs to exactly one tensor.
  int64_t at = 0, size = data.size();
  std::string before = "the header";
  for (Entry &entry : entries) {
    TensorInfo &tensor = entry.tensor;
    auto fail = [&, begin = entry.begin,
                 end = entry.end](const llvm::Twine &legal) {
      return llvm::createStringError(
          getPath() + ": tensor " + quoteName(tensor.name) + " has the bytes " +
          llvm::Twine(begin) + " to " + llvm::Twine(end) + ": legal is " +
          legal);
    };
    if (entry.end > size)
      return fail("up to " + llvm::Twine(size) +
                  ", where the file ends; it may be a part of one");
    if (entry.begin != at)
      return fail("a start at " + llvm::Twine(at) + ", where " + before +
                  " ends");
    tensor.data = data.slice(entry.begin, entry.end - entry.begin);
    at = entry.end;
    before = quoteName(tensor.name);
    tensors.push_back(std::move(tensor));
  }
  if (at != size)
    return llvm::createStringError(
        llvm::formatv("{0}: {1} bytes follow {2}: legal is none", getPath(),
                      size - at, before));
  return llvm::Error::success();
}

int64_t TensorSpec::getBytes() const {
  return countElements(shape).value_or(0) * type->bits / 8;
}

TensorFileHeader
nm_sparse::makeTensorFileHeader(llvm::ArrayRef<TensorSpec> tensors,
                                const llvm::StringMap<std::string> &metadata) {
  auto order = llvm::to_vector(llvm::seq<size_t>(tensors.size()));
  llvm::sort(order, [&](size_t a, size_t b) {
    return std::tie(tensors[b].type->bits, tensors[a].name) <
           std::tie(tensors[a].type->bits, tensors[b].name);
  });
  llvm::json::Object header;
  TensorFileHeader result;
  result.offsets.resize(tensors.size());
  uint64_t at = 0;
  for (size_t number : order) {
    const TensorSpec &tensor = tensors[number];
    result.offsets[number] = at;
    uint64_t end = at + tensor.getBytes();
    header[tensor.name] =
        llvm::json::Object{{"dtype", tensor.type->name},
                           {"shape", llvm::json::Array(tensor.shape)},
                           {"data_offsets", llvm::json::Array{at, end}}};
    at = end;
  }
  if (!metadata.empty()) {
    llvm::json::Object texts;
    for (const auto &entry : metadata)
      texts[entry.getKey()] = entry.getValue();
    header[kMetadata] = std::move(texts);
  }
  std::string text = llvm::formatv("{0}", llvm::json::Value(std::move(header)));
  text.resize(llvm::alignTo(text.size(), kLengthBytes), ' ');
  result.bytes.resize(kLengthBytes);
  llvm::support::endian::write64le(result.bytes.data(), text.size());
  result.bytes += text;
  for (uint64_t &offset : result.offsets)
    offset += result.bytes.size();
  return result;
}
