//===- LowerTokenClass.cpp - the class of a number of tokens --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSELOWERTOKENCLASSPASS
#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

/// The class of the tokens of `op` among those from the last range down.
static Value selectClass(TokenClassOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, value);
  };
  Value chosen = constant(op.getClasses().back());
  for (auto [last, number] :
       llvm::reverse(llvm::zip(op.getLast(), op.getClasses().drop_back()))) {
    Value isWithin = arith::CmpIOp::create(b, arith::CmpIPredicate::sle,
                                           op.getTokens(), constant(last));
    chosen = arith::SelectOp::create(b, isWithin, constant(number), chosen);
  }
  return chosen;
}

namespace {
struct LowerTokenClass
    : public nm_sparse::impl::NMSparseLowerTokenClassPassBase<LowerTokenClass> {
  void runOnOperation() override {
    getOperation().walk([](TokenClassOp op) {
      op.replaceAllUsesWith(selectClass(op));
      op.erase();
    });
  }
};
} // namespace
