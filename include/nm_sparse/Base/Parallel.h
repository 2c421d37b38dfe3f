//===- Parallel.h - Loops over the cores ------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_BASE_PARALLEL_H
#define NM_SPARSE_BASE_PARALLEL_H

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <system_error>
#include <thread>
#include <vector>

namespace nms {

/// Cores to use: NM_SPARSE_THREADS when it is a positive number, else those of
/// the machine, at most 16.
inline int64_t threadCount() {
  if (const char *text = getenv("NM_SPARSE_THREADS")) {
    long value = strtol(text, nullptr, 10);
    if (value > 0)
      return std::min<long>(value, 256);
  }
  return std::clamp<int64_t>(std::thread::hardware_concurrency(), 1, 16);
}

/// Calls `body(task)` for 0 <= task < tasks, on several threads, in any order.
template <typename Body>
void parallelTasks(int64_t tasks, Body body) {
  std::atomic<int64_t> next{0};
  auto work = [&] {
    for (int64_t task; (task = next.fetch_add(1)) < tasks;)
      body(task);
  };
  std::vector<std::thread> helpers;
  int64_t wanted = std::min(threadCount(), tasks) - 1;
  try {
    for (int64_t i = 0; i < wanted; ++i)
      helpers.emplace_back(work);
  } catch (const std::system_error &) { // NOLINT(bugprone-empty-catch)
    // Fewer threads than wanted only make it slower.
  }
  work();
  for (std::thread &helper : helpers)
    helper.join();
}

/// Calls `body(begin, end)` for consecutive pieces of 0..count.
template <typename Body>
void parallelChunks(int64_t count, int64_t chunk, Body body) {
  parallelTasks((count + chunk - 1) / chunk, [&](int64_t task) {
    body(task * chunk, std::min(count, (task + 1) * chunk));
  });
}

/// Calls `run(task)` for 0 <= task < count, on several threads in chunks, where
/// `run` is what `makeRun()` returns, anew for each chunk: it may hold memory
/// of its own. A run fails by returning other than 0. Returns what the first
/// failing task does.
template <typename MakeRun>
int runChunksUntilFailure(int64_t count, int64_t chunk, MakeRun makeRun) {
  std::atomic<int64_t> failed{count};
  parallelChunks(count, chunk, [&](int64_t begin, int64_t end) {
    auto run = makeRun();
    for (int64_t task = begin; task < std::min<int64_t>(end, failed); ++task) {
      if (!run(task))
        continue;
      for (int64_t known = failed;
           task < known && !failed.compare_exchange_weak(known, task);) {
      }
    }
  });
  // A reason stays with the thread that recorded it: find it again on this one.
  return failed < count ? makeRun()(failed) : 0;
}

/// The same with one `run` for all tasks.
template <typename Run>
int runUntilFailure(int64_t count, int64_t chunk, Run run) {
  return runChunksUntilFailure(
      count, chunk, [&] { return [&](int64_t task) { return run(task); }; });
}

} // namespace nms

#endif // NM_SPARSE_BASE_PARALLEL_H
