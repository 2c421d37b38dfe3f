//===- Fences.cpp - fences, and hints to the scheduler --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Barriers and mbarriers release and acquire by themselves. Fences matter to
// their relaxed forms, and between proxies.
//
//===----------------------------------------------------------------------===//

#include "Machine/MBarrier.h"
#include "Memory/TensorMap.h"
#include "Ops/OpTable.h"
#include "Ops/Operands.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/FormatVariadic.h"

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

/// fence.proxy.acquire: `thread` sees, and its CTA's copies may use, the tensor
/// map at `address`.
void acquireMap(Thread &thread, uint64_t address, bool isGPU) {
  if (!thread.cta.cluster.launch.memory->contains(address, sizeof(TensorMap)))
    thread.fault(llvm::formatv("there are no 128 bytes of device memory at "
                               "{0:x}, which it acquires",
                               address));
  fence(thread, isGPU);
  thread.cta.tensorMaps.acquire(thread, address);
}

FailureOr<Handler> prepareMapAcquire(Operation *op) {
  auto acquire = cast<NVVM::FenceProxyAcquireOp>(op);
  OperandReader<uint64_t> map(acquire.getAddrMutable());
  bool isGPU = isGPUScope(acquire.getScope());
  return Handler([=](Thread &thread, Values operands, Values) {
    acquireMap(thread, map(operands), isGPU);
  });
}

/// The intrinsic ends in the scope.
bool isGPUIntrinsic(Operation *op) {
  StringRef name = cast<LLVM::CallIntrinsicOp>(op).getIntrin();
  return name.ends_with(".gpu") || name.ends_with(".sys");
}

FailureOr<Handler> prepareMapAcquireIntrinsic(Operation *op) {
  llvm::APInt bytes;
  if (op->getNumOperands() != 2 ||
      !matchPattern(op->getOperand(1), m_ConstantInt(&bytes)) ||
      bytes != sizeof(TensorMap))
    return op->emitOpError("must acquire 128 bytes, as a constant");
  bool isGPU = isGPUIntrinsic(op);
  return Handler([=](Thread &thread, Values operands, Values) {
    acquireMap(thread, *static_cast<uint64_t *>(operands[0]), isGPU);
  });
}

/// fence.proxy.release: other proxies see the tensor maps that were changed.
Handler makeMapRelease(bool isGPU) {
  return [=](Thread &thread, Values, Values) {
    thread.cta.tensorMaps.release(thread);
    fence(thread, isGPU);
  };
}

FailureOr<Handler> prepareMapRelease(Operation *op) {
  return makeMapRelease(
      isGPUScope(cast<NVVM::FenceProxyReleaseOp>(op).getScope()));
}

FailureOr<Handler> prepareMapReleaseIntrinsic(Operation *op) {
  return makeMapRelease(isGPUIntrinsic(op));
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
      {"nvvm.fence.proxy.acquire", prepareMapAcquire},
      {"nvvm.fence.proxy.release", prepareMapRelease},
      {"llvm.nvvm.fence.proxy.tensormap_generic.acquire",
       prepareMapAcquireIntrinsic},
      {"llvm.nvvm.fence.proxy.tensormap_generic.release",
       prepareMapReleaseIntrinsic},
      {"nvvm.fence.proxy.sync_restrict", prepareSharedProxyFence},
      {"nvvm.fence.mbarrier.init", prepareMBarrierInitFence},
      {"nvvm.griddepcontrol", prepareGridDependency},
      {"nvvm.nanosleep", prepareSleep},
  };
  return entries;
}
