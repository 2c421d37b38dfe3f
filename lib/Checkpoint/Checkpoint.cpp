//===- Checkpoint.cpp - the weights of a trained model --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Checkpoint/Checkpoint.h"

#include "FindFiles.h"
#include "nm_sparse/Support/Json.h"
#include "nm_sparse/Support/QuoteName.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include <set>

using namespace mlir;
using namespace mlir::nm_sparse;

static constexpr llvm::StringLiteral kParts[] = {"shape", "compressed",
                                                 "bitmask"};
static constexpr llvm::StringLiteral kScales[] = {"_scale", "_scale_inv"};

/// Returns true if a tensor belongs to a weight, and is none itself.
static bool isCompanion(llvm::StringRef name) {
  return name.ends_with("_zero_point") ||
         llvm::any_of(kScales, [&](llvm::StringRef ending) {
           return name.ends_with(ending);
         });
}

const TensorInfo *Checkpoint::find(const llvm::Twine &name) const {
  auto found = places.find(name.str());
  return found == places.end() ? nullptr : found->second.tensor;
}

llvm::Error Checkpoint::fail(llvm::StringRef name, const llvm::Twine &found,
                             const llvm::Twine &legal) const {
  return llvm::createStringError(places.lookup(name).file->getPath() +
                                 ": tensor " + quoteName(name) + " " + found +
                                 ": legal is " + legal);
}

/// Puts the file before an error that begins with the name of a tensor.
llvm::Error Checkpoint::addFileName(const CheckpointWeight &weight,
                                    llvm::Error error) const {
  std::string text = llvm::toString(std::move(error));
  for (const TensorInfo *part :
       {weight.parts.shape, weight.parts.compressed, weight.parts.bitmask})
    if (llvm::StringRef(text).starts_with("tensor " + quoteName(part->name)))
      return llvm::createStringError(places.lookup(part->name).file->getPath() +
                                     ": " + text);
  return llvm::createStringError(path + ": " + text);
}

llvm::Error Checkpoint::addFile(llvm::StringRef name) {
  auto file = TensorFile::open(name);
  if (!file)
    return file.takeError();
  paths.push_back(name.str());
  files.push_back(std::make_unique<TensorFile>(std::move(*file)));
  const TensorFile &added = *files.back();
  for (const TensorInfo &tensor : added.getTensors()) {
    auto [place, isNew] =
        places.try_emplace(tensor.name, Place{&tensor, &added});
    if (!isNew)
      return llvm::createStringError(llvm::formatv(
          "{0}: tensor {1} is in {2}, too: legal is one of them", name,
          quoteName(tensor.name), place->second.file->getPath()));
  }
  return llvm::Error::success();
}

llvm::Error Checkpoint::openShards(llvm::StringRef index) {
  auto shards = readIndex(index);
  if (!shards)
    return shards.takeError();
  paths.push_back(index.str());
  llvm::StringRef folder = llvm::sys::path::parent_path(index);
  llvm::StringMap<const TensorFile *> opened;
  std::set<std::string> names;
  for (const auto &[tensor, shard] : *shards)
    names.insert(shard);
  for (const std::string &name : names) {
    llvm::SmallString<128> file(folder);
    llvm::sys::path::append(file, name);
    if (llvm::Error error = addFile(file))
      return error;
    opened[name] = files.back().get();
  }
  for (const auto &[tensor, shard] : *shards) {
    auto place = places.find(tensor);
    if (place == places.end() || place->second.file != opened[shard])
      return llvm::createStringError(
          llvm::formatv("{0}: tensor {1} is not in {2}, as the index says",
                        index, quoteName(tensor), quoteName(shard)));
  }
  return llvm::Error::success();
}

/// Reads the sparsity from config.json, from each of its known places.
llvm::Error Checkpoint::readConfig(llvm::StringRef folder) {
  llvm::SmallString<128> file(folder);
  llvm::sys::path::append(file, "config.json");
  if (!llvm::sys::fs::is_regular_file(file))
    return llvm::Error::success();
  auto config = readObject(file, "it");
  if (!config)
    return config.takeError();
  const llvm::json::Object *found = config->getObject("sparsity_config");
  for (llvm::StringRef key : {"compression_config", "quantization_config"})
    if (const llvm::json::Object *compression = config->getObject(key)) {
      found = compression->getObject("sparsity_config");
      if (!found)
        found = compression;
    }
  if (!found)
    return llvm::Error::success();
  llvm::SmallVector<std::string> words;
  for (llvm::StringRef key : {"format", "sparsity_structure"})
    if (auto word = found->getString(key))
      words.push_back(quoteName(*word));
  sparsity = llvm::join(words, ", ");
  return llvm::Error::success();
}

