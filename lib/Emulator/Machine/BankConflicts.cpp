//===- BankConflicts.cpp - banks of shared memory -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Machine/BankConflicts.h"

using namespace mlir;
using namespace mlir::nm_sparse;
using namespace mlir::nm_sparse::emulator;

static constexpr unsigned numBanks = 32, wordBytes = 4, widestAccess = 16;

StringRef emulator::getSharedOpName(SharedOp op) {
  switch (op) {
  case SharedOp::Load:
    return "ld.shared";
  case SharedOp::Store:
    return "st.shared";
  case SharedOp::LoadMatrix:
    return "ldmatrix";
  case SharedOp::StoreMatrix:
    return "stmatrix";
  case SharedOp::AsyncCopy:
    return "cp.async";
  }
  llvm_unreachable("all kinds are handled");
}

BankUse emulator::countWavefronts(const WarpAccess &access) {
  BankUse use;
  use.accesses = 1;
  unsigned phaseLanes = std::min(warpSize, numBanks * wordBytes / access.bytes);
  for (unsigned first = 0; first < warpSize; first += phaseLanes) {
    std::array<SmallVector<uint32_t, 2>, numBanks> banks;
    size_t wavefronts = 0;
    for (unsigned lane = first; lane < first + phaseLanes; ++lane) {
      if (!(access.lanes >> lane & 1))
        continue;
      for (uint32_t byte = 0; byte < access.bytes; byte += wordBytes) {
        uint32_t word = (access.addresses[lane] + byte) / wordBytes;
        SmallVector<uint32_t, 2> &bank = banks[word % numBanks];
        if (!llvm::is_contained(bank, word))
          bank.push_back(word);
        wavefronts = std::max(wavefronts, bank.size());
      }
    }
    use.wavefronts += wavefronts;
    use.conflicts += wavefronts ? wavefronts - 1 : 0;
  }
  return use;
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

void BankTable::add(SharedOp op, const BankUse &use) {
  std::lock_guard<std::mutex> lock(mutex);
  uses[static_cast<unsigned>(op)] += use;
}

std::vector<std::pair<std::string, BankUse>> BankTable::getUses() const {
  std::lock_guard<std::mutex> lock(mutex);
  std::vector<std::pair<std::string, BankUse>> result;
  for (unsigned i = 0; i < numSharedOps; ++i)
    if (uses[i].accesses != 0)
      result.emplace_back(getSharedOpName(static_cast<SharedOp>(i)).str(),
                          uses[i]);
  return result;
}

//===----------------------------------------------------------------------===//
// CTAs
//===----------------------------------------------------------------------===//

BankCounter::~BankCounter() {
  for (auto &entry : streams) {
    Stream &stream = entry.second;
    while (!stream.open.empty())
      close(stream, stream.open.begin());
  }
  for (unsigned i = 0; i < numSharedOps; ++i)
    table.add(static_cast<SharedOp>(i), uses[i]);
}

void BankCounter::close(Stream &stream,
                        const std::deque<Execution>::iterator &execution) {
  uses[static_cast<unsigned>(stream.op)] += countWavefronts(execution->access);
  stream.open.erase(execution);
}

void BankCounter::record(Thread &thread, SharedOp op, uint32_t address,
                         uint32_t bytes, uint32_t alignment) {
  Stream &stream = streams[{thread.site, thread.getWarp()}];
  stream.op = op;
  uint32_t width = std::min({bytes, alignment, widestAccess});
  for (uint32_t byte = 0; byte < bytes; byte += width)
    join(thread, stream, address + byte, width);
}

void BankCounter::join(Thread &thread, Stream &stream, uint32_t address,
                       uint32_t bytes) {
  unsigned lane = thread.getLane();
  if (stream.meetings[lane] != thread.meetings) {
    stream.meetings[lane] = thread.meetings;
    stream.next[lane] = 0;
    // Nobody joins what lies before the last meeting any more.
    while (!stream.open.empty() &&
           stream.open.front().meetings < thread.meetings)
      close(stream, stream.open.begin());
  }
  size_t number = stream.next[lane]++;
  auto execution = llvm::partition_point(
      stream.open, [&](const Execution &open) { return open.number < number; });
  if (execution == stream.open.end()) {
    stream.open.push_back({thread.meetings, number, WarpAccess()});
    execution = std::prev(stream.open.end());
    execution->access.bytes = bytes;
  }
  execution->access.lanes |= 1u << lane;
  execution->access.addresses[lane] = address;
  if (execution->access.lanes == ~0u)
    close(stream, execution);
}

void emulator::countBanks(Thread &thread, SharedOp op, uint64_t address,
                          AddressSpace space, uint32_t bytes,
                          uint32_t alignment) {
  BankCounter *counter = thread.cta.banks.get();
  bool isShared = space == AddressSpace::Shared ||
                  space == AddressSpace::SharedCluster ||
                  (address & sharedWindow) == sharedWindow;
  if (!counter || !isShared)
    return;
  uint64_t where = thread.toShared(address, space);
  unsigned rank = where >> sharedRankShift;
  if (rank != 0 && rank - 1 != thread.cta.rank)
    return;
  counter->record(thread, op, where & ((1u << sharedRankShift) - 1), bytes,
                  alignment);
}
