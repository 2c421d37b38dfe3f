//===- ExternSharedMemory.cpp - linkage of dynamic shared memory ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PTX names the dynamic shared memory of a launch through a `.extern .shared`
// symbol; upstream's conversion declares an internal one.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "nm_sparse/GPU/Passes.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSEEXTERNSHAREDMEMORYPASS
#include "nm_sparse/GPU/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;

namespace {

struct ExternSharedMemory
    : public nm_sparse::impl::NMSparseExternSharedMemoryPassBase<
          ExternSharedMemory> {
  using NMSparseExternSharedMemoryPassBase::NMSparseExternSharedMemoryPassBase;

  void runOnOperation() override {
    if (!llvm::isPowerOf2_32(alignment)) {
      getOperation().emitError("nm-sparse-extern-shared-memory: alignment is ")
          << alignment.getValue() << ", expected a power of two";
      return signalPassFailure();
    }
    for (auto global : getOperation().getOps<LLVM::GlobalOp>()) {
      auto array = dyn_cast<LLVM::LLVMArrayType>(global.getGlobalType());
      if (global.getAddrSpace() !=
              static_cast<unsigned>(NVVM::NVVMMemorySpace::Shared) ||
          !array || array.getNumElements() != 0)
        continue;
      global.setLinkage(LLVM::Linkage::External);
      global.setAlignment(
          std::max<uint64_t>(global.getAlignment().value_or(1), alignment));
    }
  }
};

} // namespace
