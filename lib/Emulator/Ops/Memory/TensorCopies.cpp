//===- TensorCopies.cpp - cp.async.bulk.tensor ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ops/Memory/BulkCopies.h"
#include "Ops/Memory/TensorBox.h"
#include "Ops/Memory/TensorReduction.h"
#include "Ops/OpTable.h"
#include "Ops/Operands.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/Support/FormatVariadic.h"
#include <cstring>

using namespace mlir;
using namespace mlir::nm_sparse;
using namespace mlir::nm_sparse::emulator;

namespace {

//===----------------------------------------------------------------------===//
// Into shared memory
//===----------------------------------------------------------------------===//

/// All rows of the box, without gaps.
std::vector<char> readBox(Thread &thread, const TensorBox &box) {
  std::vector<char> data(box.getBytes());
  box.forEachRow([&](const TensorBox::Row &row) {
    char *to = data.data() + row.index * box.getRowBytes();
    uint32_t behind = row.before + row.bytes;
    box.fill(to, row.before);
    box.fill(to + behind, box.getRowBytes() - behind);
    if (row.bytes == 0)
      return;
    std::memcpy(to + row.before,
                thread.access(row.address, AddressSpace::Global, row.bytes,
                              /*alignment=*/1, AccessKind::Read),
                row.bytes);
    box.convert(to + row.before, row.bytes);
  });
  return data;
}

void writeBox(const BulkTarget &to, const TensorBox &box, const char *data) {
  uint64_t base = to.getAddress();
  constexpr uint32_t chunk = TensorBox::chunkBytes;
  char *range =
      box.isRange(base) ? to.write(base, box.getBytes(), chunk) : nullptr;
  for (uint32_t row = 0; row < box.getNumRows(); ++row)
    for (uint32_t i = 0; i < box.getRowBytes(); i += chunk, data += chunk) {
      uint64_t where = box.locate(base, row, i);
      std::memcpy(range ? range + (where - base)
                        : to.write(where, chunk, chunk),
                  data, chunk);
    }
  to.complete(box.getBytes());
}

LogicalResult checkMode(Operation *op, NVVM::TMALoadMode mode) {
  if (mode == NVVM::TMALoadMode::TILE || mode == NVVM::TMALoadMode::IM2COL)
    return success();
  return op->emitOpError("in mode ") << NVVM::stringifyTMALoadMode(mode)
                                     << " is not emulated: only tile and "
                                        "im2col are";
}

FailureOr<Handler> prepareLoad(Operation *op) {
  auto copy = cast<NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp>(op);
  if (failed(checkMode(op, copy.getMode())))
    return failure();
  if (copy.getGroup().value_or(NVVM::CTAGroupKind::CTA_1) !=
      NVVM::CTAGroupKind::CTA_1)
    return op->emitOpError("with group ")
           << NVVM::stringifyCTAGroupKind(*copy.getGroup())
           << " is not emulated: only cta_1 is";
  OperandReader<uint64_t> target(copy.getDstMemMutable());
  OperandReader<uint64_t> map(copy.getTmaDescriptorMutable());
  VariadicReader<int32_t> coordinates(copy.getCoordinatesMutable());
  VariadicReader<uint16_t> offsets(copy.getIm2colOffsetsMutable());
  OperandReader<uint64_t> mbarrier(copy.getMbarMutable());
  OptionalReader<uint16_t> mask(copy.getMulticastMaskMutable());
  PredicateReader predicate(copy.getPredicateMutable());
  return Handler([=](Thread &thread, Values operands, Values) {
    if (!predicate(operands))
      return;
    TensorBox box(thread, map(operands), coordinates(operands),
                  offsets(operands));
    TensorBox::checkAddress(thread, target(operands));
    SmallVector<BulkTarget, 1> targets = getBulkTargets(
        thread, target(operands), mbarrier(operands), mask(operands));
    std::vector<char> data = readBox(thread, box);
    for (const BulkTarget &to : targets)
      writeBox(to, box, data.data());
  });
}

FailureOr<Handler> preparePrefetch(Operation *op) {
  auto prefetch = cast<NVVM::CpAsyncBulkTensorPrefetchOp>(op);
  if (failed(checkMode(op, prefetch.getMode())))
    return failure();
  OperandReader<uint64_t> map(prefetch.getTmaDescriptorMutable());
  VariadicReader<int32_t> coordinates(prefetch.getCoordinatesMutable());
  VariadicReader<uint16_t> offsets(prefetch.getIm2colOffsetsMutable());
  return Handler([=](Thread &thread, Values operands, Values) {
    TensorBox box(thread, map(operands), coordinates(operands),
                  offsets(operands));
    GlobalMemory &memory = *thread.cta.cluster.launch.memory;
    box.forEachRow([&](const TensorBox::Row &row) {
      if (row.bytes != 0 && !memory.contains(row.address, row.bytes))
        thread.fault(llvm::formatv("{0} bytes at {1:x} are not all device "
                                   "memory",
                                   row.bytes, row.address));
    });
  });
}

/// Prefetches a tensor map or a cache line, which changes nothing here.
FailureOr<Handler> prepareMapPrefetch(Operation *op) {
  auto prefetch = cast<NVVM::PrefetchOp>(op);
  OperandReader<uint64_t> map(prefetch.getAddrMutable());
  PredicateReader predicate(prefetch.getPredicateMutable());
  bool isMap = prefetch.getTensormap();
  return Handler([=](Thread &thread, Values operands, Values) {
    if (isMap && predicate(operands))
      readTensorMap(thread, map(operands));
  });
}

//===----------------------------------------------------------------------===//
// Out of shared memory
//===----------------------------------------------------------------------===//

/// The part of `row` inside the tensor, of the box at `base`. What is outside
/// may be unwritten.
std::vector<char> readRow(const BulkSource &from, const TensorBox &box,
                          uint64_t base, const TensorBox::Row &row) {
  constexpr uint32_t chunk = TensorBox::chunkBytes;
  std::vector<char> data(row.bytes);
  for (uint32_t done = 0; done < row.bytes;) {
    uint32_t offset = row.before + done;
    uint32_t within = offset % chunk;
    uint32_t count = std::min(chunk - within, row.bytes - done);
    uint64_t where = box.locate(base, row.index, offset - within) + within;
    std::memcpy(&data[done], from.read(where, count, /*alignment=*/1), count);
    done += count;
  }
  return data;
}

FailureOr<Handler> prepareStore(Operation *op) {
  auto copy = cast<NVVM::CpAsyncBulkTensorSharedCTAToGlobalOp>(op);
  if (copy.getMode() != NVVM::TMAStoreMode::TILE)
    return op->emitOpError("in mode ")
           << NVVM::stringifyTMAStoreMode(copy.getMode())
           << " is not emulated: only tile is";
  OperandReader<uint64_t> map(copy.getTmaDescriptorMutable());
  OperandReader<uint64_t> source(copy.getSrcMemMutable());
  VariadicReader<int32_t> coordinates(copy.getCoordinatesMutable());
  PredicateReader predicate(copy.getPredicateMutable());
  return Handler([=](Thread &thread, Values operands, Values) {
    if (!predicate(operands))
      return;
    TensorBox box(thread, map(operands), coordinates(operands));
    uint64_t base = source(operands);
    TensorBox::checkAddress(thread, base);
    box.checkStart(thread);
    BulkSource from(thread);
    box.forEachRow([&](const TensorBox::Row &row) {
      if (row.bytes == 0)
        return;
      std::vector<char> data = readRow(from, box, base, row);
      std::memcpy(from.write(row.address, row.bytes, /*alignment=*/1),
                  data.data(), row.bytes);
    });
  });
}

FailureOr<Handler> prepareReduce(Operation *op) {
  auto reduce = cast<NVVM::CpAsyncBulkTensorReduceOp>(op);
  if (reduce.getMode() != NVVM::TMAStoreMode::TILE)
    return op->emitOpError("in mode ")
           << NVVM::stringifyTMAStoreMode(reduce.getMode())
           << " is not emulated: only tile is";
  OperandReader<uint64_t> map(reduce.getTmaDescriptorMutable());
  OperandReader<uint64_t> source(reduce.getSrcMemMutable());
  VariadicReader<int32_t> coordinates(reduce.getCoordinatesMutable());
  NVVM::TMAReduxKind kind = reduce.getRedKind();
  return Handler([=](Thread &thread, Values operands, Values) {
    TensorBox box(thread, map(operands), coordinates(operands));
    uint64_t base = source(operands);
    TensorBox::checkAddress(thread, base);
    box.checkStart(thread);
    ElementUpdate update = getElementUpdate(kind, box.getMap().type);
    if (!update)
      thread.fault(llvm::formatv("reduces by {0}, which a tensor map of data "
                                 "type {1} does not allow",
                                 NVVM::stringifyTMAReduxKind(kind),
                                 static_cast<unsigned>(box.getMap().type)));
    BulkSource from(thread);
    box.forEachRow([&](const TensorBox::Row &row) {
      if (row.bytes == 0)
        return;
      std::vector<char> data = readRow(from, box, base, row);
      char *target = from.write(row.address, row.bytes, /*alignment=*/1,
                                AccessKind::Atomic);
      for (uint32_t i = 0; i < row.bytes; i += box.getMap().elementBytes)
        update(target + i, data.data() + i);
    });
  });
}

} // namespace

ArrayRef<OpEntry> emulator::getTensorCopyOps() {
  static const OpEntry entries[] = {
      {"nvvm.cp.async.bulk.tensor.shared.cluster.global", prepareLoad},
      {"nvvm.cp.async.bulk.tensor.global.shared.cta", prepareStore},
      {"nvvm.cp.async.bulk.tensor.reduce", prepareReduce},
      {"nvvm.cp.async.bulk.tensor.prefetch", preparePrefetch},
      {"nvvm.prefetch", prepareMapPrefetch},
  };
  return entries;
}
