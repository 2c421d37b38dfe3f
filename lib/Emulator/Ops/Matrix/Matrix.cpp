//===- Matrix.cpp - ldmatrix and stmatrix --------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each of the first eight lanes for a matrix names the address of one row, 16
// bytes. The lane itself is what reads or writes that row.
//
//===----------------------------------------------------------------------===//

#include "Machine/BankConflicts.h"
#include "Machine/Collective.h"
#include "Ops/OpTable.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace mlir::nm_sparse::emulator {

namespace {

constexpr unsigned rowsPerMatrix = 8, rowBytes = 16;

/// Matrices, and whether they are transposed.
struct MatrixCopy {
  unsigned count;
  bool isTransposed;
};

FailureOr<MatrixCopy> getMatrixCopy(Operation *op, unsigned count,
                                    NVVM::MMALayout layout,
                                    NVVM::LdStMatrixShapeAttr shape,
                                    NVVM::LdStMatrixEltType type) {
  if (shape.getM() != 8 || shape.getN() != 8 ||
      type != NVVM::LdStMatrixEltType::B16)
    return op->emitError("emulating ")
           << op->getName() << ": the shape is m" << shape.getM() << "n"
           << shape.getN() << " of " << NVVM::stringifyLdStMatrixEltType(type)
           << "; emulated is m8n8 of b16";
  return MatrixCopy{count, layout == NVVM::MMALayout::col};
}

/// The row that the calling lane names; null for a lane that names none.
char *accessRow(Thread &thread, const MatrixCopy &copy, Values operands,
                AccessKind kind) {
  if (thread.getLane() >= rowsPerMatrix * copy.count)
    return nullptr;
  uint64_t address = *static_cast<uint64_t *>(operands[0]);
  char *row =
      thread.access(address, AddressSpace::Shared, rowBytes, rowBytes, kind);
  countBanks(thread, reads(kind) ? SharedOp::LoadMatrix : SharedOp::StoreMatrix,
             address, AddressSpace::Shared, rowBytes, rowBytes);
  return row;
}

/// Calls `function(lane, matrix, row, byte, shift)` for the two elements that
/// each lane has of each matrix: where in the row named by which lane it is,
/// and where in the register.
template <typename Function>
void forEachElement(const MatrixCopy &copy, Function function) {
  for (unsigned lane = 0; lane < warpSize; ++lane)
    for (unsigned matrix = 0; matrix < copy.count; ++matrix)
      for (unsigned i = 0; i < 2; ++i) {
        unsigned row = lane / 4, column = lane % 4 * 2 + i;
        if (copy.isTransposed)
          std::swap(row, column);
        function(lane, matrix, matrix * rowsPerMatrix + row, column * 2,
                 i * 16);
      }
}

FailureOr<Handler> prepareLoad(Operation *op) {
  auto load = cast<NVVM::LdMatrixOp>(op);
  FailureOr<MatrixCopy> copy = getMatrixCopy(
      op, load.getNum(), load.getLayout(), load.getShape(), load.getEltType());
  if (failed(copy))
    return failure();
  return Handler([copy = *copy](Thread &thread, Values operands,
                                Values results) {
    char *row = accessRow(thread, copy, operands, AccessKind::Read);
    void *rows[] = {static_cast<void *>(&row)};
    runWarpCollective(thread, ~0u, rows, results, [&](ArrayRef<Lane> lanes) {
      forEachElement(copy, [&](unsigned lane, unsigned matrix, unsigned row,
                               unsigned byte, unsigned shift) {
        uint16_t element;
        memcpy(&element, lanes[row].operand<char *>(0) + byte, 2);
        uint32_t &word = lanes[lane].result<uint32_t[4]>(0)[matrix];
        word = (shift ? word : 0) | static_cast<uint32_t>(element) << shift;
      });
    });
  });
}

FailureOr<Handler> prepareStore(Operation *op) {
  auto store = cast<NVVM::StMatrixOp>(op);
  FailureOr<MatrixCopy> copy =
      getMatrixCopy(op, store.getSources().size(), store.getLayout(),
                    store.getShape(), store.getEltType());
  if (failed(copy))
    return failure();
  return Handler([copy = *copy](Thread &thread, Values operands,
                                Values results) {
    char *row = accessRow(thread, copy, operands, AccessKind::Write);
    void *values[1 + 4] = {static_cast<void *>(&row)};
    std::copy(operands + 1, operands + 1 + copy.count, values + 1);
    runWarpCollective(thread, ~0u, values, results, [&](ArrayRef<Lane> lanes) {
      forEachElement(copy, [&](unsigned lane, unsigned matrix, unsigned row,
                               unsigned byte, unsigned shift) {
        auto element = static_cast<uint16_t>(
            lanes[lane].operand<uint32_t>(1 + matrix) >> shift);
        memcpy(lanes[row].operand<char *>(0) + byte, &element, 2);
      });
    });
  });
}

constexpr OpEntry entries[] = {
    {"nvvm.ldmatrix", prepareLoad},
    {"nvvm.stmatrix", prepareStore},
};

} // namespace

ArrayRef<OpEntry> getMatrixOps() { return entries; }

} // namespace mlir::nm_sparse::emulator
