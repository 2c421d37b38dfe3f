//===- RaisePTXVersion.cpp - what products of 8-bit floats need -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "nm_sparse/GPU/Passes.h"
#include "nm_sparse/GPU/Support/PTXVersion.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSERAISEPTXVERSIONPASS
#include "nm_sparse/GPU/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;

/// The PTX version that has mma of e4m3 and e5m2.
static constexpr unsigned kFloat8Version = 84;

static bool isFloat8Product(LLVM::InlineAsmOp op) {
  StringRef text = op.getAsmString();
  return text.starts_with("mma.") &&
         (text.contains(".e4m3.") || text.contains(".e5m2."));
}

namespace {
struct RaisePTXVersion
    : public nm_sparse::impl::NMSparseRaisePTXVersionPassBase<RaisePTXVersion> {
  void runOnOperation() override {
    WalkResult found = getOperation()->walk([](LLVM::InlineAsmOp op) {
      return isFloat8Product(op) ? WalkResult::interrupt()
                                 : WalkResult::advance();
    });
    if (found.wasInterrupted())
      nm_sparse::requirePTX(getOperation(), kFloat8Version);
  }
};
} // namespace
