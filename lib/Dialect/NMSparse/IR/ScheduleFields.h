//===- ScheduleFields.h - optional fields of a schedule ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The hand-written part of the assembly format of #nm_sparse.schedule.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_DIALECT_NMSPARSE_IR_SCHEDULEFIELDS_H
#define NM_SPARSE_LIB_DIALECT_NMSPARSE_IR_SCHEDULEFIELDS_H

#include "mlir/IR/OpImplementation.h"

namespace mlir::nm_sparse {

/// (`,` NAME `=` value)*, in any order, each at most once.
ParseResult parseOptionalFields(AsmParser &parser, int64_t &producers,
                                bool &persistent, bool &tma, bool &streamK);

/// Those that differ from their defaults.
void printOptionalFields(AsmPrinter &printer, int64_t producers,
                         bool persistent, bool tma, bool streamK);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_DIALECT_NMSPARSE_IR_SCHEDULEFIELDS_H
