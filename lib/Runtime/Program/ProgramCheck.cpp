//===- ProgramCheck.cpp - what kernels found wrong with their data --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProgramPlan.h"
#include "nm_sparse/Runtime/Error.h"

using namespace nms;

namespace {

/// True when the host may wait for `stream`. To wait for one that is captured
/// would end the capture.
bool mayWait(const Context &cu, cuda::Stream stream) {
  if (!cu->streamIsCapturing)
    return true;
  int status = 0;
  if (!cu.check(cu->streamIsCapturing(stream, &status),
                "asking whether a stream is captured"))
    return false;
  return status == cuda::captureNone ||
         !fail("nmsProgramCheck: the stream is captured, so the kernels have "
               "not run: check after each launch of the graph, or call the "
               "function outside of the capture");
}

} // namespace

int nmsProgramCheck(NmsProgram *program, int32_t function,
                    const NmsArray *arguments, int32_t count,
                    const void *workspace, void *stream) {
  auto plan = findPlan(program, function, arguments, count);
  if (!plan)
    return 1;
  if (plan->checks.empty())
    return 0;
  if (!workspace)
    return fail("nmsProgramCheck: the workspace is null, legal is that of the "
                "launch");
  Context cu;
  auto queue = static_cast<cuda::Stream>(stream);
  if (!cu || !mayWait(cu, queue))
    return 1;
  std::vector<int64_t> found(plan->checks.size());
  for (size_t i = 0; i < found.size(); ++i) {
    const char *from =
        static_cast<const char *>(workspace) + plan->checks[i].offset;
    if (!cu.check(cu->memcpyAsync(reinterpret_cast<cuda::DevicePtr>(&found[i]),
                                  reinterpret_cast<cuda::DevicePtr>(from),
                                  sizeof(found[i]), queue),
                  "copying what a kernel found"))
      return 1;
  }
  if (!cu.check(cu->streamSynchronize(queue),
                "waiting for a stream (the last kernel launched was '%s')",
                lastLaunchedKernel().c_str()))
    return 1;
  for (size_t i = 0; i < found.size(); ++i)
    if (checkPacked(found[i], plan->checks[i].packed))
      return NMS_CHECK_FAILED;
  return 0;
}
