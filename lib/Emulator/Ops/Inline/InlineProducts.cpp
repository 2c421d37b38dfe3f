//===- InlineProducts.cpp - mma and wgmma in inline PTX -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products that the nvvm dialect has no operation for: wgmma with A in
// registers or with a sparse A, and mma.sync of 8-bit floats; also the others.
//
//===----------------------------------------------------------------------===//

#include "Ops/Inline/InlineCompiler.h"
#include "Ops/Matrix/Mma.h"
#include "Ops/Matrix/WarpgroupProduct.h"

using namespace mlir;
using namespace mlir::nm_sparse;
using namespace mlir::nm_sparse::emulator;

namespace {

struct Shape {
  unsigned m = 0, n = 0, k = 0;
};

/// "m64n128k16"
std::optional<Shape> parseShape(StringRef text) {
  Shape shape;
  if (!text.consume_front("m") || text.consumeInteger(10, shape.m) ||
      !text.consume_front("n") || text.consumeInteger(10, shape.n) ||
      !text.consume_front("k") || text.consumeInteger(10, shape.k) ||
      !text.empty())
    return std::nullopt;
  return shape;
}

/// The parsed form of a mnemonic.
struct Mnemonic {
  Shape shape;
  SmallVector<ElementType, 4> types;
  bool isSparse = false, isOrdered = false, saturate = false;
};

FailureOr<Mnemonic> parseMnemonic(InlineCompiler &compiler,
                                  const PtxInstruction &instruction) {
  Mnemonic result;
  bool hasShape = false;
  SmallVector<StringRef> parts;
  StringRef(instruction.mnemonic).split(parts, '.');
  for (StringRef part : ArrayRef(parts).drop_front()) {
    if (auto shape = parseShape(part)) {
      result.shape = *shape;
      hasShape = true;
    } else if (part.consume_front("sp")) {
      result.isSparse = true;
      result.isOrdered = part == "::ordered_metadata";
    } else if (part == "satfinite") {
      result.saturate = true;
    } else if (auto type = findElementType(part); type && hasShape) {
      result.types.push_back(*type);
    } else if (part != "sync" && part != "aligned" && part != "mma_async" &&
               part != "row" && part != "col") {
      return compiler.fail(instruction)
             << "has the modifier ." << part << ", which is not emulated";
    }
  }
  if (!hasShape || result.types.size() < 3)
    return compiler.fail(instruction) << "wants a shape and its types after it";
  return result;
}

/// The places of a list of `count` registers.
FailureOr<SmallVector<unsigned>> getList(InlineCompiler &compiler,
                                         const PtxInstruction &instruction,
                                         const PtxOperand &operand,
                                         unsigned count, unsigned bytes) {
  if (operand.kind != PtxOperand::Kind::Vector ||
      operand.elements.size() != count)
    return compiler.fail(instruction)
           << "wants a list of " << count << " registers of " << bytes * 8
           << " bits; found "
           << (operand.kind == PtxOperand::Kind::Vector
                   ? std::to_string(operand.elements.size())
                   : std::string("no list"));
  SmallVector<unsigned> places;
  for (const PtxOperand &element : operand.elements) {
    FailureOr<unsigned> place = compiler.getValue(instruction, element, bytes);
    if (failed(place))
      return failure();
    places.push_back(*place);
  }
  return places;
}

uint32_t readWord(Frame frame, unsigned place) {
  uint32_t word;
  memcpy(&word, frame[place], sizeof(word));
  return word;
}

//===----------------------------------------------------------------------===//
// Warps
//===----------------------------------------------------------------------===//

/// mma.sync.aligned.shape.row.col.d.a.b.c d, a, b, c and
/// mma.sp.sync... d, a, b, c, metadata, selector
FailureOr<Step> compileMma(InlineCompiler &compiler,
                           const PtxInstruction &instruction) {
  FailureOr<Mnemonic> parsed = parseMnemonic(compiler, instruction);
  if (failed(parsed))
    return failure();
  if (parsed->types.size() != 4 || parsed->types[0] != parsed->types[3] ||
      !StringRef(instruction.mnemonic).contains(".row.col."))
    return compiler.fail(instruction)
           << "is emulated with .row.col and four types, of which the first "
              "and last are equal";
  const Shape &shape = parsed->shape;
  WarpProduct product{
      shape.m,
      shape.n,
      shape.k,
      {parsed->types[1], parsed->types[2], parsed->types[0], parsed->saturate},
      {parsed->isSparse, parsed->isOrdered},
      {}};
  std::string error = product.verify();
  if (!error.empty())
    return compiler.fail(instruction) << "is not emulated: " << error;
  unsigned wanted = parsed->isSparse ? 6 : 4;
  if (instruction.operands.size() != wanted)
    return compiler.fail(instruction) << "has " << instruction.operands.size()
                                      << " operands, not " << wanted;

  unsigned words = getBits(product.types.a) == 64 ? 2 : 1, bytes = 4 * words;
  unsigned countA = product.countA() / words, countB = product.countB() / words,
           countC = product.countAccumulators() / words;
  unsigned counts[] = {countC, countA, countB, countC};
  SmallVector<unsigned> lists[4];
  for (unsigned i = 0; i < 4; ++i) {
    auto list = getList(compiler, instruction, instruction.operands[i],
                        counts[i], bytes);
    if (failed(list))
      return failure();
    lists[i] = std::move(*list);
  }
  ProductOperands operands{0, countA, countA, countB, countA + countB, countC};
  operands.wordsPerOperand = words;
  SmallVector<unsigned> places;
  for (unsigned i : {1, 2, 3})
    llvm::append_range(places, lists[i]);
  if (parsed->isSparse) {
    operands.metadata = places.size();
    operands.selector = places.size() + 1;
    for (unsigned i : {4, 5}) {
      auto place = compiler.getValue(instruction, instruction.operands[i], 4);
      if (failed(place))
        return failure();
      places.push_back(*place);
    }
  }
  return Step([product, operands, places, targets = lists[0],
               bytes](Thread &thread, Frame frame) {
    SmallVector<void *, 16> values;
    for (unsigned place : places)
      values.push_back(frame[place]);
    char buffer[16 * sizeof(uint32_t)];
    void *result = buffer;
    runWarpProduct(thread, product, operands, values.data(), &result);
    for (auto [i, place] : llvm::enumerate(targets))
      memcpy(frame[place], buffer + i * bytes, bytes);
  });
}

//===----------------------------------------------------------------------===//
// Warpgroups
//===----------------------------------------------------------------------===//

/// Places of the operands of one wgmma; nothing where it has none.
struct WarpgroupPlaces {
  SmallVector<unsigned> accumulators, a;
  unsigned descriptorA = 0, descriptorB = 0, metadata = 0, selector = 0;
  unsigned scaleD = 0, scaleDBytes = 0;
  std::optional<unsigned> scaleA, scaleB, transposeA, transposeB;
};

FailureOr<WarpgroupPlaces> getPlaces(InlineCompiler &compiler,
                                     const PtxInstruction &instruction,
                                     const WarpgroupProduct &product) {
  WarpgroupPlaces places;
  ArrayRef<PtxOperand> rest = instruction.operands;
  bool isMissing = false, isBad = false;
  auto next = [&](unsigned bytes) -> unsigned {
    if (rest.empty()) {
      isMissing = true;
      return 0;
    }
    auto place = compiler.getValue(instruction, rest.front(), bytes);
    rest = rest.drop_front();
    isBad |= failed(place);
    return failed(place) ? 0 : *place;
  };
  auto accumulators = getList(compiler, instruction, rest.front(),
                              product.countAccumulators(), 4);
  if (failed(accumulators))
    return failure();
  places.accumulators = std::move(*accumulators);
  rest = rest.drop_front();
  if (product.isRegisterA) {
    auto a = getList(compiler, instruction, rest.front(), product.countA(), 4);
    if (failed(a))
      return failure();
    places.a = std::move(*a);
    rest = rest.drop_front();
  } else {
    places.descriptorA = next(8);
  }
  places.descriptorB = next(8);
  if (product.sparsity.isSparse) {
    places.metadata = next(4);
    places.selector = next(4);
  }
  places.scaleD = next(0);
  if (!isInteger(product.types.a)) {
    places.scaleA = next(0);
    places.scaleB = next(0);
    if (getBits(product.types.a) == 16) {
      if (!product.isRegisterA)
        places.transposeA = next(0);
      places.transposeB = next(0);
    }
  }
  if (isBad)
    return failure();
  if (isMissing || !rest.empty())
    return compiler.fail(instruction)
           << "has " << instruction.operands.size() << " operands, "
           << (isMissing ? "which are too few" : "which are too many");
  places.scaleDBytes = compiler.getBytes(places.scaleD);
  return places;
}

void runProduct(Thread &thread, Frame frame, WarpgroupProduct product,
                const WarpgroupPlaces &places) {
  // These are immediates, but the text may have them from operands.
  auto isSet = [&](std::optional<unsigned> place, int32_t value) {
    return place && static_cast<int32_t>(readWord(frame, *place)) == value;
  };
  product.negateA = isSet(places.scaleA, -1);
  product.negateB = isSet(places.scaleB, -1);
  product.transposeA = isSet(places.transposeA, 1);
  product.transposeB = isSet(places.transposeB, 1);

  WarpgroupArrival arrival;
  if (product.isRegisterA)
    for (auto [i, place] : llvm::enumerate(places.a))
      arrival.a[i] = readWord(frame, place);
  else
    memcpy(&arrival.descriptorA, frame[places.descriptorA], 8);
  memcpy(&arrival.descriptorB, frame[places.descriptorB], 8);
  if (product.sparsity.isSparse) {
    arrival.metadata = readWord(frame, places.metadata);
    arrival.selector = readWord(frame, places.selector);
  }
  arrival.accumulate = places.scaleDBytes == 1
                           ? *static_cast<uint8_t *>(frame[places.scaleD])
                           : readWord(frame, places.scaleD) != 0;
  uint32_t accumulators[128];
  for (auto [i, place] : llvm::enumerate(places.accumulators))
    accumulators[i] = readWord(frame, place);
  arrival.accumulators = accumulators;
  runWarpgroupProduct(thread, product, arrival);
  for (auto [i, place] : llvm::enumerate(places.accumulators))
    memcpy(frame[place], &accumulators[i], 4);
}

/// wgmma.mma_async[.sp].sync.aligned.shape.d.a.b d, a | a-desc, b-desc,
/// [metadata, selector,] scale-d[, scale-a, scale-b[, [trans-a,] trans-b]]
FailureOr<Step> compileWgmma(InlineCompiler &compiler,
                             const PtxInstruction &instruction) {
  FailureOr<Mnemonic> parsed = parseMnemonic(compiler, instruction);
  if (failed(parsed))
    return failure();
  if (parsed->shape.m != WarpgroupProduct::m || parsed->types.size() != 3 ||
      instruction.operands.size() < 4)
    return compiler.fail(instruction)
           << "is emulated with a shape of m64, three types, accumulators, A, "
              "B and scale-d";
  WarpgroupProduct product;
  product.n = parsed->shape.n;
  product.k = parsed->shape.k;
  product.types = {parsed->types[1], parsed->types[2], parsed->types[0],
                   parsed->saturate};
  product.sparsity.isSparse = parsed->isSparse;
  product.isRegisterA =
      instruction.operands[1].kind == PtxOperand::Kind::Vector;
  std::string error = product.verify();
  if (!error.empty())
    return compiler.fail(instruction) << "is not emulated: " << error;
  FailureOr<WarpgroupPlaces> places = getPlaces(compiler, instruction, product);
  if (failed(places))
    return failure();
  return Step([product, places = *places](Thread &thread, Frame frame) {
    runProduct(thread, frame, product, places);
  });
}

} // namespace

ArrayRef<InlineForm> emulator::getInlineProducts() {
  static const InlineForm forms[] = {
      {"mma", compileMma, "mma[.sp[::ordered_metadata]].sync.aligned"},
      {"wgmma.mma_async", compileWgmma, "wgmma.mma_async[.sp].sync.aligned"},
  };
  return forms;
}
