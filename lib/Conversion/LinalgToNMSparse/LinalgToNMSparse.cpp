//===- LinalgToNMSparse.cpp - the front door ------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Conversion/Passes.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_CONVERTLINALGTONMSPARSEPASS
#include "nm_sparse/Conversion/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {
struct ConvertLinalgToNMSparse
    : public nm_sparse::impl::ConvertLinalgToNMSparsePassBase<
          ConvertLinalgToNMSparse> {
  void runOnOperation() override {}
};
} // namespace
