//===- NMTile.cpp - the nm_tile dialect for C -----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A file of its own: a host of the tensor level alone links nothing of this.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"
#include "mlir/CAPI/Registration.h"
#include "nm_sparse-c/Dialects.h"

MLIR_DEFINE_CAPI_DIALECT_REGISTRATION(NMTile, nm_tile,
                                      mlir::nm_sparse::NMTileDialect)
