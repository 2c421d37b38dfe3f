//===- LowerByteMaps.cpp - tensor maps of 8-bit elements ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/GPU/Passes.h"

#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSELOWERBYTEMAPSPASS
#include "nm_sparse/GPU/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {
struct LowerByteMaps
    : public nm_sparse::impl::NMSparseLowerByteMapsPassBase<LowerByteMaps> {
  void runOnOperation() override {
    getOperation()->walk([](nvgpu::TmaCreateDescriptorOp op) {
      UnrankedMemRefType type = op.getTensor().getType();
      Type element = type.getElementType();
      if (element.getIntOrFloatBitWidth() != 8 || element.isUnsignedInteger())
        return;
      OpBuilder b(op);
      Type bytes = b.getIntegerType(8, /*isSigned=*/false);
      auto cast = UnrealizedConversionCastOp::create(
          b, op.getLoc(), UnrankedMemRefType::get(bytes, type.getMemorySpace()),
          op.getTensor());
      op.getTensorMutable().assign(cast.getResult(0));
    });
  }
};
} // namespace
