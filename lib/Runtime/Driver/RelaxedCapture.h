//===- RelaxedCapture.h - What may be done beside a capture -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_RUNTIME_DRIVER_RELAXEDCAPTURE_H
#define NM_SPARSE_LIB_RUNTIME_DRIVER_RELAXEDCAPTURE_H

#include "Context.h"

namespace nms {

/// Lets the calling thread allocate, copy and load modules while it, or another
/// one, captures a graph. What it does here is no part of the graph.
class RelaxedCapture {
public:
  explicit RelaxedCapture(const Context &cu) : cu(cu) {
    if (cu->threadExchangeCaptureMode)
      (void)cu->threadExchangeCaptureMode(&mode);
  }
  ~RelaxedCapture() {
    if (cu->threadExchangeCaptureMode)
      (void)cu->threadExchangeCaptureMode(&mode);
  }
  RelaxedCapture(const RelaxedCapture &) = delete;
  RelaxedCapture &operator=(const RelaxedCapture &) = delete;

private:
  const Context &cu;
  int mode = cuda::captureRelaxed; // after the exchange: the former one
};

} // namespace nms

#endif // NM_SPARSE_LIB_RUNTIME_DRIVER_RELAXEDCAPTURE_H
