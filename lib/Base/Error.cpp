//===- Error.cpp - The last failure of a thread ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The sentence lives in a plain thread-local buffer: it needs no destructor, so
// a failure in a static destructor of the host can still be reported.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Base/Fail.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace {

constexpr size_t maxMessage = 6144;
thread_local char lastError[maxMessage];

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

extern "C" const char *nmsLastError() { return lastError; }

extern "C" void nmsSetLastError(const char *message) {
  nms::fail("%s", message);
}

extern "C" void nmsClearError() { lastError[0] = '\0'; }
