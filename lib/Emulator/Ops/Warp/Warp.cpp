//===- Warp.cpp - exchange between the threads of a warp ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// None of these orders accesses to memory; bar.warp.sync does.
//
//===----------------------------------------------------------------------===//

#include "Ops/Warp/Warp.h"
#include "Machine/Collective.h"
#include "Ops/OpTable.h"
#include "Ops/Scalar/Float.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/bit.h"
#include <cstring>

using namespace mlir;
using namespace mlir::nm_sparse::emulator;

std::pair<unsigned, bool> mlir::nm_sparse::emulator::getShuffleSource(
    Shuffle kind, unsigned lane, uint32_t offset, uint32_t segments) {
  unsigned distance = offset & 31, clamp = segments & 31;
  unsigned segment = (segments >> 8) & 31;
  int last = (lane & segment) | (clamp & ~segment);
  unsigned first = lane & segment;
  int source = 0;
  bool isValid = false;
  switch (kind) {
  case Shuffle::Up:
    source = int(lane) - int(distance);
    isValid = source >= last;
    break;
  case Shuffle::Down:
    source = lane + distance;
    isValid = source <= last;
    break;
  case Shuffle::Butterfly:
    source = lane ^ distance;
    isValid = source <= last;
    break;
  case Shuffle::Index:
    source = first | (distance & ~segment);
    isValid = source <= last;
    break;
  }
  return {isValid ? source : lane, isValid};
}

