//===- ProgramPlan.h - a call of a program, by sizes ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All that depends on the sizes and strides of the arguments alone: grids,
// numbers that kernels take, where buffers lie in the workspace. Pointers are
// put in when it is launched.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_RUNTIME_PROGRAM_PROGRAMPLAN_H
#define NM_SPARSE_LIB_RUNTIME_PROGRAM_PROGRAMPLAN_H

#include "../Driver/Functions.h"
#include "MapCopies.h"
#include "nm_sparse/Manifest/Manifest.h"
#include "nm_sparse/Runtime/Program.h"

#include <memory>

namespace nms {

/// A pointer into an argument or into the workspace.
struct PlannedPointer {
  int argument = -1;  ///< -1: the workspace.
  int64_t offset = 0; ///< Bytes.
};

struct PlannedMap {
  std::vector<int64_t> sizes, strides, box; ///< Elements.
  int64_t dataType = 0;
  int swizzle = 0, l2Promotion = 0;
  bool isByValue = false;
  std::optional<Im2colPixels> im2col;
  std::unique_ptr<MapCopies> copies = std::make_unique<MapCopies>();
};

struct PlannedParameter {
  ManifestParameter::Kind kind = ManifestParameter::Kind::Number;
  int64_t number = 0;
  PlannedPointer pointer;
  int map = -1; ///< -1 for that of an empty array, by value.
};

struct PlannedLaunch {
  int kernel = 0; ///< In the program.
  LaunchRequest shape;
  std::vector<PlannedParameter> parameters;
};

/// Bytes of the workspace that hold a value before the launches.
struct PlannedFill {
  int64_t offset = 0, count = 0;
  int64_t elementBytes = 0, value = 0;
};

/// A word of the workspace, and what it is checked against.
struct PlannedCheck {
  int64_t offset = 0;
  PackedCheck packed;
};

struct ProgramPlan {
  int64_t workspaceBytes = 0;
  std::vector<PlannedFill> fills;
  std::vector<PlannedLaunch> launches;
  std::vector<PlannedMap> maps;
  std::vector<NmsResult> results;
  std::vector<PlannedCheck> checks;
};

/// Kernels of a program, by number.
using KernelNumbers = std::vector<std::string>;

/// The plan of `function` for `arguments`, whose numbers and sizes are checked.
/// Null with the reason recorded.
std::unique_ptr<ProgramPlan> planCall(const Manifest &manifest,
                                      const ManifestFunction &function,
                                      const KernelNumbers &kernels,
                                      const NmsArray *arguments, int count);

/// The plan of a call of `program`, made on first use; null with the reason
/// recorded.
std::shared_ptr<const ProgramPlan> findPlan(NmsProgram *program,
                                            int32_t function,
                                            const NmsArray *arguments,
                                            int32_t count);

} // namespace nms

#endif // NM_SPARSE_LIB_RUNTIME_PROGRAM_PROGRAMPLAN_H
