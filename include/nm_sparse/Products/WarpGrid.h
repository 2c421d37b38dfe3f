//===- WarpGrid.h - warps of a product over its tile ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The common part of products whose warps divide the tile of a CTA evenly:
// `warps = [tokens, outputs]` as text, and the checks of it.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_PRODUCTS_WARPGRID_H
#define NM_SPARSE_PRODUCTS_WARPGRID_H

#include "mlir/IR/OpImplementation.h"
#include "nm_sparse/Dialect/NMTile/IR/Schedule.h"

namespace mlir::nm_sparse {

/// Parses `<warps = [tokens, outputs]>` of the product `owner`.
ParseResult parseWarpGrid(AsmParser &parser, StringRef owner,
                          SmallVectorImpl<int64_t> &warps);
/// Prints and parses a whole attribute that has no other parameter.
template <typename ProductAttr>
Attribute parseWarpGridAttr(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<int64_t> warps;
  if (parseWarpGrid(parser, ProductAttr::getMnemonic(), warps))
    return {};
  return ProductAttr::getChecked([&] { return parser.emitError(loc); },
                                 parser.getContext(), ArrayRef<int64_t>(warps));
}
void printWarpGrid(AsmPrinter &printer, ArrayRef<int64_t> warps);

/// Verifies that `warps` are two positive counts of at most a CTA's warps.
LogicalResult verifyWarpGrid(function_ref<InFlightDiagnostic()> emitError,
                             ArrayRef<int64_t> warps);

/// Verifies that a tile of `tokens` x `outputs` is a multiple of `tokenUnit` x
/// `outputUnit` for each of `warps`, of the product `owner`.
LogicalResult verifyTileUnits(function_ref<InFlightDiagnostic()> emitError,
                              StringRef owner, ArrayRef<int64_t> warps,
                              int64_t tokens, int64_t outputs,
                              int64_t tokenUnit, int64_t outputUnit);

/// Verifies that the product `owner` reads its operands from shared memory.
LogicalResult
verifyStagedTransfers(function_ref<InFlightDiagnostic()> emitError,
                      StringRef owner, TransfersAttr transfers);

/// Verifies that elements are f16 or bf16, and that tiles align with panels.
LogicalResult
verifyTensorCoreProblem(function_ref<InFlightDiagnostic()> emitError,
                        StringRef owner, ScheduleAttr schedule,
                        EncodingAttr encoding, Type element);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_PRODUCTS_WARPGRID_H
