//===- TransferAttrs.h - attributes of all transfers ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_TRANSFERS_TRANSFERATTRS_H
#define NM_SPARSE_LIB_TRANSFERS_TRANSFERATTRS_H

#include "nm_sparse/Dialect/NMTile/IR/Schedule.h"

#define GET_ATTRDEF_CLASSES
#include "Transfers/TransferAttrs.h.inc"

#endif // NM_SPARSE_LIB_TRANSFERS_TRANSFERATTRS_H
