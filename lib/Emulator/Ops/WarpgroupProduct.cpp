//===- WarpgroupProduct.cpp - wgmma.mma_async ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WarpgroupProduct.h"
#include "MatrixDescriptor.h"
#include "WarpgroupTable.h"

namespace mlir::nm_sparse::emulator {

namespace {

constexpr unsigned pieceBytes = 16, warpRows = 16;

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

/// Calls `function(row, column, bits)` for the elements of A in registers.
template <typename Function>
void forEachRegister(const WarpgroupProduct &product,
                     const WarpgroupOperands &operands, Function function) {
  unsigned bits = getBits(product.types.a), count = product.countA();
  unsigned perRegister = product.types.getPerRegister();
  uint32_t mask = bits == 32 ? ~0u : (1u << bits) - 1;
  for (unsigned thread = 0; thread < warpgroupSize; ++thread)
    for (unsigned i = 0; i < count * perRegister; ++i) {
      FragmentPosition at =
          getFactorPosition(thread % warpSize, i, perRegister, warpRows);
      uint32_t word = operands.a[thread * count + i / perRegister];
      function(thread / warpSize * warpRows + at.row, at.column,
               word >> (i % perRegister * bits) & mask);
    }
}

/// Calls `function(mn, k, bits)` for the elements of a matrix in shared memory.
template <typename Function>
std::string forEachElement(uint64_t bits, bool isMNMajor, ElementType type,
                           unsigned sizeMN, unsigned sizeK, const char *operand,
                           ReadPiece readPiece, Function function) {
  MatrixDescriptor descriptor(bits);
  unsigned bytes = getBits(type) / 8, perPiece = pieceBytes / bytes;
  std::string error = descriptor.verify(isMNMajor, sizeK * bytes);
  if (!error.empty())
    return ("the descriptor of " + Twine(operand) + ": " + error).str();
  unsigned outer = isMNMajor ? sizeK : sizeMN;
  unsigned pieces = (isMNMajor ? sizeMN : sizeK) / perPiece;
  for (unsigned i = 0; i < outer; ++i)
    for (unsigned piece = 0; piece < pieces; ++piece) {
      const char *from =
          readPiece(isMNMajor ? descriptor.getMNMajorPiece(piece, i)
                              : descriptor.getKMajorPiece(i, piece));
      for (unsigned j = 0; j < perPiece; ++j, from += bytes) {
        uint32_t element = 0;
        memcpy(&element, from, bytes);
        unsigned inner = piece * perPiece + j;
        if (isMNMajor)
          function(inner, i, element);
        else
          function(i, inner, element);
      }
    }
  return "";
}

struct Scratch {
  FloatMatrix a, b;
  std::vector<int32_t> integersA, integersB, integers;
  std::vector<float> floats;
  std::vector<uint8_t> selected;
};

/// Loads both factors through `setA(m, k, bits)` and `setB(n, k, bits)`.
template <typename SetA, typename SetB>
std::string loadFactors(const WarpgroupProduct &product,
                        const WarpgroupOperands &operands, ReadPiece readPiece,
                        SetA setA, SetB setB) {
  if (operands.a) {
    forEachRegister(product, operands, setA);
  } else {
    std::string error = forEachElement(
        operands.descriptorA, product.transposeA, product.types.a,
        WarpgroupProduct::m, product.getDepth(), "A", readPiece, setA);
    if (!error.empty())
      return error;
  }
  return forEachElement(operands.descriptorB, product.transposeB,
                        product.types.b, product.n, product.k, "B", readPiece,
                        setB);
}

/// Calls `function(element, registers, index)` for the accumulators: the
/// position by rows, the registers of the thread that has it, and which of its
/// accumulators it is.
template <typename Function>
void forEachAccumulator(const WarpgroupProduct &product,
                        const WarpgroupOperands &operands, Function function) {
  for (unsigned thread = 0; thread < warpgroupSize; ++thread) {
    uint32_t *registers =
        operands.accumulators + thread * product.countAccumulators();
    for (unsigned i = 0; i < product.n / 2; ++i) {
      FragmentPosition at =
          getAccumulatorPosition(thread % warpSize, i, warpRows);
      unsigned row = thread / warpSize * warpRows + at.row;
      function(row * product.n + at.column, registers, i);
    }
  }
}

std::string multiplyFloatWarpgroup(const WarpgroupProduct &product,
                                   const DotNumerics &numerics,
                                   const WarpgroupOperands &operands,
                                   ReadPiece readPiece, const uint8_t *selected,
                                   Scratch &scratch) {
  FloatMatrix &a = scratch.a, &b = scratch.b;
  a.reset(product.types.a, WarpgroupProduct::m, product.getDepth());
  b.reset(product.types.b, product.k, product.n);
  std::string error = loadFactors(
      product, operands, readPiece,
      [&](unsigned m, unsigned k, uint32_t bits) { a.set(m, k, bits); },
      [&](unsigned n, unsigned k, uint32_t bits) { b.set(k, n, bits); });
  if (!error.empty())
    return error;
  if (product.negateA != product.negateB)
    a.negate();
  std::vector<float> &sums = scratch.floats;
  ElementType type = product.types.accumulator;
  sums.assign(WarpgroupProduct::m * product.n, 0.0f);
  if (operands.accumulate)
    forEachAccumulator(product, operands,
                       [&](unsigned element, uint32_t *from, unsigned i) {
                         sums[element] = loadAccumulator(type, from, i);
                       });
  multiplyFloats(numerics, type, a, b, selected, sums.data());
  forEachAccumulator(product, operands,
                     [&](unsigned element, uint32_t *to, unsigned i) {
                       storeAccumulator(type, to, i, sums[element]);
                     });
  return "";
}

std::string multiplyIntegerWarpgroup(const WarpgroupProduct &product,
                                     const WarpgroupOperands &operands,
                                     ReadPiece readPiece,
                                     const uint8_t *selected,
                                     Scratch &scratch) {
  unsigned depth = product.getDepth(), n = product.n;
  scratch.integersA.resize(WarpgroupProduct::m * depth);
  scratch.integersB.resize(product.k * n);
  std::string error = loadFactors(
      product, operands, readPiece,
      [&](unsigned row, unsigned k, uint32_t bits) {
        scratch.integersA[row * depth + k] =
            decodeInteger(product.types.a, bits);
      },
      [&](unsigned column, unsigned k, uint32_t bits) {
        scratch.integersB[k * n + column] =
            decodeInteger(product.types.b, bits);
      });
  if (!error.empty())
    return error;
  std::vector<int32_t> &sums = scratch.integers;
  sums.assign(WarpgroupProduct::m * n, 0);
  if (operands.accumulate)
    forEachAccumulator(product, operands,
                       [&](unsigned element, uint32_t *from, unsigned i) {
                         sums[element] = static_cast<int32_t>(from[i]);
                       });
  multiplyIntegers(WarpgroupProduct::m, n, depth, scratch.integersA.data(),
                   scratch.integersB.data(), selected, product.types.saturate,
                   sums.data());
  forEachAccumulator(product, operands,
                     [&](unsigned element, uint32_t *to, unsigned i) {
                       to[i] = static_cast<uint32_t>(sums[element]);
                     });
  return "";
}

} // namespace

std::string multiplyWarpgroup(const WarpgroupProduct &product,
                              const DotNumerics &numerics,
                              const WarpgroupOperands &operands,
                              ReadPiece readPiece) {
  thread_local Scratch scratch;
  const uint8_t *selected = nullptr;
  if (product.sparsity.isSparse) {
    unsigned perWarp = warpRows * product.getDepth();
    scratch.selected.resize(4 * perWarp);
    for (unsigned warp = 0; warp < 4; ++warp) {
      std::string error =
          decodeMetadata(product.types.a, product.k, product.sparsity.isOrdered,
                         operands.metadata + warp * warpSize, operands.selector,
                         scratch.selected.data() + warp * perWarp);
      if (!error.empty())
        return ("in warp " + Twine(warp) + " of the warpgroup " + error).str();
    }
    selected = scratch.selected.data();
  }
  if (isInteger(product.types.a))
    return multiplyIntegerWarpgroup(product, operands, readPiece, selected,
                                    scratch);
  return multiplyFloatWarpgroup(product, numerics, operands, readPiece,
                                selected, scratch);
}

namespace {

/// What no thread may differ in.
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

/// What all threads know has happened before, whichever of them reads.
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
                               address, AddressSpace::Shared, pieceBytes,
                               pieceBytes, AccessKind::Read);
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
