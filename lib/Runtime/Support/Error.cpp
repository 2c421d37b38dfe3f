//===- Error.cpp - Error policy -------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ErrorState.h"

#include <cstdio>
#include <cstdlib>
#include <mutex>

namespace {

struct Policy {
  std::mutex mutex;
  NmsErrorHandler handler = nullptr;
  void *userData = nullptr;
};

Policy &policy() {
  static Policy *instance = new Policy;
  return *instance;
}

thread_local NmsErrorHandler threadHandler = nullptr;
thread_local void *threadUserData = nullptr;

} // namespace

void nms::raise() {
  if (threadHandler)
    return threadHandler(nmsLastError(), threadUserData);
  NmsErrorHandler handler;
  void *userData;
  {
    std::lock_guard<std::mutex> lock(policy().mutex);
    handler = policy().handler;
    userData = policy().userData;
  }
  if (handler)
    return handler(nmsLastError(), userData);
  fprintf(stderr, "nm_sparse: error: %s\n", nmsLastError());
  // The failing call may sit in a static constructor of compiled host code,
  // where exit() would run destructors of a half-initialized program.
  fflush(nullptr);
  _Exit(1);
}

extern "C" void nmsSetThreadErrorHandler(NmsErrorHandler handler,
                                         void *userData) {
  threadHandler = handler;
  threadUserData = userData;
}

extern "C" void nmsSetErrorHandler(NmsErrorHandler handler, void *userData) {
  std::lock_guard<std::mutex> lock(policy().mutex);
  policy().handler = handler;
  policy().userData = userData;
}
