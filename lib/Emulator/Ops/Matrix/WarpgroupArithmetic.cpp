//===- WarpgroupArithmetic.cpp - what wgmma.mma_async computes ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ops/Matrix/MatrixDescriptor.h"
#include "Ops/Matrix/WarpgroupProduct.h"

namespace mlir::nm_sparse::emulator {

namespace {

constexpr unsigned warpRows = 16;

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
  unsigned bytes = getBits(type) / 8, perPiece = matrixPieceBytes / bytes;
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

} // namespace mlir::nm_sparse::emulator
