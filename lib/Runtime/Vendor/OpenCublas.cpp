//===- OpenCublas.cpp - Finding the libraries of cuBLAS -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpenCublas.h"

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <sys/stat.h>
#include <vector>

using namespace nms;

namespace {

bool isDirectory(const std::string &path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

/// The library's names, newest first.
std::vector<std::string> getNames(const std::string &stem) {
  return {stem + ".so.13", stem + ".so.12", stem + ".so"};
}

/// Files to try, best first.
std::vector<std::string> getCandidates(const std::string &stem) {
  std::vector<std::string> names = getNames(stem), files;
  auto addFolder = [&](std::string folder) {
    folder += '/';
    for (const std::string &name : names)
      files.push_back(folder + name);
  };
  if (const char *path = getenv("NM_SPARSE_CUBLAS"); path && *path) {
    // A chosen library is the only one: falling back to another would hide that
    // the wrong one is measured. A file is that of libcublas, beside which the
    // others have its version, or one that has all of them.
    std::string chosen = path;
    if (isDirectory(chosen)) {
      addFolder(chosen);
      return files;
    }
    const std::string own = "libcublas";
    size_t slash = chosen.rfind('/');
    size_t name = slash == std::string::npos ? 0 : slash + 1;
    if (stem != own && chosen.compare(name, own.size(), own) == 0)
      files.push_back(chosen.substr(0, name) + stem +
                      chosen.substr(name + own.size()));
    files.push_back(chosen);
    return files;
  }
  files = names;
  if (const char *list = getenv("LD_LIBRARY_PATH")) {
    std::string rest = list;
    for (size_t begin = 0; begin <= rest.size();) {
      size_t end = std::min(rest.find(':', begin), rest.size());
      if (end > begin)
        addFolder(rest.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  if (const char *home = getenv("CUDA_HOME"); home && *home)
    addFolder(std::string(home) + "/lib64");
  addFolder("/usr/local/cuda/lib64");
  return files;
}

} // namespace

cublas::OpenedLibrary nms::cublas::openLibrary(const char *stem,
                                               const char *title) {
  OpenedLibrary opened;
  std::string firstReason;
  for (const std::string &file : getCandidates(stem)) {
    // cuBLAS finds libcublasLt beside itself through its own run path.
    opened.handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (opened.handle)
      return opened;
    const char *reason = dlerror();
    if (firstReason.empty() && reason)
      firstReason = reason;
  }
  std::vector<std::string> names = getNames(stem);
  opened.error = std::string("no ") + title + ": none of " + names[0] + ", " +
                 names[1] + " and " + names[2] + " could be opened (" +
                 firstReason +
                 "): install cuBLAS, or name its file or its folder with "
                 "NM_SPARSE_CUBLAS";
  return opened;
}
