//===- NMTileAttrs.td - attributes of the nm_tile dialect --*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMTILE_IR_NMTILEATTRS_TD
#define NM_SPARSE_DIALECT_NMTILE_IR_NMTILEATTRS_TD

include "mlir/IR/EnumAttr.td"
include "nm_sparse/Dialect/NMTile/IR/Accumulator.td"
include "nm_sparse/Dialect/NMTile/IR/NMTileBase.td"
include "nm_sparse/Dialect/NMTile/IR/Schedule.td"

def NMTile_RingState : I32EnumAttr<"RingState", "what one waits for of a slot", [
    I32EnumAttrCase<"Full", 0, "full">,
    I32EnumAttrCase<"Empty", 1, "empty">]> {
  let cppNamespace = "::mlir::nm_sparse";
  let genSpecializedAttr = 0;
}
def NMTile_RingStateAttr
    : EnumAttr<NMTile_Dialect, NMTile_RingState, "ring_state">;

def NMTile_TileLayout : I32EnumAttr<"TileLayout",
    "how the elements of a tile lie in shared memory", [
    I32EnumAttrCase<"Rows", 0, "rows">,
    I32EnumAttrCase<"SwizzledRows", 1, "swizzled_rows">,
    I32EnumAttrCase<"SwizzledBlocks", 2, "swizzled_blocks">,
    I32EnumAttrCase<"ColumnBlocks", 3, "column_blocks">,
    I32EnumAttrCase<"SegmentLines", 4, "segment_lines">,
    I32EnumAttrCase<"CoreMatrices", 5, "core_matrices">]> {
  let cppNamespace = "::mlir::nm_sparse";
  let genSpecializedAttr = 0;
}

def NMTile_SharedAttr : NMTile_Attr<"Shared", "shared"> {
  let summary = "shared memory in which a tile lies in the order of a layout";
  let description = [{
    The memory space of a tile whose elements are not row after row; that is what
    `#gpu.address_space<workgroup>` says. Promotion chooses it once: copies,
    products and pipelines read it from the type.

    | layout | tiles | order |
    |---|---|---|
    | `swizzled_rows` | rank 2, rows of whole lines of 128 bytes | row after row, the 16-byte words of each in the order `word ^ (row % 8)`, so that eight rows of one column lie in different banks |
    | `swizzled_blocks` | as `swizzled_rows` | blocks of columns that fill a line, one after the other, each as `swizzled_rows`: what products of warpgroups read, and what the tensor memory accelerator writes; starts at a multiple of 1024 bytes |
    | `column_blocks` | rank 3 | blocks of the last dimension, as many elements as a box of a tensor map holds, one after the other, each row by row |
    | `segment_lines` | values of bitmaps | a line of 128 bytes for each tile, each segment of it, and each block, ordered by the pieces of a segment, pairs of blocks of outputs, and 8 outputs of these; the words of a line, an output each, in the order `word ^ (line % 8)`, so that the segments of four lanes lie in different banks; starts as `swizzled_blocks` does |
    | `core_matrices` | values of bitmaps | each tile along the contraction holds, for each 16 bytes of an output, those of all outputs one after the other; eight of them are a core matrix of a warpgroup product |

    ```mlir
    memref<64x256xf16, #nm_tile.shared<swizzled_blocks>>
    ```
  }];
  let parameters = (ins EnumParameter<NMTile_TileLayout>:$layout);
  let assemblyFormat = "`<` $layout `>`";
  let genVerifyDecl = 1;
}

#endif // NM_SPARSE_DIALECT_NMTILE_IR_NMTILEATTRS_TD
