//===- WarpgroupProduct.cpp - wgmma.mma_async ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ops/Matrix/WarpgroupProduct.h"
#include "Ops/Matrix/WarpgroupTable.h"

namespace mlir::nm_sparse::emulator {

namespace {

bool isLegalAccumulator(ElementType factor, ElementType accumulator) {
  if (isInteger(factor))
    return accumulator == ElementType::S32;
  bool canBeHalf = factor == ElementType::F16 || getBits(factor) == 8;
  return accumulator == ElementType::F32 ||
         (accumulator == ElementType::F16 && canBeHalf);
}

} // namespace

std::string WarpgroupProduct::verify() const {
  bool isNarrow = getBits(types.a) == 8;
  bool isKnown = isSmallFloat(types.a) || types.a == ElementType::S8 ||
                 types.a == ElementType::U8;
  bool isLegal = isKnown && getBits(types.a) == getBits(types.b) &&
                 isInteger(types.a) == isInteger(types.b) &&
                 (isNarrow || types.a == types.b) &&
                 isLegalAccumulator(types.a, types.accumulator) &&
                 getDepth() * getBits(types.a) == 256 && n % 8 == 0 && n >= 8 &&
                 n <= 256;
  if (isInteger(types.a))
    isLegal &= n % 16 == 0 || n == 8 || n == 24;
  if (!isLegal)
    return ("no " + Twine(sparsity.isSparse ? "sparse " : "") +
            "wgmma of m64n" + Twine(n) + "k" + Twine(k) + " with " +
            getName(types.a) + " and " + getName(types.b) + " factors and " +
            getName(types.accumulator) + " accumulators is emulated")
        .str();
  if ((transposeA || transposeB) && getBits(types.a) != 16)
    return ("an operand of " + Twine(getName(types.a)) +
            " is not K-major; only f16 and bf16 may be M- or N-major")
        .str();
  if (transposeA && isRegisterA)
    return "A is in registers and M-major; legal is K-major";
  if ((negateA || negateB) && isInteger(types.a))
    return "integer factors are negated; only those of floats may be";
  return "";
}

namespace {

/// Checks the operands in which no thread may differ.
void checkUniform(Thread &thread, ArrayRef<Lane> lanes) {
  const auto &first = lanes.front().operand<WarpgroupArrival>(0);
  for (const Lane &lane : lanes) {
    const auto &other = lane.operand<WarpgroupArrival>(0);
    const char *what = nullptr;
    if (other.descriptorA != first.descriptorA)
      what = "descriptor of A";
    else if (other.descriptorB != first.descriptorB)
      what = "descriptor of B";
    else if (other.selector != first.selector)
      what = "sparsity selector";
    else if (other.accumulate != first.accumulate)
      what = "scale-d";
    if (what)
      thread.fault("thread " + Twine(lane.thread->id) + " has another " + what +
                   " than thread " + Twine(lanes.front().thread->id) +
                   "; all threads of a warpgroup must have the same");
  }
}

/// The events that all threads know have happened before, whichever reads.
Clock meetKnown(ArrayRef<Lane> lanes) {
  Clock after, known;
  lanes.front().thread->release(after);
  for (const Lane &lane : lanes.drop_front()) {
    known.clear();
    lane.thread->release(known);
    after.meet(known);
  }
  return after;
}

struct Registers {
  std::vector<uint32_t> a, metadata, accumulators;
};

void execute(Thread &thread, ArrayRef<Lane> lanes,
             const WarpgroupProduct &product) {
  thread_local Registers registers;
  checkUniform(thread, lanes);
  unsigned count = product.countAccumulators();
  registers.a.resize(warpgroupSize * 4);
  registers.metadata.resize(warpgroupSize);
  registers.accumulators.resize(warpgroupSize * count);
  for (auto [i, lane] : llvm::enumerate(lanes)) {
    const auto &arrival = lane.operand<WarpgroupArrival>(0);
    std::copy_n(arrival.a, 4, &registers.a[i * 4]);
    registers.metadata[i] = arrival.metadata;
    std::copy_n(arrival.accumulators, count,
                &registers.accumulators[i * count]);
  }
  const auto &first = lanes.front().operand<WarpgroupArrival>(0);
  WarpgroupOperands operands;
  operands.descriptorA = first.descriptorA;
  operands.descriptorB = first.descriptorB;
  operands.a = product.isRegisterA ? registers.a.data() : nullptr;
  operands.metadata = registers.metadata.data();
  operands.selector = first.selector;
  operands.accumulate = first.accumulate;
  operands.accumulators = registers.accumulators.data();

  auto [agent, moment] = WarpgroupTable::get(thread).issue(thread);
  Clock after = meetKnown(lanes);
  DotNumerics numerics =
      getDotNumerics(thread.cta.cluster.launch.chip, /*isWarpgroup=*/true,
                     product.types.a, product.getDepth());
  std::string error = multiplyWarpgroup(
      product, numerics, operands,
      [&, agent = agent, moment = moment](uint32_t address) -> const char * {
        return thread.accessAs(agent, moment, /*isAsyncProxy=*/true, after,
                               address, AddressSpace::Shared, matrixPieceBytes,
                               matrixPieceBytes, AccessKind::Read);
      });
  if (!error.empty())
    thread.fault(error);
  for (auto [i, lane] : llvm::enumerate(lanes))
    std::copy_n(&registers.accumulators[i * count], count,
                lane.operand<WarpgroupArrival>(0).accumulators);
}

} // namespace

void runWarpgroupProduct(Thread &thread, const WarpgroupProduct &product,
                         WarpgroupArrival &arrival) {
  void *operands[] = {&arrival};
  runWarpgroupCollective(thread, operands, nullptr, [&](ArrayRef<Lane> lanes) {
    execute(thread, lanes, product);
  });
}

} // namespace mlir::nm_sparse::emulator
