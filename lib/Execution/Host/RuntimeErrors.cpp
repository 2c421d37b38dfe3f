//===- RuntimeErrors.cpp - failures of the runtime as errors --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Host/RuntimeErrors.h"

#include "nm_sparse/Runtime/Error.h"
#include <utility>

using namespace mlir::nm_sparse;

static thread_local RuntimeErrors *current = nullptr;

void RuntimeErrors::collect(const char *message, void *scope) {
  std::string &first = static_cast<RuntimeErrors *>(scope)->first;
  if (first.empty())
    first = message;
}

RuntimeErrors::RuntimeErrors() : outer(std::exchange(current, this)) {
  nmsSetThreadErrorHandler(collect, this);
}

RuntimeErrors::~RuntimeErrors() {
  current = outer;
  nmsSetThreadErrorHandler(outer ? collect : nullptr, outer);
}

llvm::Error RuntimeErrors::take() {
  std::string message = std::exchange(first, "");
  return message.empty() ? llvm::Error::success()
                         : llvm::createStringError(message);
}
