//===- OpenCublas.h - Finding the libraries of cuBLAS -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_RUNTIME_VENDOR_OPENCUBLAS_H
#define NM_SPARSE_LIB_RUNTIME_VENDOR_OPENCUBLAS_H

#include <string>

namespace nms::cublas {

/// A library, or why there is none.
struct OpenedLibrary {
  void *handle = nullptr;
  std::string error;
};

/// Opens a library that comes with cuBLAS: `stem` is libcublas or libcublasLt,
/// and `title` its name in errors. Looks at NM_SPARSE_CUBLAS (a file or a
/// folder), the loader's path, the folders of LD_LIBRARY_PATH as it is now, and
/// CUDA_HOME.
OpenedLibrary openLibrary(const char *stem, const char *title);

} // namespace nms::cublas

#endif // NM_SPARSE_LIB_RUNTIME_VENDOR_OPENCUBLAS_H
