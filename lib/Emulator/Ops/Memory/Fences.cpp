//===- Fences.cpp - fences, and hints to the scheduler --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Barriers and mbarriers release and acquire by themselves. Fences matter to
// their relaxed forms, and between proxies.
//
//===----------------------------------------------------------------------===//

#include "Machine/MBarrier.h"
#include "Ops/OpTable.h"
#include "Ops/Operands.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::nm_sparse;
using namespace mlir::nm_sparse::emulator;

namespace {

/// Relaxed operations after it release what came before it, and what relaxed
/// operations before it learnt is known after it; with `isGPU` also between
/// clusters.
void fence(Thread &thread, bool isGPU) {
  thread.acquire(thread.awaited);
  thread.release(thread.fenced);
  if (isGPU)
    thread.fenceGPU();
}

Handler makeFence(bool isGPU) {
  return [=](Thread &thread, Values, Values) { fence(thread, isGPU); };
}

bool isGPUScope(NVVM::MemScopeKind scope) {
  return scope == NVVM::MemScopeKind::GPU || scope == NVVM::MemScopeKind::SYS;
}

template <typename Op>
FailureOr<Handler> prepareScopedFence(Operation *op) {
  return makeFence(isGPUScope(cast<Op>(op).getScope()));
}

FailureOr<Handler> prepareClusterFence(Operation *) {
  return makeFence(/*isGPU=*/false);
}

FailureOr<Handler> prepareLLVMFence(Operation *op) {
  StringRef scope = cast<LLVM::FenceOp>(op).getSyncscope().value_or("");
  return makeFence(scope.empty() || scope == "device");
}

FailureOr<Handler> prepareProxyFence(Operation *op) {
  switch (cast<NVVM::FenceProxyOp>(op).getKind()) {
  case NVVM::ProxyKind::async:
  case NVVM::ProxyKind::async_shared:
    return Handler([](Thread &thread, Values, Values) { thread.fenceProxy(); });
  case NVVM::ProxyKind::alias:
  case NVVM::ProxyKind::async_global:
  case NVVM::ProxyKind::TENSORMAP:
  case NVVM::ProxyKind::GENERIC:
    // The order of accesses to global memory is not checked.
    return Handler([](Thread &, Values, Values) {});
  }
  llvm_unreachable("covered switch");
}

FailureOr<Handler> prepareSharedProxyFence(Operation *) {
  return Handler([](Thread &thread, Values, Values) {
    fence(thread, /*isGPU=*/false);
    thread.fenceProxy();
  });
}

FailureOr<Handler> prepareMBarrierInitFence(Operation *) {
  return Handler([](Thread &thread, Values, Values) {
    thread.cta.mbarriers->fence(thread);
  });
}

/// Kernels run one after the other.
FailureOr<Handler> prepareGridDependency(Operation *) {
  return Handler([](Thread &, Values, Values) {});
}

FailureOr<Handler> prepareSleep(Operation *) {
  return Handler([](Thread &thread, Values, Values) {
    thread.yield([] { return std::string("asleep"); }, /*isGlobal=*/true);
  });
}

} // namespace

ArrayRef<OpEntry> emulator::getFenceOps() {
  static const OpEntry entries[] = {
      {"llvm.fence", prepareLLVMFence},
      {"nvvm.memory.barrier", prepareScopedFence<NVVM::MembarOp>},
      {"nvvm.fence.sc.cluster", prepareClusterFence},
      {"nvvm.fence.sync_restrict", prepareClusterFence},
      {"nvvm.fence.proxy", prepareProxyFence},
      {"nvvm.fence.proxy.acquire",
       prepareScopedFence<NVVM::FenceProxyAcquireOp>},
      {"nvvm.fence.proxy.release",
       prepareScopedFence<NVVM::FenceProxyReleaseOp>},
      {"nvvm.fence.proxy.sync_restrict", prepareSharedProxyFence},
      {"nvvm.fence.mbarrier.init", prepareMBarrierInitFence},
      {"nvvm.griddepcontrol", prepareGridDependency},
      {"nvvm.nanosleep", prepareSleep},
  };
  return entries;
}
