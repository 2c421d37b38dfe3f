//===- Symbols.h - Functions of an opened library ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// NVIDIA's libraries are opened while the program runs, and one that is too old
// lacks some functions: an error names the first.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_RUNTIME_DRIVER_SYMBOLS_H
#define NM_SPARSE_LIB_RUNTIME_DRIVER_SYMBOLS_H

#include <dlfcn.h>

namespace nms {

class Symbols {
public:
  /// The handle that dlopen returned.
  explicit Symbols(void *library) : library(library) {}

  /// A function that may be missing: null then.
  template <typename Fn>
  void bind(Fn &slot, const char *symbol) {
    slot = reinterpret_cast<Fn>(dlsym(library, symbol));
  }

  /// A function that must be there.
  template <typename Fn>
  void require(Fn &slot, const char *symbol) {
    bind(slot, symbol);
    if (!slot && !missing)
      missing = symbol;
  }

  /// The first required one that is missing; null when there is none.
  const char *getMissing() const { return missing; }

private:
  void *library;
  const char *missing = nullptr;
};

} // namespace nms

#endif // NM_SPARSE_LIB_RUNTIME_DRIVER_SYMBOLS_H