namespace {

uint32_t getPresent(ArrayRef<Lane> lanes) {
  uint32_t present = 0;
  for (auto [i, lane] : llvm::enumerate(lanes))
    present |= lane.thread ? 1u << i : 0;
  return present;
}

FailureOr<Handler> prepareShuffle(Operation *op) {
  auto shuffle = cast<NVVM::ShflOp>(op);
  Shuffle kind = Shuffle::Index;
  switch (shuffle.getKind()) {
  case NVVM::ShflKind::bfly:
    kind = Shuffle::Butterfly;
    break;
  case NVVM::ShflKind::up:
    kind = Shuffle::Up;
    break;
  case NVVM::ShflKind::down:
    kind = Shuffle::Down;
    break;
  case NVVM::ShflKind::idx:
    break;
  }
  bool returnsValid = bool(shuffle.getReturnValueAndIsValidAttr());
  return Handler([=](Thread &thread, Values operands, Values results) {
    auto body = [&](ArrayRef<Lane> lanes) {
      for (const Lane &lane : lanes) {
        if (!lane.thread)
          continue;
        auto [source, isValid] = getShuffleSource(kind, lane.thread->getLane(),
                                                  lane.operand<uint32_t>(2),
                                                  lane.operand<uint32_t>(3));
        // The value of a thread outside the mask is undefined: a NaN.
        lane.result<uint32_t>(0) = lanes[source].thread
                                       ? lanes[source].operand<uint32_t>(1)
                                       : ~uint32_t(0);
        if (returnsValid)
          (&lane.result<uint8_t>(0))[4] = isValid;
      }
    };
    runWarpCollective(thread, *static_cast<uint32_t *>(operands[0]), operands,
                      results, body);
  });
}

FailureOr<Handler> prepareVote(Operation *op) {
  NVVM::VoteSyncKind kind = cast<NVVM::VoteSyncOp>(op).getKind();
  return Handler([=](Thread &thread, Values operands, Values results) {
    uint32_t mask = *static_cast<uint32_t *>(operands[0]);
    auto body = [&](ArrayRef<Lane> lanes) {
      uint32_t ballot = 0, present = getPresent(lanes);
      for (auto [i, lane] : llvm::enumerate(lanes))
        if (lane.thread && (lane.operand<uint8_t>(1) & 1))
          ballot |= 1u << i;
      for (const Lane &lane : lanes) {
        if (!lane.thread)
          continue;
        switch (kind) {
        case NVVM::VoteSyncKind::any:
          lane.result<uint8_t>(0) = ballot != 0;
          break;
        case NVVM::VoteSyncKind::all:
          lane.result<uint8_t>(0) = ballot == present;
          break;
        case NVVM::VoteSyncKind::uni:
          lane.result<uint8_t>(0) = ballot == present || ballot == 0;
          break;
        case NVVM::VoteSyncKind::ballot:
          lane.result<uint32_t>(0) = ballot;
          break;
        }
      }
    };
    runWarpCollective(thread, mask, operands, results, body);
  });
}

FailureOr<Handler> prepareMatch(Operation *op) {
  auto match = cast<NVVM::MatchSyncOp>(op);
  bool all = match.getKind() == NVVM::MatchSyncKind::all;
  size_t bytes = match.getVal().getType().getIntOrFloatBitWidth() / 8;
  return Handler([=](Thread &thread, Values operands, Values results) {
    auto body = [&](ArrayRef<Lane> lanes) {
      uint32_t present = getPresent(lanes);
      for (const Lane &lane : lanes) {
        if (!lane.thread)
          continue;
        uint32_t same = 0;
        for (auto [i, other] : llvm::enumerate(lanes))
          if (other.thread &&
              std::memcmp(lane.operands[1], other.operands[1], bytes) == 0)
            same |= 1u << i;
        if (all) {
          lane.result<uint32_t>(0) = same == present ? present : 0;
          (&lane.result<uint8_t>(0))[4] = same == present;
        } else {
          lane.result<uint32_t>(0) = same;
        }
      }
    };
    runWarpCollective(thread, *static_cast<uint32_t *>(operands[0]), operands,
                      results, body);
  });
}

uint32_t reduceInteger(NVVM::ReduxKind kind, uint32_t a, uint32_t b) {
  auto sa = int32_t(a), sb = int32_t(b);
  switch (kind) {
  case NVVM::ReduxKind::ADD:
    return a + b;
  case NVVM::ReduxKind::AND:
    return a & b;
  case NVVM::ReduxKind::OR:
    return a | b;
  case NVVM::ReduxKind::XOR:
    return a ^ b;
  case NVVM::ReduxKind::MAX:
    return std::max(sa, sb);
  case NVVM::ReduxKind::MIN:
    return std::min(sa, sb);
  case NVVM::ReduxKind::UMAX:
    return std::max(a, b);
  case NVVM::ReduxKind::UMIN:
    return std::min(a, b);
  default:
    llvm_unreachable("a floating-point reduction of integers");
  }
}

FailureOr<Handler> prepareRedux(Operation *op) {
  auto redux = cast<NVVM::ReduxOp>(op);
  NVVM::ReduxKind kind = redux.getKind();
  bool abs = redux.getAbs(), nan = redux.getNan();
  bool isFloat = kind == NVVM::ReduxKind::FMIN || kind == NVVM::ReduxKind::FMAX;
  if (isFloat != redux.getVal().getType().isF32())
    return op->emitError() << "has kind " << NVVM::stringifyReduxKind(kind)
                           << " on " << redux.getVal().getType()
                           << ": fmin and fmax are legal on f32, the others on "
                              "i32";
  return Handler([=](Thread &thread, Values operands, Values results) {
    auto body = [&](ArrayRef<Lane> lanes) {
      std::optional<uint32_t> total;
      for (const Lane &lane : lanes) {
        if (!lane.thread)
          continue;
        auto value = lane.operand<uint32_t>(0);
        if (abs)
          value &= 0x7fffffff;
        if (isFloat) {
          // Also for the first: every NaN becomes the same one.
          float number = llvm::bit_cast<float>(value);
          value = llvm::bit_cast<uint32_t>(
              selectFloat(kind == NVVM::ReduxKind::FMAX, nan, number,
                          total ? llvm::bit_cast<float>(*total) : number));
        } else if (total) {
          value = reduceInteger(kind, *total, value);
        }
        total = value;
      }
      for (const Lane &lane : lanes)
        if (lane.thread)
          lane.result<uint32_t>(0) = *total;
    };
    runWarpCollective(thread, *static_cast<uint32_t *>(operands[1]), operands,
                      results, body);
  });
}

/// The lowest lane is elected.
FailureOr<Handler> prepareElect(Operation *op) {
  bool hasMask = op->getNumOperands() == 1;
  return Handler([=](Thread &thread, Values operands, Values results) {
    uint32_t mask =
        hasMask ? *static_cast<uint32_t *>(operands[0]) : ~uint32_t(0);
    auto body = [&](ArrayRef<Lane> lanes) {
      bool elected = false;
      for (const Lane &lane : lanes)
        if (lane.thread)
          lane.result<uint8_t>(0) = !std::exchange(elected, true);
    };
    runWarpCollective(thread, mask, operands, results, body);
  });
}

} // namespace

ArrayRef<OpEntry> mlir::nm_sparse::emulator::getWarpOps() {
  static const OpEntry entries[] = {
      {"nvvm.shfl.sync", prepareShuffle}, {"nvvm.vote.sync", prepareVote},
      {"nvvm.match.sync", prepareMatch},  {"nvvm.redux.sync", prepareRedux},
      {"nvvm.elect.sync", prepareElect},
  };
  return entries;
}
