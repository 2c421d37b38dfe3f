//===- Passes.h - registration of the passes for hosts ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_HOSTS_PASSES_H
#define NM_SPARSE_HOSTS_PASSES_H

#include "mlir/Pass/Pass.h"

namespace mlir::nm_sparse {

#define GEN_PASS_DECL
#include "nm_sparse/Hosts/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "nm_sparse/Hosts/Passes.h.inc"

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_HOSTS_PASSES_H
