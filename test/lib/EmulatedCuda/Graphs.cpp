//===- Graphs.cpp - graphs of launches, copies and memsets ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A node can only depend on nodes that were added before it, so that the order
// in which they were added is one in which they can run.
//
//===----------------------------------------------------------------------===//

#include "EmulatedCuda.h"

#include <functional>

using namespace nms::cuda;
using emulated_cuda::errorNotInitialized;
using emulated_cuda::getDriver;
using emulated_cuda::Launch;

namespace {

using Step = std::function<Result()>;

/// A CUgraph, and what is instantiated of one.
struct GraphSteps {
  std::vector<Step> steps;
};

using Node = void *;

/// CUDA_KERNEL_NODE_PARAMS; its second version has further members.
struct KernelNode {
  emulated_cuda::Function *function;
  unsigned gridX, gridY, gridZ, blockX, blockY, blockZ, sharedBytes;
  void **params, **extra;
};

/// CUDA_MEMSET_NODE_PARAMS
struct MemsetNode {
  DevicePtr target;
  size_t pitch;
  unsigned value, elementBytes;
  size_t width, height;
};

/// One side of a copy.
struct CopySide {
  size_t x, y, z, level;
  int kind; ///< 1: of the host, 2: of the device, 4: as the address says.
  void *host;
  DevicePtr device;
  void *array, *reserved;
  size_t pitch, height;

  DevicePtr getAddress(size_t row, size_t slice) const {
    DevicePtr start = kind == 1 ? reinterpret_cast<DevicePtr>(host) : device;
    return start + x + ((z + slice) * height + y + row) * pitch;
  }
};

/// CUDA_MEMCPY3D
struct CopyNode {
  CopySide source, target;
  size_t width, height, depth;
};

Result add(Node *node, GraphSteps *graph, Step step) {
  graph->steps.push_back(std::move(step));
  *node = reinterpret_cast<Node>(graph->steps.size());
  return success;
}

Result runCopy(const CopyNode &copy) {
  for (size_t slice = 0; slice < copy.depth; ++slice)
    for (size_t row = 0; row < copy.height; ++row)
      if (Result result = getDriver()->memcpyAsync(
              copy.target.getAddress(row, slice),
              copy.source.getAddress(row, slice), copy.width, nullptr))
        return result;
  return success;
}

} // namespace

CUDA_FUNCTION cuMemsetD8Async(DevicePtr, unsigned char, size_t, Stream);

static Result runMemset(const MemsetNode &memset) {
  for (size_t row = 0; row < memset.height; ++row) {
    DevicePtr target = memset.target + row * memset.pitch;
    Result result = success;
    if (memset.elementBytes == 4)
      result = getDriver()->memsetD32Async(target, memset.value, memset.width,
                                           nullptr);
    else if (memset.elementBytes == 2)
      result = getDriver()->memsetD16Async(target, memset.value, memset.width,
                                           nullptr);
    else
      result = cuMemsetD8Async(target, memset.value, memset.width, nullptr);
    if (result != success)
      return result;
  }
  return success;
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

CUDA_FUNCTION cuGraphCreate(GraphSteps **graph, unsigned) {
  *graph = new GraphSteps;
  return getDriver() ? success : errorNotInitialized;
}
CUDA_FUNCTION cuGraphDestroy(GraphSteps *graph) {
  delete graph;
  return success;
}

CUDA_FUNCTION cuGraphAddKernelNode(Node *node, GraphSteps *graph, const Node *,
                                   size_t, const KernelNode *kernel) {
  Launch launch = {kernel->function,
                   {kernel->gridX, kernel->gridY, kernel->gridZ},
                   {kernel->blockX, kernel->blockY, kernel->blockZ},
                   kernel->sharedBytes,
                   {0, 0, 0},
                   {}};
  if (Result result = launch.copyArguments(kernel->params, kernel->extra))
    return result;
  return add(node, graph,
             [launch = std::move(launch)]() mutable { return launch.run(); });
}
CUDA_FUNCTION cuGraphAddKernelNode_v2(Node *node, GraphSteps *graph,
                                      const Node *before, size_t count,
                                      const KernelNode *kernel) {
  return cuGraphAddKernelNode(node, graph, before, count, kernel);
}

CUDA_FUNCTION cuGraphAddMemcpyNode(Node *node, GraphSteps *graph, const Node *,
                                   size_t, const CopyNode *copy, Context) {
  return add(node, graph, [copy = *copy] { return runCopy(copy); });
}
CUDA_FUNCTION cuGraphAddMemsetNode(Node *node, GraphSteps *graph, const Node *,
                                   size_t, const MemsetNode *memset, Context) {
  return add(node, graph, [memset = *memset] { return runMemset(memset); });
}
CUDA_FUNCTION cuGraphAddEmptyNode(Node *node, GraphSteps *graph, const Node *,
                                  size_t) {
  return add(node, graph, [] { return success; });
}
CUDA_FUNCTION cuGraphAddEventRecordNode(Node *node, GraphSteps *graph,
                                        const Node *, size_t, Event event) {
  return add(node, graph,
             [event] { return getDriver()->eventRecord(event, nullptr); });
}

CUDA_FUNCTION cuGraphGetNodes(GraphSteps *graph, Node *nodes, size_t *count) {
  if (!nodes) {
    *count = graph->steps.size();
    return success;
  }
  *count = std::min(*count, graph->steps.size());
  for (size_t i = 0; i < *count; ++i)
    nodes[i] = reinterpret_cast<Node>(i + 1);
  return success;
}

//===----------------------------------------------------------------------===//
// Execution
//===----------------------------------------------------------------------===//

CUDA_FUNCTION cuGraphInstantiateWithFlags(GraphSteps **execution,
                                          GraphSteps *graph,
                                          unsigned long long) {
  *execution = new GraphSteps(*graph);
  return success;
}
CUDA_FUNCTION cuGraphInstantiate_v2(GraphSteps **execution, GraphSteps *graph,
                                    Node *, char *, size_t) {
  return cuGraphInstantiateWithFlags(execution, graph, 0);
}
CUDA_FUNCTION cuGraphExecDestroy(GraphSteps *execution) {
  delete execution;
  return success;
}
CUDA_FUNCTION cuGraphLaunch(GraphSteps *execution, Stream) {
  for (Step &step : execution->steps)
    if (Result result = step())
      return result;
  return success;
}
