//===- nm-sparse.cpp - all tools in one static executable -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs the tool that it is called as, or the one that its first argument names.
//
//===----------------------------------------------------------------------===//

#include <cstdio>
#include <cstring>

#define NM_SPARSE_TOOL(name, function) int function(int, char **);
#include "Tools.inc"
#undef NM_SPARSE_TOOL

namespace {
struct Tool {
  const char *name;
  int (*main)(int, char **);
};
} // namespace

static const Tool tools[] = {
#define NM_SPARSE_TOOL(name, function) {name, function},
#include "Tools.inc"
#undef NM_SPARSE_TOOL
};

static const Tool *findTool(const char *path) {
  const char *slash = std::strrchr(path, '/');
  const char *name = slash ? slash + 1 : path;
  for (const Tool &tool : tools)
    if (!std::strcmp(tool.name, name))
      return &tool;
  return nullptr;
}

int main(int argc, char **argv) {
  if (const Tool *tool = findTool(argv[0]))
    return tool->main(argc, argv);
  if (argc > 1)
    if (const Tool *tool = findTool(argv[1]))
      return tool->main(argc - 1, argv + 1);
  std::fprintf(stderr, "usage: nm-sparse TOOL ..., where TOOL is one of");
  for (const Tool &tool : tools)
    std::fprintf(stderr, " %s", tool.name);
  std::fprintf(stderr, "\n");
  return 2;
}
