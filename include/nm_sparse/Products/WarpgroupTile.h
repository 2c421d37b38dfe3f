//===- WarpgroupTile.h - tiles that warpgroups divide -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The checks of products whose rows are outputs, 64 of them for each warpgroup,
// and whose columns are all tokens of the tile.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_PRODUCTS_WARPGROUPTILE_H
#define NM_SPARSE_PRODUCTS_WARPGROUPTILE_H

#include "nm_sparse/Dialect/NMTile/IR/Schedule.h"

namespace mlir::nm_sparse {

/// Warps of a warpgroup, and outputs of one of its products.
inline constexpr int64_t kWarpgroupWarps = 4, kWarpgroupOutputs = 64;

/// Most accumulators of a thread that leave registers for its other state.
inline constexpr int64_t kMostAccumulators = 192;

/// Registers of a thread when a kernel of `schedule` begins, and of one that
/// multiplies, when producers have passed theirs on.
int64_t getEntryRegisters(const ScheduleAttr &schedule);
int64_t getProductRegisters(const ScheduleAttr &schedule);

/// Verifies that `owner` has whole warpgroups, and leaves warps to copy.
LogicalResult verifyWarpgroups(function_ref<InFlightDiagnostic()> emitError,
                               StringRef owner, int64_t warps);

/// Verifies that `warps` of `owner` can share a tile of `tokens` x `outputs`.
LogicalResult verifyWarpgroupTile(function_ref<InFlightDiagnostic()> emitError,
                                  StringRef owner, int64_t warps,
                                  int64_t tokens, int64_t outputs);

/// Verifies that the product `owner` has all operands from the tensor memory
/// accelerator, and one or more warpgroups to start copies.
LogicalResult
verifyWarpgroupTransfers(function_ref<InFlightDiagnostic()> emitError,
                         StringRef owner, const TransfersAttr &transfers,
                         int64_t producers);

/// Verifies that the product `owner` has one or more producer warpgroups.
LogicalResult
verifyWarpgroupProducers(function_ref<InFlightDiagnostic()> emitError,
                         StringRef owner, int64_t producers);

/// Verifies that `owner`, in `schedule`, multiplies operands of `element`, and
/// that `warps`, which divide the outputs, have enough `registers` a thread.
LogicalResult
verifyWarpgroupProblem(function_ref<InFlightDiagnostic()> emitError,
                       StringRef owner, const ScheduleAttr &schedule,
                       int64_t warps, int64_t registers, Type element,
                       ArrayRef<StringRef> legal);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_PRODUCTS_WARPGROUPTILE_H
