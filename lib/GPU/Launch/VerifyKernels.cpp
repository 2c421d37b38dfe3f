//===- VerifyKernels.cpp - nothing is left for others to define -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PTX with a call of a function that nobody defines is text like any other, and
// fails where it is loaded, far from here. The same for operations that were
// not lowered: the translation to LLVM names neither their place nor a remedy.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "nm_sparse/GPU/Passes.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSEVERIFYKERNELSPASS
#include "nm_sparse/GPU/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;

/// Functions that the driver defines in every module.
static bool isOfDriver(StringRef name) {
  return llvm::is_contained({"vprintf", "malloc", "free", "__assertfail"},
                            name);
}

namespace {

struct VerifyKernels
    : public nm_sparse::impl::NMSparseVerifyKernelsPassBase<VerifyKernels> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    WalkResult result = getOperation().walk([&](Operation *op) {
      if (auto call = dyn_cast<LLVM::CallOp>(op)) {
        std::optional<StringRef> name = call.getCallee();
        auto callee =
            name ? symbols.lookup<LLVM::LLVMFuncOp>(*name) : LLVM::LLVMFuncOp();
        if (!callee || !callee.isExternal() || isOfDriver(*name))
          return WalkResult::advance();
        op->emitError()
            << "a kernel calls @" << *name
            << ", which nothing defines: no device library is "
               "linked. Legal are the functions of math on f16, "
               "bf16 and f32; for others leave the operation out of "
               "the code that is fused with the product";
        return WalkResult::interrupt();
      }
      // Casts to and from types that have no form on the GPU come with what
      // uses them.
      if (isa<gpu::GPUModuleOp, UnrealizedConversionCastOp>(op) ||
          isa_and_nonnull<LLVM::LLVMDialect, NVVM::NVVMDialect>(
              op->getDialect()))
        return WalkResult::advance();
      InFlightDiagnostic error = op->emitError() << "'" << op->getName() << "'";
      if (op->getNumResults() == 1)
        error << " of type " << op->getResult(0).getType();
      error << " has no form in a kernel. Legal are arith on integers, f16, "
               "bf16, f32 and f64, and math on f16, bf16 and f32; for others "
               "leave the operation out of the code that is fused with the "
               "product";
      return WalkResult::interrupt();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace
