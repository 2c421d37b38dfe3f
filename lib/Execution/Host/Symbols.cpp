//===- Symbols.cpp - what compiled host code may call ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Host/Symbols.h"

#include "nm_sparse/Base/Random.h"
#include "nm_sparse/Emulator/Emulator.h"
#include "nm_sparse/Emulator/FloatSymbols.h"
#include "nm_sparse/Execution/Host/UseEmulator.h"
#include "nm_sparse/Runtime/MGPU.h"
#include "nm_sparse/Runtime/Packing.h"
#include "nm_sparse/Runtime/Recorder.h"
#include "nm_sparse/Runtime/Reference.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/ErrorHandling.h"
#include <cstdlib>
#include <cstring>
#include <mutex>

using namespace mlir::nm_sparse;

namespace {

std::mutex allocationsMutex;
llvm::DenseSet<void *> &getAllocations() {
  static llvm::DenseSet<void *> allocations;
  return allocations;
}

/// All ones is a NaN in every float type.
void *poisonedMalloc(size_t size) {
  void *pointer = std::malloc(size ? size : 1);
  // Compiled code does not ask.
  if (!pointer)
    llvm::report_bad_alloc_error("allocation of compiled code");
  std::memset(pointer, 0xff, size);
  std::lock_guard<std::mutex> lock(allocationsMutex);
  getAllocations().insert(pointer);
  return pointer;
}

void trackedFree(void *pointer) {
  if (!pointer)
    return;
  {
    std::lock_guard<std::mutex> lock(allocationsMutex);
    getAllocations().erase(pointer);
  }
  std::free(pointer);
}

void *poisonedMemAlloc(uint64_t bytes, void *stream, bool hostShared) {
  void *pointer = mgpuMemAlloc(bytes, stream, hostShared);
  // The emulator fills memory by itself, and sees a memset as a write.
  if (pointer && bytes >= 2 && !isEmulating())
    mgpuMemset16(pointer, 0xffff, bytes / 2, stream);
  return pointer;
}

} // namespace

bool mlir::nm_sparse::ownsAllocation(void *pointer) {
  std::lock_guard<std::mutex> lock(allocationsMutex);
  return getAllocations().contains(pointer);
}

void mlir::nm_sparse::releaseAllocation(void *pointer) { trackedFree(pointer); }

llvm::orc::SymbolMap
mlir::nm_sparse::getRuntimeSymbols(llvm::orc::MangleAndInterner mangle) {
  llvm::orc::SymbolMap symbols = getFloatSymbols(mangle);
  auto add = [&](llvm::StringRef name, auto *function) {
    symbols[mangle(name)] = {llvm::orc::ExecutorAddr::fromPtr(function),
                             llvm::JITSymbolFlags::Exported};
  };
  add("malloc", &poisonedMalloc);
  add("memrefCopy", &copyMemRef);
  add("free", &trackedFree);
  add("mgpuMemAlloc", &poisonedMemAlloc);
#define NM_SPARSE_SYMBOL(name) add(#name, &(name))
  NM_SPARSE_SYMBOL(mgpuEventCreate);
  NM_SPARSE_SYMBOL(mgpuEventDestroy);
  NM_SPARSE_SYMBOL(mgpuEventRecord);
  NM_SPARSE_SYMBOL(mgpuEventSynchronize);
  NM_SPARSE_SYMBOL(mgpuLaunchClusterKernel);
  NM_SPARSE_SYMBOL(mgpuLaunchKernel);
  NM_SPARSE_SYMBOL(mgpuMemFree);
  NM_SPARSE_SYMBOL(mgpuMemHostRegisterMemRef);
  NM_SPARSE_SYMBOL(mgpuMemHostUnregisterMemRef);
  NM_SPARSE_SYMBOL(mgpuMemcpy);
  NM_SPARSE_SYMBOL(mgpuMemset16);
  NM_SPARSE_SYMBOL(mgpuMemset32);
  NM_SPARSE_SYMBOL(mgpuModuleGetFunction);
  NM_SPARSE_SYMBOL(mgpuModuleLoad);
  NM_SPARSE_SYMBOL(mgpuModuleLoadJIT);
  NM_SPARSE_SYMBOL(mgpuModuleUnload);
  NM_SPARSE_SYMBOL(mgpuSetDefaultDevice);
  NM_SPARSE_SYMBOL(mgpuStreamCreate);
  NM_SPARSE_SYMBOL(mgpuStreamDestroy);
  NM_SPARSE_SYMBOL(mgpuStreamSynchronize);
  NM_SPARSE_SYMBOL(mgpuStreamWaitEvent);
  NM_SPARSE_SYMBOL(mgpuTensorMapEncodeTiledMemref);
  NM_SPARSE_SYMBOL(mgpuTensorMapEncodeIm2colMemref);
  NM_SPARSE_SYMBOL(nmsReferenceMatmul);
  NM_SPARSE_SYMBOL(nmsReferenceSparseMatmul);
  NM_SPARSE_SYMBOL(nmsRuntimeCheckBits);
  NM_SPARSE_SYMBOL(nmsRuntimeCheckFreeBits);
  NM_SPARSE_SYMBOL(nmsRuntimeCheckIndex);
  NM_SPARSE_SYMBOL(nmsRuntimeCheckPacked);
  NM_SPARSE_SYMBOL(nmsRuntimeCheckPerm);
  NM_SPARSE_SYMBOL(nmsRuntimeCheckRagged);
  NM_SPARSE_SYMBOL(nmsRuntimePack);
  NM_SPARSE_SYMBOL(nmsRuntimePackDenseBitmap);
  NM_SPARSE_SYMBOL(nmsRuntimeCountRaggedShuffled);
  NM_SPARSE_SYMBOL(nmsRuntimePackRaggedShuffled);
  NM_SPARSE_SYMBOL(nmsRuntimePackShuffled);
  NM_SPARSE_SYMBOL(nmsRuntimePrune);
  NM_SPARSE_SYMBOL(nmsRuntimePruneFree);
  NM_SPARSE_SYMBOL(nmsRuntimePruneShuffled);
  NM_SPARSE_SYMBOL(nmsRuntimeUnpack);
  NM_SPARSE_SYMBOL(nmsRuntimeUnpackRaggedShuffled);
  NM_SPARSE_SYMBOL(nmsRuntimeUnpackShuffled);
  NM_SPARSE_SYMBOL(nmsRuntimeCountFreeBitmap);
  NM_SPARSE_SYMBOL(nmsRuntimePackFreeBitmap);
  NM_SPARSE_SYMBOL(nmsRuntimeUnpackFreeBitmap);
  NM_SPARSE_SYMBOL(nmsRuntimeCountRagged);
  NM_SPARSE_SYMBOL(nmsRuntimePackRagged);
  NM_SPARSE_SYMBOL(nmsRuntimeUnpackRagged);
#undef NM_SPARSE_SYMBOL
  return symbols;
}
