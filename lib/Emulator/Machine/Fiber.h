//===- Fiber.h - a thread of a kernel as a coroutine ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Boost.Context behind an interface without exceptions, which the rest of the
// project is compiled without.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EMULATOR_MACHINE_FIBER_H
#define NM_SPARSE_LIB_EMULATOR_MACHINE_FIBER_H

#include <cstddef>
#include <functional>
#include <memory>

namespace mlir::nm_sparse::emulator {

/// Equally large stacks in one mapping, each above a page that must not be
/// touched.
class StackPool {
public:
  StackPool(size_t count, size_t bytes);
  ~StackPool();
  StackPool(const StackPool &) = delete;
  StackPool &operator=(const StackPool &) = delete;

  size_t getStackBytes() const { return bytes; }
  /// The lowest address of stack `index`.
  char *getStack(size_t index) const;

private:
  char *base;
  size_t count, bytes, stride;
};

/// A function that runs on a stack of its own and can stop in its middle.
/// Resumed and destroyed by one thread of the host.
class Fiber {
public:
  /// Nothing runs before the first resume(). `stack` outlives the fiber.
  Fiber(char *stack, size_t stackBytes, std::function<void()> function);
  /// A fiber that has not ended is abandoned: nothing on its stack is
  /// destroyed, so compiled frames need no unwind tables.
  ~Fiber();

  /// Runs it until it suspends or ends. Called from outside.
  void resume();
  /// Goes back to who resumed. Called from inside.
  void suspend();
  bool hasEnded() const;

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace mlir::nm_sparse::emulator

#endif // NM_SPARSE_LIB_EMULATOR_MACHINE_FIBER_H
