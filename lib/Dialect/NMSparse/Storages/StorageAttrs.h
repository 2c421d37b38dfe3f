//===- StorageAttrs.h - the attributes of storages --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Those of all folders that are built. A storage knows its own alone.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_DIALECT_NMSPARSE_STORAGES_STORAGEATTRS_H
#define NM_SPARSE_LIB_DIALECT_NMSPARSE_STORAGES_STORAGEATTRS_H

#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"

#define GET_ATTRDEF_CLASSES
#include "Dialect/NMSparse/Storages/StorageAttrs.h.inc"

#endif // NM_SPARSE_LIB_DIALECT_NMSPARSE_STORAGES_STORAGEATTRS_H
