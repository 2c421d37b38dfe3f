//===- PlanLauncher.h - launching what was planned --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_RUNTIME_PROGRAM_PLANLAUNCHER_H
#define NM_SPARSE_LIB_RUNTIME_PROGRAM_PLANLAUNCHER_H

#include "ProgramPlan.h"

namespace nms {

/// The launches of a plan, with the pointers of one call.
class PlanLauncher {
public:
  PlanLauncher(const ProgramPlan &plan, const NmsArray *arguments,
               void *workspace, cuda::Stream stream)
      : plan(plan), arguments(arguments), workspace(workspace), stream(stream) {
  }

  /// Gives buffers of the workspace their first values. False with the reason
  /// recorded.
  bool fill(const Context &cu) const;
  /// Launches one kernel, with the same answer.
  bool launch(const Context &cu, const PlannedLaunch &launch,
              cuda::Function function);

private:
  char *resolve(const PlannedPointer &pointer) const {
    void *base =
        pointer.argument < 0 ? workspace : arguments[pointer.argument].data;
    return static_cast<char *>(base) + pointer.offset;
  }
  void *findMap(const PlannedParameter &parameter, int device) const;
  void *makeMap(const PlannedMap &map, const void *base) const;

  const ProgramPlan &plan;
  const NmsArray *arguments;
  void *workspace;
  cuda::Stream stream;
};

} // namespace nms

#endif // NM_SPARSE_LIB_RUNTIME_PROGRAM_PLANLAUNCHER_H
