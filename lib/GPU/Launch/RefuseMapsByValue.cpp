//===- RefuseMapsByValue.cpp - what code of the host cannot pass ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Code of the host passes the address of a tensor map. A kernel that takes all
// of the map would read it from the bytes of that address.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "nm_sparse/GPU/Passes.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSEREFUSEMAPSBYVALUEPASS
#include "nm_sparse/GPU/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

/// The first argument of `kernel` that is passed by value; none if there is
/// none.
static std::optional<unsigned> findByValue(LLVM::LLVMFuncOp kernel) {
  for (unsigned number = 0; number < kernel.getNumArguments(); ++number)
    if (kernel.getArgAttr(number, LLVM::LLVMDialect::getByValAttrName()))
      return number;
  return std::nullopt;
}

namespace {
struct RefuseMapsByValue
    : public nm_sparse::impl::NMSparseRefuseMapsByValuePassBase<
          RefuseMapsByValue> {
  void runOnOperation() override {
    SymbolTableCollection symbols;
    WalkResult result =
        getOperation()->walk([&](gpu::LaunchFuncOp launch) {
          auto kernel = symbols.lookupNearestSymbolFrom<LLVM::LLVMFuncOp>(
              launch, launch.getKernelAttr());
          std::optional<unsigned> number =
              kernel ? findByValue(kernel) : std::nullopt;
          if (!number)
            return WalkResult::advance();
          launch.emitError()
              << "launches " << launch.getKernelAttr() << ", whose argument "
              << *number
              << " is a tensor map by value, and code of the host passes its "
                 "address: make kernels of fields or device-maps "
                 "(arguments=fields, "
                 "arguments=device-maps), or launch these by their manifest";
          return WalkResult::interrupt();
        });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
