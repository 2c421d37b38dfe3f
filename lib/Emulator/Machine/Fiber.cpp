//===- Fiber.cpp - Boost.Context ------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Machine/Fiber.h"

#include <boost/context/fiber.hpp>
#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>
#include <unistd.h>

using namespace mlir::nm_sparse::emulator;
namespace context = boost::context;

static size_t getPageBytes() { return sysconf(_SC_PAGESIZE); }

StackPool::StackPool(size_t count, size_t wanted) : count(count) {
  size_t page = getPageBytes();
  bytes = (wanted + page - 1) / page * page;
  stride = bytes + page;
  void *memory = mmap(nullptr, count * stride, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("emulator: no memory for the stacks of a block's threads");
    std::abort();
  }
  base = static_cast<char *>(memory);
  for (size_t i = 0; i < count; ++i)
    mprotect(base + i * stride, page, PROT_NONE);
}

StackPool::~StackPool() { munmap(base, count * stride); }

char *StackPool::getStack(size_t index) const {
  return base + index * stride + (stride - bytes);
}

namespace {

/// The pool owns the memory.
struct Borrowed {
  void deallocate(context::stack_context &) noexcept {}
};

} // namespace

struct Fiber::State {
  std::function<void()> function;
  context::fiber inside, outside;
};

Fiber::Fiber(char *stack, size_t stackBytes, std::function<void()> function)
    : state(std::make_unique<State>()) {
  State *raw = state.get();
  raw->function = std::move(function);
  context::stack_context where;
  where.size = stackBytes;
  where.sp = stack + stackBytes;
  raw->inside = context::fiber(
      std::allocator_arg, context::preallocated(where.sp, stackBytes, where),
      Borrowed(), [raw](context::fiber &&outside) {
        raw->outside = std::move(outside);
        raw->function();
        return std::move(raw->outside);
      });
}

Fiber::~Fiber() {
  if (!state || !state->inside)
    return;
  // Destroying this object would unwind the stack by an exception.
  alignas(context::fiber) char never[sizeof(context::fiber)];
  new (never) context::fiber(std::move(state->inside));
}

void Fiber::resume() { state->inside = std::move(state->inside).resume(); }

void Fiber::suspend() { state->outside = std::move(state->outside).resume(); }

bool Fiber::hasEnded() const { return !state->inside; }
