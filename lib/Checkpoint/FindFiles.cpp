//===- FindFiles.cpp - the files of a checkpoint --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FindFiles.h"

#include "nm_sparse/Checkpoint/TensorFile.h"
#include "nm_sparse/Support/Json.h"
#include "nm_sparse/Support/QuoteName.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include <set>

using namespace mlir;
using namespace mlir::nm_sparse;
namespace fs = llvm::sys::fs;

static constexpr llvm::StringLiteral kEnding = ".safetensors";
static constexpr llvm::StringLiteral kIndex = "model.safetensors.index.json";

static bool isPickle(llvm::StringRef path) {
  return llvm::is_contained(
      llvm::ArrayRef<llvm::StringRef>(
          {".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle"}),
      llvm::sys::path::extension(path));
}

static llvm::Error refusePickle(llvm::StringRef path) {
  return llvm::createStringError(
      path + ": this is a pickle, and reading one runs the code in it: legal "
             "is safetensors; convert it where that code may run");
}

/// `name` in `folder`.
static std::string join(llvm::StringRef folder, llvm::StringRef name) {
  llvm::SmallString<128> path(folder);
  llvm::sys::path::append(path, name);
  return path.str().str();
}

static llvm::Expected<std::string> findInFolder(llvm::StringRef folder) {
  for (llvm::StringRef name :
       {llvm::StringRef(kIndex), llvm::StringRef("model.safetensors")})
    if (fs::exists(join(folder, name)))
      return join(folder, name);
  std::set<std::string> tensors, pickles;
  std::error_code code;
  for (fs::directory_iterator it(folder, code), end; it != end && !code;
       it.increment(code)) {
    if (llvm::StringRef(it->path()).ends_with(kEnding))
      tensors.insert(it->path());
    if (isPickle(it->path()))
      pickles.insert(it->path());
  }
  if (code)
    return llvm::createStringError(
        llvm::formatv("cannot read {0}: {1}", folder, code.message()));
  if (tensors.size() == 1)
    return *tensors.begin();
  if (tensors.empty() && !pickles.empty())
    return refusePickle(*pickles.begin());
  return llvm::createStringError(llvm::formatv(
      "{0}: has {1} safetensors files and no {2}: legal is one file, or an "
      "index",
      folder, tensors.size(), kIndex));
}

llvm::Expected<std::string> nm_sparse::findFirstFile(llvm::StringRef path) {
  if (fs::is_directory(path))
    return findInFolder(path);
  if (isPickle(path))
    return refusePickle(path);
  if (path.ends_with(".json") && !path.ends_with(".index.json"))
    return llvm::createStringError(
        path + ": legal is a folder, .safetensors or .index.json");
  return path.str();
}

llvm::Expected<std::map<std::string, std::string>>
nm_sparse::readIndex(llvm::StringRef path) {
  auto object = readObject(path, "the index");
  if (!object)
    return object.takeError();
  const llvm::json::Object *map = object->getObject("weight_map");
  if (!map || map->empty())
    return llvm::createStringError(path + ": has no weight_map: legal is one");
  std::map<std::string, std::string> shards;
  for (const auto &[key, value] : *map) {
    std::string tensor = quoteName(llvm::StringRef(key));
    auto shard = value.getAsString();
    // A name of one part stays in the folder. It may be a link, as in caches.
    if (!shard || !shard->ends_with(kEnding) ||
        shard->find_first_of(llvm::StringRef("/\\\0", 3)) !=
            llvm::StringRef::npos)
      return llvm::createStringError(llvm::formatv(
          "{0}: tensor {1} is in {2}: legal is the name of a safetensors file "
          "in the same folder",
          path, tensor, value));
    if (!fs::exists(join(llvm::sys::path::parent_path(path), *shard)))
      return llvm::createStringError(
          llvm::formatv("{0}: tensor {1} is in {2}, which is not there", path,
                        tensor, quoteName(*shard)));
    shards[llvm::StringRef(key).str()] = shard->str();
  }
  return shards;
}
