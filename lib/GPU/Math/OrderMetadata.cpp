//===- OrderMetadata.cpp - say that metadata is ordered -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which PTX a kernel becomes is not known before it has a target. Products of
// 8-bit floats are text.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "nm_sparse/GPU/Passes.h"
#include "nm_sparse/GPU/Support/PTXVersion.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSEORDERMETADATAPASS
#include "nm_sparse/GPU/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;

/// The PTX version that has the modifier.
static constexpr unsigned kOrderedVersion = 85;

namespace {
struct OrderMetadata
    : public nm_sparse::impl::NMSparseOrderMetadataPassBase<OrderMetadata> {
  void runOnOperation() override {
    ArrayAttr targets = getOperation().getTargetsAttr();
    auto knowsIt = [](Attribute target) {
      auto nvvm = dyn_cast<NVVM::NVVMTargetAttr>(target);
      return nvvm &&
             nm_sparse::getPTXVersion(nvvm.getFeatures()) >= kOrderedVersion;
    };
    if (!targets || !llvm::all_of(targets, knowsIt))
      return;
    getOperation()->walk([](Operation *op) {
      if (auto product = dyn_cast<NVVM::MmaSpOp>(op))
        product.setOrderedMetadata(true);
      if (auto text = dyn_cast<LLVM::InlineAsmOp>(op)) {
        StringRef rest = text.getAsmString();
        if (rest.consume_front("mma.sp.sync"))
          text.setAsmString(("mma.sp::ordered_metadata.sync" + rest).str());
      }
    });
  }
};
} // namespace