std::string Checkpoint::findScale(llvm::StringRef weight) const {
  for (llvm::StringRef ending : kScales)
    if (find(weight + ending))
      return (weight + ending).str();
  return "";
}

llvm::Error Checkpoint::addCompressed(llvm::StringRef prefix) {
  auto nameOf = [&](llvm::StringRef part) {
    return (prefix + "." + part).str();
  };
  if (find(nameOf("row_offsets")) && find(nameOf("compressed")))
    return fail(nameOf("compressed"),
                "is stored as sparse-bitmask, which has no 2:4 pattern",
                "sparse-24-bitmask, or dense");
  std::string there;
  for (llvm::StringRef part : kParts)
    if (there.empty() && find(nameOf(part)))
      there = nameOf(part);
  for (llvm::StringRef part : kParts)
    if (!find(nameOf(part)))
      return fail(there, "has no " + part + " beside it",
                  "all of shape, compressed, bitmask");
  CheckpointWeight weight;
  weight.name = nameOf("weight");
  if (find(weight.name))
    return fail(weight.name, "is there dense and compressed", "one of them");
  weight.parts = {find(nameOf("shape")), find(nameOf("compressed")),
                  find(nameOf("bitmask"))};
  auto sizes = readBitmaskShape(weight.parts);
  if (!sizes)
    return addFileName(weight, sizes.takeError());
  std::tie(weight.outputs, weight.inputs) = *sizes;
  weight.type = weight.parts.compressed->type;
  weight.scale = findScale(weight.name);
  weights.push_back(std::move(weight));
  return llvm::Error::success();
}

/// The parts of a name, numbers by their value.
static std::vector<std::tuple<bool, uint64_t, std::string>>
getOrder(llvm::StringRef name) {
  std::vector<std::tuple<bool, uint64_t, std::string>> order;
  for (llvm::StringRef part : llvm::split(name, '.')) {
    uint64_t number = 0;
    bool isText = part.getAsInteger(10, number);
    order.emplace_back(isText, isText ? 0 : number, part.str());
  }
  return order;
}

llvm::Error Checkpoint::findWeights() {
  llvm::SetVector<llvm::StringRef> prefixes;
  llvm::StringSet<> parts;
  for (const auto &file : files)
    for (const TensorInfo &tensor : file->getTensors()) {
      auto [prefix, part] = llvm::StringRef(tensor.name).rsplit('.');
      // A single name of these may be any tensor; two are not there by chance.
      int64_t there = llvm::count_if(kParts, [&, prefix = prefix](auto &other) {
        return find(prefix + "." + other);
      });
      if (llvm::is_contained(kParts, part) && there > 1) {
        prefixes.insert(prefix);
        parts.insert(tensor.name);
      }
    }
  for (llvm::StringRef prefix : prefixes)
    if (llvm::Error error = addCompressed(prefix))
      return error;
  for (const auto &file : files)
    for (const TensorInfo &tensor : file->getTensors())
      if (!parts.contains(tensor.name) && !tensor.type->element.empty() &&
          tensor.shape.size() == 2 && !tensor.data.empty() &&
          !isCompanion(tensor.name))
        weights.push_back({tensor.name,
                           tensor.shape[0],
                           tensor.shape[1],
                           tensor.type,
                           &tensor,
                           {},
                           findScale(tensor.name)});
  llvm::sort(weights, [](const auto &a, const auto &b) {
    return getOrder(a.name) < getOrder(b.name);
  });
  return llvm::Error::success();
}

llvm::Expected<Checkpoint> Checkpoint::open(llvm::StringRef path) {
  Checkpoint checkpoint;
  checkpoint.path = path.str();
  auto first = findFirstFile(path);
  if (!first)
    return first.takeError();
  llvm::Error error = llvm::StringRef(*first).ends_with(".json")
                          ? checkpoint.openShards(*first)
                          : checkpoint.addFile(*first);
  if (!error)
    error = checkpoint.readConfig(llvm::sys::path::parent_path(*first));
  if (!error)
    error = checkpoint.findWeights();
  if (error)
    return error;
  return checkpoint;
}

llvm::Expected<WeightData>
Checkpoint::read(const CheckpointWeight &weight) const {
  WeightData data;
  if (!weight.isCompressed()) {
    data.bytes = weight.dense->data;
    return data;
  }
  auto dense = decodeBitmask(weight.parts);
  if (!dense)
    return addFileName(weight, dense.takeError());
  data.storage = std::move(*dense);
  data.bytes = data.storage;
  return data;
}
