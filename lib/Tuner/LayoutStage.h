//===- LayoutStage.h - programs before schedules are chosen -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_TUNER_LAYOUTSTAGE_H
#define NM_SPARSE_LIB_TUNER_LAYOUTSTAGE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "nm_sparse/Support/ReadModule.h"

namespace mlir::nm_sparse {
struct TuneTarget;

/// A context with all that the compiler reads and ranks.
std::unique_ptr<MLIRContext> makeCompilerContext();

/// `program` as the layout stage leaves it, for these numbers of tokens.
llvm::Expected<OwningOpRef<ModuleOp>>
runToLayout(MLIRContext &context, StringRef program, const TuneTarget &target,
            ArrayRef<int64_t> tokens, StringRef storage);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_TUNER_LAYOUTSTAGE_H
