//===- Compile.h - what nm-compile does, as a function ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tool and the C interface (nm_sparse-c/Compiler.h) are this function with
// files and streams, or with memory, around it.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_COMPILE_COMPILE_H
#define NM_SPARSE_COMPILE_COMPILE_H

#include "nm_sparse/Compile/Host.h"
#include "llvm/ADT/ArrayRef.h"

namespace mlir::nm_sparse {

/// Runs `nm-compile ARGUMENTS` and returns its exit status: 0, 1 for a failed
/// compilation, 2 for wrong usage. Errors go to `host.err`, with the prefix
/// `nm-compile: `.
int runCompiler(llvm::ArrayRef<const char *> arguments,
                const CompileHost &host);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_COMPILE_COMPILE_H
