//===- VerifyMaterialized.cpp - no encoded type may be left ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Guards bufferization, which drops encodings silently.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h"

#include "mlir/IR/AttrTypeSubElements.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSEVERIFYMATERIALIZEDPASS
#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {
struct VerifyMaterialized
    : public nm_sparse::impl::NMSparseVerifyMaterializedPassBase<
          VerifyMaterialized> {
  void runOnOperation() override {
    Type found;
    AttrTypeWalker walker;
    walker.addWalk([&](RankedTensorType type) {
      if (!type.getEncoding())
        return WalkResult::advance();
      found = type;
      return WalkResult::interrupt();
    });
    auto has = [&](Type type) { return walker.walk(type).wasInterrupted(); };

    bool bad = false;
    getOperation()->walk([&](Operation *op) {
      StringRef where;
      if (llvm::any_of(op->getResultTypes(), has))
        where = "a result";
      else if (llvm::any_of(op->getOperandTypes(), has))
        where = "an operand";
      else if (walker.walk(op->getAttrDictionary()).wasInterrupted())
        where = "an attribute";
      for (Region &region : op->getRegions())
        for (Block &block : region)
          if (where.empty() && llvm::any_of(block.getArgumentTypes(), has))
            where = "a block argument";
      if (where.empty())
        return;
      bad = true;
      op->emitOpError("has ") << where << " of encoded type " << found
                              << "; run --convert-linalg-to-nm-sparse and "
                                 "--nm-sparse-materialize-encodings first";
    });
    if (bad)
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
