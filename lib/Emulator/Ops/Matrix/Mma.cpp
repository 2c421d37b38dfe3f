//===- Mma.cpp - mma.sync and mma.sp.sync of the nvvm dialect ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ops/Matrix/Mma.h"
#include "Machine/Collective.h"
#include "Ops/OpTable.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace mlir::nm_sparse::emulator {

namespace {

std::optional<ElementType> getType(std::optional<NVVM::MMATypes> type) {
  if (!type)
    return std::nullopt;
  return findElementType(NVVM::stringifyMMATypes(*type));
}

/// The registers of all lanes, gathered from `count` operands.
void gather(ArrayRef<Lane> lanes, unsigned first, unsigned count,
            unsigned words, std::vector<uint32_t> &registers) {
  registers.resize(lanes.size() * count * words);
  uint32_t *to = registers.data();
  for (const Lane &lane : lanes)
    for (unsigned i = 0; i < count; ++i, to += words)
      memcpy(to, lane.operands[first + i], 4 * words);
}

struct Registers {
  std::vector<uint32_t> a, b, accumulators, metadata;
};

void runProduct(Thread &thread, WarpProduct product,
                const ProductOperands &operands, ArrayRef<Lane> lanes) {
  thread_local Registers registers;
  unsigned words = operands.wordsPerOperand;
  gather(lanes, operands.a, operands.countA, words, registers.a);
  gather(lanes, operands.b, operands.countB, words, registers.b);
  gather(lanes, operands.c, operands.countC, words, registers.accumulators);
  uint32_t selector = 0;
  if (product.sparsity.isSparse) {
    gather(lanes, operands.metadata, 1, 1, registers.metadata);
    selector = lanes.front().operand<uint32_t>(operands.selector);
  }
  product.numerics =
      getDotNumerics(thread.cta.cluster.launch.chip, /*isWarpgroup=*/false,
                     product.types.a, product.getDepth());
  std::string error = runWarpProduct(
      product, registers.a.data(), registers.b.data(),
      registers.accumulators.data(), registers.metadata.data(), selector);
  if (!error.empty())
    thread.fault(error);
  unsigned bytes = operands.countC * words * 4;
  const char *from = reinterpret_cast<char *>(registers.accumulators.data());
  for (const Lane &lane : lanes) {
    memcpy(lane.results[0], from, bytes);
    from += bytes;
  }
}

} // namespace

void runWarpProduct(Thread &thread, const WarpProduct &product,
                    const ProductOperands &operands, Values values,
                    Values results) {
  runWarpCollective(thread, ~0u, values, results, [&](ArrayRef<Lane> lanes) {
    runProduct(thread, product, operands, lanes);
  });
}

namespace {

/// The common part of both ops.
template <typename Op>
FailureOr<Handler> prepareProduct(Op op, Sparsity sparsity) {
  NVVM::MMAShapeAttr shape = op.getShape();
  auto emit = [&] { return op->emitError("emulating ") << op->getName(); };
  std::optional<ElementType> a = getType(op.getMultiplicandAPtxType()),
                             b = getType(op.getMultiplicandBPtxType()),
                             c = getType(op.accumPtxType());
  if (!a || !b || !c)
    return emit() << ": a type is not emulated; emulated are f16, bf16, tf32, "
                     "f64, s8, u8, s4 and u4";
  if (op.accumPtxType() != op.resultPtxType())
    return emit() << ": the accumulators are "
                  << NVVM::stringifyMMATypes(op.accumPtxType())
                  << " and the results "
                  << NVVM::stringifyMMATypes(op.resultPtxType())
                  << "; emulated are equal types";
  WarpProduct product{
      static_cast<unsigned>(shape.getM()),
      static_cast<unsigned>(shape.getN()),
      static_cast<unsigned>(shape.getK()),
      {*a, *b, *c,
       op.getIntOverflowBehavior() == NVVM::MMAIntOverflow::satfinite},
      sparsity,
      {}};
  std::string error = product.verify();
  if (!error.empty())
    return emit() << ": " << error;

  auto [beginA, countA] = op.getODSOperandIndexAndLength(0);
  auto [beginB, countB] = op.getODSOperandIndexAndLength(1);
  auto [beginC, countC] = op.getODSOperandIndexAndLength(2);
  ProductOperands operands{beginA, countA, beginB, countB, beginC, countC};
  if (*a == ElementType::F64)
    operands.wordsPerOperand = 2;
  if (sparsity.isSparse) {
    operands.metadata = op.getODSOperandIndexAndLength(3).first;
    operands.selector = op.getODSOperandIndexAndLength(4).first;
  }
  unsigned words = operands.wordsPerOperand;
  if (countA * words != product.countA() ||
      countB * words != product.countB() ||
      countC * words != product.countAccumulators())
    return emit() << ": it has " << countA << ", " << countB << " and "
                  << countC
                  << " operands for A, B and C; its shape and types "
                     "need "
                  << product.countA() / words << ", "
                  << product.countB() / words << " and "
                  << product.countAccumulators() / words;
  return Handler(
      [product, operands](Thread &thread, Values values, Values results) {
        runWarpProduct(thread, product, operands, values, results);
      });
}

FailureOr<Handler> prepareMma(Operation *op) {
  auto mma = cast<NVVM::MmaOp>(op);
  NVVM::MMAShapeAttr shape = mma.getShape();
  bool isVolta =
      shape.getM() == 8 && mma.getMultiplicandAPtxType() == NVVM::MMATypes::f16;
  if (isVolta || mma.getLayoutA() != NVVM::MMALayout::row ||
      mma.getLayoutB() != NVVM::MMALayout::col)
    return op->emitError("emulating nvvm.mma.sync: m")
           << shape.getM() << "n" << shape.getN() << "k" << shape.getK()
           << " with layouts " << NVVM::stringifyMMALayout(mma.getLayoutA())
           << " and " << NVVM::stringifyMMALayout(mma.getLayoutB())
           << "; emulated are the shapes of sm_80 with layouts row and col";
  return prepareProduct(mma, {});
}

FailureOr<Handler> prepareSparseMma(Operation *op) {
  auto mma = cast<NVVM::MmaSpOp>(op);
  return prepareProduct(mma, {true, mma.getOrderedMetadata()});
}

constexpr OpEntry entries[] = {
    {"nvvm.mma.sync", prepareMma},
    {"nvvm.mma.sp.sync", prepareSparseMma},
};

} // namespace

ArrayRef<OpEntry> getMmaOps() { return entries; }

} // namespace mlir::nm_sparse::emulator
