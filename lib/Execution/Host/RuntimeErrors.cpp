//===- RuntimeErrors.cpp - failures of the runtime as errors --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Host/RuntimeErrors.h"

#include "nm_sparse/Runtime/Error.h"
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <utility>

using namespace mlir::nm_sparse;

static thread_local RuntimeErrors *current = nullptr;

void RuntimeErrors::collect(const char *message, void *) {
  if (!current) {
    // As without a handler.
    std::fprintf(stderr, "nm_sparse: error: %s\n", message);
    std::fflush(nullptr);
    std::_Exit(1);
  }
  if (current->first.empty())
    current->first = message;
}

RuntimeErrors::RuntimeErrors() : outer(std::exchange(current, this)) {
  static std::once_flag installed;
  std::call_once(installed, [] { nmsSetErrorHandler(collect, nullptr); });
}

RuntimeErrors::~RuntimeErrors() { current = outer; }

llvm::Error RuntimeErrors::take() {
  std::string message = std::exchange(first, "");
  return message.empty() ? llvm::Error::success()
                         : llvm::createStringError(message);
}
