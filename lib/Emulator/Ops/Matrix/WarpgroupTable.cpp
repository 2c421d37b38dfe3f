//===- WarpgroupTable.cpp - products in flight ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ops/Matrix/WarpgroupTable.h"

namespace mlir::nm_sparse::emulator {

WarpgroupTable::WarpgroupTable(CTA &cta) : cta(cta) {
  unsigned threads = cta.cluster.launch.getThreads();
  states.resize(threads);
  registers.resize((threads + warpgroupSize - 1) / warpgroupSize,
                   cta.cluster.launch.maxRegisters);
}

WarpgroupTable &WarpgroupTable::get(Thread &thread) {
  if (!thread.cta.warpgroups)
    thread.cta.warpgroups = std::make_shared<WarpgroupTable>(thread.cta);
  return *thread.cta.warpgroups;
}

void WarpgroupTable::fence(Thread &thread) { ++getState(thread).fences; }

std::pair<AgentId, Moment> WarpgroupTable::issue(Thread &thread) {
  unsigned number = thread.getWarpgroup();
  auto [entry, isNew] = agents.try_emplace(number);
  if (isNew)
    entry->second = cta.cluster.addAgent(
        "the warpgroup products of warpgroup " + std::to_string(number));
  Moment group = getState(thread).committed + 1;
  for (unsigned id = number * warpgroupSize, end = id + warpgroupSize; id < end;
       ++id) {
    State &state = states[id];
    if (state.fences == 0)
      thread.fault("thread " + Twine(id) +
                   " has executed no wgmma.fence before; one must order the "
                   "writes of its registers before the first product");
    if (state.committed + 1 != group)
      thread.fault("thread " + Twine(id) + " has committed " +
                   Twine(state.committed) + " groups of products, thread " +
                   Twine(thread.id) + " of the same warpgroup " +
                   Twine(group - 1) +
                   "; all must execute the same wgmma.commit_group");
    state.hasUncommitted = true;
    state.groups[thread.site->op] = group;
  }
  return {entry->second, group};
}

void WarpgroupTable::commit(Thread &thread) {
  State &state = getState(thread);
  ++state.committed;
  state.hasUncommitted = false;
}

void WarpgroupTable::wait(Thread &thread, uint64_t pending) {
  State &state = getState(thread);
  if (pending == 0 && state.hasUncommitted)
    thread.fault("waits for all groups of products while some products are in "
                 "none; wgmma.commit_group must come before");
  if (pending >= state.committed)
    return;
  Moment complete = state.committed - static_cast<Moment>(pending);
  if (complete <= state.awaited)
    return;
  state.awaited = complete;
  auto agent = agents.find(thread.getWarpgroup());
  if (agent != agents.end())
    thread.known.advance(agent->second, complete);
}

void WarpgroupTable::checkComplete(Thread &thread, Operation *op,
                                   const char *uses) {
  State &state = getState(thread);
  auto found = state.groups.find(op);
  if (found == state.groups.end() || found->second <= state.awaited)
    return;
  Moment group = found->second;
  if (group > state.committed)
    thread.fault(Twine(uses) +
                 " a warpgroup product that is not committed; "
                 "wgmma.commit_group and wgmma.wait_group must come before");
  thread.fault(Twine(uses) + " a warpgroup product in flight: it is in group " +
               Twine(group) + " of " + Twine(state.committed) +
               ", of which the first " + Twine(state.awaited) +
               " were waited for; wgmma.wait_group " +
               Twine(state.committed - group) + " must come before");
}

void WarpgroupTable::useAccumulators(Thread &thread, Operation *op) {
  checkComplete(thread, op, "reads the result of");
}

void WarpgroupTable::writeA(Thread &thread, ArrayRef<Operation *> readers) {
  for (Operation *reader : readers)
    checkComplete(thread, reader, "writes registers of A of");
  State &state = getState(thread);
  state.writes[thread.site->op] = {state.fences, thread.site};
}

void WarpgroupTable::readA(Thread &thread, ArrayRef<Operation *> writers) {
  State &state = getState(thread);
  for (Operation *writer : writers) {
    auto found = state.writes.find(writer);
    if (found != state.writes.end() && found->second.fences == state.fences)
      thread.fault("reads registers of A that " +
                   Twine(found->second.site->text) +
                   " wrote after the last wgmma.fence; one must come between");
  }
}

uint64_t WarpgroupTable::countRegisters(unsigned number, unsigned count) const {
  uint64_t total = 0;
  unsigned threads = cta.cluster.launch.getThreads();
  for (size_t i = 0; i < registers.size(); ++i)
    total += static_cast<uint64_t>(i == number ? count : registers[i]) *
             std::min<uint64_t>(warpgroupSize, threads - i * warpgroupSize);
  return total;
}

void WarpgroupTable::setRegisters(Thread &thread, unsigned count,
                                  bool isIncrease) {
  unsigned number = thread.getWarpgroup();
  unsigned current =
      thread.registers ? thread.registers : cta.cluster.launch.maxRegisters;
  if (current != 0 && (isIncrease ? count < current : count > current))
    thread.fault((isIncrease ? "raises" : "lowers") +
                 Twine(" the registers of a thread to ") + Twine(count) +
                 ", which has " + Twine(current) + "; use setmaxnreg." +
                 (isIncrease ? "dec" : "inc"));
  thread.registers = count;
  const Launch &launch = cta.cluster.launch;
  if (launch.maxRegisters == 0)
    return;
  uint64_t pool =
      static_cast<uint64_t>(launch.maxRegisters) * launch.getThreads();
  // The first thread of the warpgroup takes them for all.
  while (registers[number] != count && countRegisters(number, count) > pool) {
    waitingForRegisters.push_back(&thread);
    thread.suspend([this, number, count, pool] {
      return "for registers: the warpgroup needs " +
             std::to_string(count * warpgroupSize) + ", the others hold " +
             std::to_string(countRegisters(number, 0)) + " of " +
             std::to_string(pool) + "; lower theirs by setmaxnreg.dec";
    });
  }
  if (registers[number] == count)
    return;
  bool isReleased = count < registers[number];
  registers[number] = count;
  if (isReleased)
    for (Thread *waiting : std::exchange(waitingForRegisters, {}))
      waiting->wake();
}

void useAccumulators(Thread &thread, Operation *wgmma) {
  WarpgroupTable::get(thread).useAccumulators(thread, wgmma);
}

void writeA(Thread &thread, ArrayRef<Operation *> readers) {
  WarpgroupTable::get(thread).writeA(thread, readers);
}

void readA(Thread &thread, ArrayRef<Operation *> writers) {
  WarpgroupTable::get(thread).readA(thread, writers);
}

} // namespace mlir::nm_sparse::emulator
