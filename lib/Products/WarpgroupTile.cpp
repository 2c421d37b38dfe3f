//===- WarpgroupTile.cpp - tiles that warpgroups divide -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Products/WarpgroupTile.h"

#include "nm_sparse/Chip/RegisterShares.h"
#include "nm_sparse/Dialect/NMTile/IR/ElementFormat.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::nm_sparse;

using EmitErrorFn = function_ref<InFlightDiagnostic()>;

/// Warps of a CTA that leave some to copy, and tokens of a product.
static constexpr int64_t kMostWarps = 28, kMostTokens = 256;

/// Registers of a thread beside its accumulators, without which ptxas refuses
/// the kernel, or makes each product wait for the one before.
static constexpr int64_t kLeastWorkingRegisters = 32;

/// The most registers of a thread in any kernel.
static constexpr int64_t kMostRegisters = 255;

int64_t nm_sparse::getEntryRegisters(const ScheduleAttr &schedule) {
  return std::min(kMostRegisters,
                  getEntryRegisters(schedule.getBlockThreads()));
}

int64_t nm_sparse::getProductRegisters(const ScheduleAttr &schedule) {
  bool lean = schedule.getRingUse().leanProducers;
  auto shares = shareRegisters(schedule.getNumThreads(),
                               schedule.getProducers() * 32, lean);
  return shares ? shares->consumer : getEntryRegisters(schedule);
}

LogicalResult nm_sparse::verifyWarpgroups(EmitErrorFn emitError,
                                          StringRef owner, int64_t warps) {
  if (warps < kWarpgroupWarps || warps > kMostWarps ||
      warps % kWarpgroupWarps != 0)
    return emitError() << owner << " needs a multiple of " << kWarpgroupWarps
                       << " warps, at most " << kMostWarps << ", got " << warps;
  return success();
}

LogicalResult nm_sparse::verifyWarpgroupTile(EmitErrorFn emitError,
                                             StringRef owner, int64_t warps,
                                             int64_t tokens, int64_t outputs) {
  int64_t warpgroups = warps / kWarpgroupWarps;
  if (outputs % (warpgroups * kWarpgroupOutputs) != 0)
    return emitError() << "a tile of " << outputs << " outputs over "
                       << warpgroups << " warpgroups must be a multiple of "
                       << kWarpgroupOutputs << " outputs for each";
  if (tokens % 8 != 0 || tokens > kMostTokens)
    return emitError() << "a tile of " << owner
                       << " must be a multiple of 8, at most " << kMostTokens
                       << ", tokens, got " << tokens;
  int64_t accumulators = tokens * outputs / (warps * 32);
  if (accumulators > kMostAccumulators)
    return emitError() << "a tile of " << tokens << " x " << outputs << " over "
                       << warps << " " << owner << " warps has " << accumulators
                       << " accumulators in each thread, more than the "
                       << kMostAccumulators << " that registers hold";
  return success();
}

LogicalResult
nm_sparse::verifyWarpgroupTransfers(EmitErrorFn emitError, StringRef owner,
                                    const TransfersAttr &transfers,
                                    int64_t producers) {
  TransferUse x = transfers.getX().getUse();
  bool hasX = x.isBulk || (!x.isDirect && !x.selectsRows && !x.isResident);
  if (!hasX || !transfers.getValues().getUse().isBulk ||
      !transfers.getIndex().getUse().isBulk)
    return emitError()
           << owner
           << " has its weight from the tensor memory accelerator: legal is "
              "transfers = {x = bulk, values = bulk, index = bulk}, or x = "
              "copy";
  return verifyWarpgroupProducers(emitError, owner, producers);
}

LogicalResult nm_sparse::verifyWarpgroupProducers(EmitErrorFn emitError,
                                                  StringRef owner,
                                                  int64_t producers) {
  if (producers == 0)
    return emitError() << owner
                       << " needs producers to start the copies; legal is "
                          "pipeline = ring<...>";
  if (producers % kWarpgroupWarps != 0)
    return emitError() << "producers beside " << owner
                       << " warps must be a multiple of the " << kWarpgroupWarps
                       << " of a warpgroup, got " << producers;
  return success();
}

LogicalResult nm_sparse::verifyWarpgroupProblem(
    EmitErrorFn emitError, StringRef owner, const ScheduleAttr &schedule,
    int64_t warps, int64_t registers, Type element, ArrayRef<StringRef> legal) {
  const ElementFormat *format = findElementFormat(element);
  if (!format || !llvm::is_contained(legal, format->name))
    return emitError() << "has a schedule with product = " << owner
                       << ", which multiplies "
                       << llvm::join(legal.drop_back(), ", ") << " or "
                       << legal.back() << ", but operands of " << element;
  int64_t accumulators =
      schedule.getTileTokens() * schedule.getTileOutputs() / (warps * 32);
  // A product by itself has to do with what there is when the kernel begins.
  int64_t atEntry = getEntryRegisters(schedule);
  int64_t ofProduct = schedule.getTileTokens() / 2;
  if (ofProduct + kLeastWorkingRegisters > atEntry) {
    registers = atEntry;
    accumulators = ofProduct;
  }
  if (accumulators + kLeastWorkingRegisters > registers)
    return emitError() << "has a schedule with " << schedule.getBlockThreads()
                       << " threads, whose " << owner << " warps have at most "
                       << registers << " registers a thread, fewer than their "
                       << accumulators << " accumulators and "
                       << kLeastWorkingRegisters
                       << " others; legal are smaller tiles, or fewer warps";
  return success();
}
