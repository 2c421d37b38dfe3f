//===- Error.cpp - Error state and policy ---------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The sentence lives in a plain thread-local buffer: it needs no destructor, so
// a failure in a static destructor of the host can still be reported.
//
//===----------------------------------------------------------------------===//

#include "ErrorState.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

namespace {

constexpr size_t maxMessage = 6144;
thread_local char lastError[maxMessage];

struct Policy {
  std::mutex mutex;
  NmsErrorHandler handler = nullptr;
  void *userData = nullptr;
};

Policy &policy() {
  static Policy *instance = new Policy;
  return *instance;
}

} // namespace

int nms::fail(const char *format, ...) {
  char text[maxMessage];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  memcpy(lastError, text, strlen(text) + 1);
  return 1;
}

void nms::raise() {
  NmsErrorHandler handler;
  void *userData;
  {
    std::lock_guard<std::mutex> lock(policy().mutex);
    handler = policy().handler;
    userData = policy().userData;
  }
  if (handler)
    return handler(lastError, userData);
  fprintf(stderr, "nm_sparse: error: %s\n", lastError);
  // The failing call may sit in a static constructor of compiled host code,
  // where exit() would run destructors of a half-initialized program.
  fflush(nullptr);
  _Exit(1);
}

extern "C" const char *nmsLastError() { return lastError; }

extern "C" void nmsSetLastError(const char *message) {
  nms::fail("%s", message);
}

extern "C" void nmsClearError() { lastError[0] = '\0'; }

extern "C" void nmsSetErrorHandler(NmsErrorHandler handler, void *userData) {
  std::lock_guard<std::mutex> lock(policy().mutex);
  policy().handler = handler;
  policy().userData = userData;
}
