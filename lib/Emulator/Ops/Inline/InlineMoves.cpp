//===- InlineMoves.cpp - moves, comparisons and hints in inline PTX -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Machine/Collective.h"
#include "Machine/Machine.h"
#include "Ops/Inline/InlineCompiler.h"
#include <cstring>

using namespace mlir;
using namespace mlir::nm_sparse;
using namespace mlir::nm_sparse::emulator;

namespace {

using Kind = PtxOperand::Kind;

/// Bytes of a type such as "b32" or "f16x2", 0 of others.
unsigned getTypeBytes(StringRef type) {
  unsigned bits = 0;
  if (type == "pred")
    return 1;
  if (type == "f16x2" || type == "bf16x2")
    return 4;
  if (type.ltrim("busf").getAsInteger(10, bits))
    return 0;
  return bits / 8;
}

StringRef getLastPart(const PtxInstruction &instruction) {
  return StringRef(instruction.mnemonic).rsplit('.').second;
}

LogicalResult checkCount(InlineCompiler &compiler,
                         const PtxInstruction &instruction, size_t count) {
  if (instruction.operands.size() == count)
    return success();
  return compiler.fail(instruction)
         << "has " << instruction.operands.size() << " operands, not " << count;
}

/// The places of an operand or of the elements of a vector, of `bytes` bytes
/// together.
FailureOr<SmallVector<unsigned>> getPieces(InlineCompiler &compiler,
                                           const PtxInstruction &instruction,
                                           const PtxOperand &operand,
                                           unsigned bytes) {
  SmallVector<unsigned> places;
  ArrayRef<PtxOperand> elements = operand;
  if (operand.kind == Kind::Vector)
    elements = operand.elements;
  for (const PtxOperand &element : elements) {
    FailureOr<unsigned> place =
        compiler.getValue(instruction, element, bytes / elements.size());
    if (failed(place))
      return failure();
    places.push_back(*place);
  }
  return places;
}

/// mov, also between a register and the pieces of one.
FailureOr<Step> compileMove(InlineCompiler &compiler,
                            const PtxInstruction &instruction) {
  unsigned bytes = getTypeBytes(getLastPart(instruction));
  if (failed(checkCount(compiler, instruction, 2)))
    return failure();
  if (!bytes)
    return compiler.fail(instruction) << "moves a type that is not emulated: "
                                         "legal are pred and 16 to 64 bits";
  const PtxOperand &source = instruction.operands[1];
  auto to = getPieces(compiler, instruction, instruction.operands[0], bytes);
  if (failed(to))
    return failure();
  // Clocks go on between two instructions.
  if (source.kind == Kind::Name && to->size() == 1)
    if (ReadRegister read = findRegister(source.name))
      return Step([=, to = to->front()](Thread &thread, Frame frame) {
        uint64_t value = read(thread);
        std::memcpy(frame[to], &value, bytes);
      });
  auto from = getPieces(compiler, instruction, source, bytes);
  if (failed(from))
    return failure();
  return Step([=, to = *to, from = *from](Thread &, Frame frame) {
    uint64_t value = 0;
    size_t read = bytes / from.size(), written = bytes / to.size();
    for (auto [i, place] : llvm::enumerate(from))
      std::memcpy(reinterpret_cast<char *>(&value) + i * read, frame[place],
                  read);
    for (auto [i, place] : llvm::enumerate(to))
      std::memcpy(frame[place], reinterpret_cast<char *>(&value) + i * written,
                  written);
  });
}

/// Generic addresses of shared memory and shared addresses differ by the
/// window; global ones do not.
FailureOr<Step> compileAddressCast(InlineCompiler &compiler,
                                   const PtxInstruction &instruction) {
  StringRef mnemonic = instruction.mnemonic;
  if (failed(checkCount(compiler, instruction, 2)))
    return failure();
  int64_t shift = 0;
  if (mnemonic == "cvta.to.shared.u64")
    shift = -int64_t(sharedWindow);
  else if (mnemonic == "cvta.shared.u64")
    shift = sharedWindow;
  else if (mnemonic != "cvta.to.global.u64" && mnemonic != "cvta.global.u64")
    return compiler.fail(instruction)
           << "is not emulated; known are cvta[.to].shared.u64 and "
              "cvta[.to].global.u64";
  auto to = compiler.getValue(instruction, instruction.operands[0], 8);
  auto from = compiler.getValue(instruction, instruction.operands[1], 8);
  if (failed(to) || failed(from))
    return failure();
  return Step([=, to = *to, from = *from](Thread &, Frame frame) {
    *static_cast<int64_t *>(frame[to]) =
        *static_cast<int64_t *>(frame[from]) + shift;
  });
}

template <typename T>
bool compare(StringRef how, T a, T b) {
  if (how == "eq")
    return a == b;
  if (how == "ne")
    return a != b;
  if (how == "lt" || how == "lo")
    return a < b;
  if (how == "le" || how == "ls")
    return a <= b;
  if (how == "gt" || how == "hi")
    return a > b;
  return a >= b;
}

template <typename T>
Step makeComparison(const std::string &how, unsigned to, unsigned a,
                    unsigned b) {
  return [=](Thread &, Frame frame) {
    *static_cast<uint8_t *>(frame[to]) = compare<T>(
        how, *static_cast<T *>(frame[a]), *static_cast<T *>(frame[b]));
  };
}

/// setp.ne.b32 p, a, b
FailureOr<Step> compileComparison(InlineCompiler &compiler,
                                  const PtxInstruction &instruction) {
  SmallVector<StringRef> parts;
  StringRef(instruction.mnemonic).split(parts, '.');
  if (failed(checkCount(compiler, instruction, 3)))
    return failure();
  static const StringRef kinds[] = {"eq", "ne", "lt", "le", "gt",
                                    "ge", "lo", "ls", "hi", "hs"};
  StringRef type = parts.back();
  unsigned bytes = getTypeBytes(type);
  if (parts.size() != 3 || !llvm::is_contained(kinds, parts[1]) ||
      (bytes != 4 && bytes != 8) || type == "f64" || type.ends_with("x2"))
    return compiler.fail(instruction)
           << "is not emulated; known are setp.{eq,ne,lt,le,gt,ge,lo,ls,hi,hs}"
              ".{b32,u32,s32,f32,b64,u64,s64}";
  auto to = compiler.getValue(instruction, instruction.operands[0], 1);
  auto a = compiler.getValue(instruction, instruction.operands[1], bytes);
  auto b = compiler.getValue(instruction, instruction.operands[2], bytes);
  if (failed(to) || failed(a) || failed(b))
    return failure();
  std::string how = parts[1].str();
  if (type == "f32")
    return makeComparison<float>(how, *to, *a, *b);
  if (type == "s32")
    return makeComparison<int32_t>(how, *to, *a, *b);
  if (type == "s64")
    return makeComparison<int64_t>(how, *to, *a, *b);
  return bytes == 4 ? makeComparison<uint32_t>(how, *to, *a, *b)
                    : makeComparison<uint64_t>(how, *to, *a, *b);
}

/// selp.b32 d, a, b, p
FailureOr<Step> compileSelection(InlineCompiler &compiler,
                                 const PtxInstruction &instruction) {
  unsigned bytes = getTypeBytes(getLastPart(instruction));
  if (failed(checkCount(compiler, instruction, 4)))
    return failure();
  if (bytes < 2)
    return compiler.fail(instruction)
           << "selects a type that is not emulated: legal are 16 to 64 bits";
  SmallVector<unsigned, 4> places;
  const unsigned widths[] = {bytes, bytes, bytes, 1};
  for (auto [operand, width] : llvm::zip(instruction.operands, widths)) {
    FailureOr<unsigned> place = compiler.getValue(instruction, operand, width);
    if (failed(place))
      return failure();
    places.push_back(*place);
  }
  bool isNegated = instruction.operands[3].isNegated;
  return Step([=](Thread &, Frame frame) {
    bool first = (*static_cast<uint8_t *>(frame[places[3]]) & 1) != isNegated;
    std::memcpy(frame[places[0]], frame[places[first ? 1 : 2]], bytes);
  });
}

/// movmatrix.sync.aligned.m8n8.trans.b16 d, a: lane `i` has row `i / 4` and its
/// columns `2 * (i % 4)` and the next of a matrix, before and behind.
FailureOr<Step> compileMatrixMove(InlineCompiler &compiler,
                                  const PtxInstruction &instruction) {
  if (instruction.mnemonic != "movmatrix.sync.aligned.m8n8.trans.b16")
    return compiler.fail(instruction)
           << "is not emulated; known is "
              "movmatrix.sync.aligned.m8n8.trans.b16";
  if (failed(checkCount(compiler, instruction, 2)))
    return failure();
  auto to = compiler.getValue(instruction, instruction.operands[0], 4);
  auto from = compiler.getValue(instruction, instruction.operands[1], 4);
  if (failed(to) || failed(from))
    return failure();
  return Step([to = *to, from = *from](Thread &thread, Frame frame) {
    void *operands[] = {frame[from]}, *results[] = {frame[to]};
    runWarpCollective(thread, ~uint32_t(0), operands, results,
                      [](ArrayRef<Lane> lanes) {
                        uint32_t words[32];
                        for (auto [i, lane] : llvm::enumerate(lanes))
                          words[i] = lane.operand<uint32_t>(0);
                        auto get = [&](unsigned row, unsigned column) {
                          uint32_t word = words[row * 4 + column / 2];
                          return column % 2 ? word >> 16 : word & 0xffff;
                        };
                        for (auto [i, lane] : llvm::enumerate(lanes)) {
                          unsigned row = i / 4, column = i % 4 * 2;
                          lane.result<uint32_t>(0) =
                              get(column, row) | get(column + 1, row) << 16;
                        }
                      });
  });
}

/// A policy says how long lines stay in the L2 cache: no effect here.
FailureOr<Step> compilePolicy(InlineCompiler &compiler,
                              const PtxInstruction &instruction) {
  if (instruction.operands.empty())
    return compiler.fail(instruction) << "has no result";
  auto to = compiler.getValue(instruction, instruction.operands[0], 8);
  if (failed(to))
    return failure();
  return Step([to = *to](Thread &, Frame frame) {
    *static_cast<uint64_t *>(frame[to]) = 0;
  });
}

FailureOr<Step> compileHint(InlineCompiler &, const PtxInstruction &) {
  return Step([](Thread &, Frame) {});
}

} // namespace

ArrayRef<InlineForm> emulator::getInlineMoves() {
  static const InlineForm forms[] = {
      {"mov", compileMove, "mov.{pred,b16,b32,b64,...}"},
      {"cvta", compileAddressCast, "cvta[.to].{shared,global}.u64"},
      {"setp", compileComparison, "setp.<comparison>.<type>"},
      {"selp", compileSelection, "selp.<type>"},
      {"movmatrix", compileMatrixMove, "movmatrix.sync.aligned.m8n8.trans.b16"},
      {"createpolicy", compilePolicy, "createpolicy.*"},
      {"prefetch", compileHint, "prefetch.*"},
      {"prefetchu", compileHint, "prefetchu.*"},
      {"griddepcontrol", compileHint, "griddepcontrol.*"},
  };
  return forms;
}
