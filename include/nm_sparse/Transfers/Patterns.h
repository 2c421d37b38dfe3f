//===- Patterns.h - copies of tiles by the threads of a CTA -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_TRANSFERS_PATTERNS_H
#define NM_SPARSE_TRANSFERS_PATTERNS_H

#include "mlir/Transforms/DialectConversion.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"

namespace mlir::nm_sparse {

/// The threads of a CTA, as far as copies ask for them.
struct CopyThreads {
  ScheduleAttr schedule;
  int64_t number; ///< Those that take part where a copy names none.
  Value id;       ///< The number of the thread, an index.
};

/// Converts an operation that `threads` do together.
template <typename OpT>
struct CopyPattern : public OpConversionPattern<OpT> {
  CopyPattern(const TypeConverter &converter, MLIRContext *context,
              const CopyThreads &threads)
      : OpConversionPattern<OpT>(converter, context), threads(threads) {}

  CopyThreads threads;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_TRANSFERS_PATTERNS_H
