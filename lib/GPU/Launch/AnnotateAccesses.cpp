//===- AnnotateAccesses.cpp - what kernels do to their arguments ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// While arguments are memrefs, all that is done to one can be followed. Hosts
// need to know it when only pointers are left.
//
//===----------------------------------------------------------------------===//

#include "../Memory/DeviceBuffers.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "nm_sparse/GPU/Passes.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSEANNOTATEACCESSESPASS
#include "nm_sparse/GPU/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

static void annotate(gpu::GPUFuncOp kernel) {
  auto set = [&](BlockArgument argument, StringRef name) {
    kernel.setArgAttr(argument.getArgNumber(), name,
                      UnitAttr::get(kernel.getContext()));
  };
  for (BlockArgument argument :
       kernel.getBody().front().getArguments().take_front(
           kernel.getNumArguments())) {
    if (!isa<BaseMemRefType>(argument.getType()))
      continue;
    bool reads = isRead(argument), writes = isWritten(argument);
    if (!reads && !writes)
      set(argument, LLVM::LLVMDialect::getReadnoneAttrName());
    else if (!writes)
      set(argument, LLVM::LLVMDialect::getReadonlyAttrName());
    else if (!reads)
      set(argument, LLVM::LLVMDialect::getWriteOnlyAttrName());
  }
}

namespace {

struct AnnotateAccesses
    : public nm_sparse::impl::NMSparseAnnotateAccessesPassBase<
          AnnotateAccesses> {
  void runOnOperation() override {
    for (auto kernel : getOperation().getOps<gpu::GPUFuncOp>())
      if (kernel.isKernel())
        annotate(kernel);
  }
};

} // namespace
