//===- Products.td - the products of this compiler ---------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_PRODUCTS_PRODUCTS_TD
#define NM_SPARSE_PRODUCTS_PRODUCTS_TD

include "nm_sparse/Products/Dot/Dot.td"
include "nm_sparse/Products/PanelDot/PanelDot.td"
include "nm_sparse/Products/Simt/Simt.td"
include "nm_sparse/Products/Mma/Mma.td"
include "nm_sparse/Products/Wgmma/Wgmma.td"
include "nm_sparse/Products/WgmmaExpand/WgmmaExpand.td"
include "nm_sparse/Products/WgmmaSp/WgmmaSp.td"
include "nm_sparse/Products/MmaExpand/MmaExpand.td"
include "nm_sparse/Products/MmaSp/MmaSp.td"
include "nm_sparse/Products/Immediate/Immediate.td"

#endif // NM_SPARSE_PRODUCTS_PRODUCTS_TD
