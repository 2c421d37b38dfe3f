//===- linear_ffi.cpp - a sparse layer as a call of XLA -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Around the functions that `nm-compile linear.mlir --emit c` writes. XLA gives
// the stream and the buffers; the layer launches its kernels there.
//
//===----------------------------------------------------------------------===//

#include "linear.h"
#include "xla/ffi/api/ffi.h"

#include <string>

namespace ffi = xla::ffi;

static ffi::Error launch(CUstream stream, ffi::Buffer<ffi::F16> x,
                         ffi::AnyBuffer values, ffi::AnyBuffer bits,
                         ffi::ResultBuffer<ffi::F32> y) {
  int status =
      linear(stream, x.untyped_data(), values.untyped_data(),
             bits.untyped_data(), y->untyped_data(), x.dimensions().front());
  if (status == CUDA_SUCCESS)
    return ffi::Error::Success();
  return ffi::Error::Internal("linear gives CUresult " +
                              std::to_string(status));
}

// Calls may be part of a CUDA graph of XLA.
XLA_FFI_DEFINE_HANDLER_SYMBOL(Linear, launch,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::PlatformStream<CUstream>>()
                                  .Arg<ffi::Buffer<ffi::F16>>()
                                  .Arg<ffi::AnyBuffer>()
                                  .Arg<ffi::AnyBuffer>()
                                  .Ret<ffi::Buffer<ffi::F32>>(),
                              {ffi::Traits::kCmdBufferCompatible});
