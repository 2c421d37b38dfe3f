//===- NMTileBulkOps.td - tensor memory accelerator --------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMTILE_IR_NMTILEBULKOPS_TD
#define NM_SPARSE_DIALECT_NMTILE_IR_NMTILEBULKOPS_TD

include "mlir/IR/OpBase.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Dialect/LLVMIR/LLVMOpBase.td"
include "mlir/Dialect/NVGPU/IR/NVGPUTypes.td"
include "nm_sparse/Dialect/NMSparse/IR/NMSparseAttrs.td"
include "nm_sparse/Dialect/NMTile/IR/NMTileBase.td"

def NMTile_BulkCopyOp : NMTile_Op<"bulk_copy",
    [AttrSizedOperandSegments, DestinationStyleOpInterface,
     DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "start to copy a box of a tensor map into workgroup memory";
  let description = [{
    The first thread of the CTA, or of the `threads = [first, count]` of it, arrives
    on `mbarrier`, announces the bytes of `dst` there, and lets the tensor memory
    accelerator copy `dst` from the global tensor that `map` describes, from
    `coordinates` on. What lies outside the tensor arrives as zeros. Each box of
    the map holds all rows and 64 columns of `dst`, which is stored as
    `TileLayout::SwizzledBlocks`: the swizzle of the map is that of the products.
    A `dst` of rank 3, a component of bitmaps, comes in boxes of
    `getColumnBlock(dst)` elements of its last dimension, without swizzle, and is
    stored as `TileLayout::ColumnBlocks`.

    With `multicast`, the CTAs of a cluster of so many all copy the same `dst`:
    each a part of its rows, from its own shared memory's place of it, into the
    shared memory of all. A box of the map is then a part of the rows.

    With `within(%n by %parts)`, without multicast, the tensor has `n` rows, and those
    of `dst` that are outside of it are not wanted. Where there are such rows, the boxes
    are those of `parts`, a map of fewer rows, and a box of nothing else holds the first
    rows of the tensor: zeros from outside take the accelerator longer.

    With `patches`, token-major ones of an image whose rows, columns and channels are
    `image`, `map` is an im2col map of it. The coordinates are a token and a row of the
    matrix of these patches, and what is outside of the matrix arrives as zeros, too. The
    lines of `dst` are whole channels of one place of the kernel.

    ```mlir
    nm_tile.bulk_copy threads = [256, 128]
      ins(%map[%k, %n] : !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, ...>)
      outs(%dst : memref<64x256xf16, #gpu.address_space<workgroup>>)
      mbarrier(%full : !llvm.ptr<3>)
    ```
  }];
  let arguments = (ins NVGPU_TensorMapDescriptor:$map,
                       Variadic<Index>:$coordinates, AnyMemRef:$dst,
                       Optional<LLVM_AnyPointer>:$mbarrier,
                       Optional<Index>:$within,
                       Optional<NVGPU_TensorMapDescriptor>:$parts,
                       OptionalAttr<DenseI64ArrayAttr>:$threads,
                       OptionalAttr<DenseI64ArrayAttr>:$boxes,
                       OptionalAttr<I64Attr>:$multicast,
                       OptionalAttr<NMSparse_PatchesAttr>:$patches,
                       OptionalAttr<DenseI64ArrayAttr>:$image);
  let assemblyFormat = [{
    (`threads` `=` $threads^)? (`boxes` `=` $boxes^)?
    (`multicast` `=` $multicast^)? (`patches` `=` $patches^)?
    (`image` `=` $image^)?
    `ins` `(` $map `[` $coordinates `]` `:` type($map) `)`
    `outs` `(` $dst `:` type($dst) `)`
    (`mbarrier` `(` $mbarrier^ `:` type($mbarrier) `)`)?
    (`within` `(` $within^ `by` $parts `:` type($parts) `)`)? attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    MutableOperandRange getDpsInitsMutable() { return getDstMutable(); }
    /// Bytes that arrive, from all CTAs and those outside the tensor too.
    int64_t getBytes();
    /// How many boxes of the map it copies along each of its dimensions.
    SmallVector<int64_t> getBoxCounts();
  }];
}

#endif // NM_SPARSE_DIALECT_NMTILE_IR_NMTILEBULKOPS_TD
