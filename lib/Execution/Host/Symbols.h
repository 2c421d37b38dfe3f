//===- Symbols.h - what compiled host code may call -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EXECUTION_HOST_SYMBOLS_H
#define NM_SPARSE_LIB_EXECUTION_HOST_SYMBOLS_H

#include "llvm/ExecutionEngine/Orc/Mangling.h"

template <typename T>
struct UnrankedMemRefType;

namespace mlir::nm_sparse {

/// The runtime's entry points, poisoning allocators, and conversions of small
/// floats that the C++ runtime of the machine may lack.
llvm::orc::SymbolMap getRuntimeSymbols(llvm::orc::MangleAndInterner mangle);

/// The function that upstream's lowering of memref.copy calls for buffers with
/// gaps, under the name `memrefCopy`. Their shapes are the same.
void copyMemRef(int64_t elementBytes, ::UnrankedMemRefType<char> *from,
                ::UnrankedMemRefType<char> *to);

/// Returns true if `pointer` came from the allocator of compiled code and was
/// not freed.
bool ownsAllocation(void *pointer);
void releaseAllocation(void *pointer);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_EXECUTION_HOST_SYMBOLS_H
