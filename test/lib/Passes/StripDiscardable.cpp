//===- StripDiscardable.cpp - without discardable attributes --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Any pass may drop a discardable attribute that it does not know. This one
// drops all, of operations, arguments and results, so that tests can show what
// is left without them.
//
//===----------------------------------------------------------------------===//

#include "Passes/StripDiscardable.h"

#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;

namespace {

struct StripDiscardable
    : public PassWrapper<StripDiscardable, OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(StripDiscardable)

  StringRef getArgument() const final { return "test-strip-discardable"; }
  StringRef getDescription() const final {
    return "drop all discardable attributes";
  }

  void runOnOperation() override {
    getOperation()->walk([](Operation *op) {
      op->setDiscardableAttrs(DictionaryAttr::get(op->getContext()));
      auto function = dyn_cast<FunctionOpInterface>(op);
      if (!function)
        return;
      for (unsigned i = 0; i < function.getNumArguments(); ++i)
        function.setArgAttrs(i, ArrayRef<NamedAttribute>());
      for (unsigned i = 0; i < function.getNumResults(); ++i)
        function.setResultAttrs(i, ArrayRef<NamedAttribute>());
    });
  }
};

} // namespace

void nm_test::registerStripDiscardablePass() {
  PassRegistration<StripDiscardable>();
}
