//===- KernelSymbols.h - what a module says of its kernels ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A PTX module or a cubin holds code and symbols, and hosts may load it without
// our manifest. So what a launch has to know of a kernel is a symbol beside it:
// the compiler defines it, any host may look for it, and no other one is part
// of the contract between them.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_BASE_KERNELSYMBOLS_H
#define NM_SPARSE_BASE_KERNELSYMBOLS_H

#include <string>

namespace nms {

/// Returns the name of a byte of global memory with the value 1. It exists if
/// `kernel` itself waits, by griddepcontrol.wait, for the kernels ahead of it
/// in its stream before it accesses global memory. The kernel may then be
/// launched while they still run, with
/// CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION; without the symbol it
/// must not. A host that ignores the symbol loses time, nothing else.
inline std::string getWaitsSymbol(const std::string &kernel) {
  return kernel + "_waits";
}

} // namespace nms

#endif // NM_SPARSE_BASE_KERNELSYMBOLS_H
