//===- NMTileBase.td - the nm_tile dialect -----------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMTILE_IR_NMTILEBASE_TD
#define NM_SPARSE_DIALECT_NMTILE_IR_NMTILEBASE_TD

include "mlir/IR/DialectBase.td"
include "mlir/IR/OpBase.td"

def NMTile_Dialect : Dialect {
  let name = "nm_tile";
  let cppNamespace = "::mlir::nm_sparse";
  let summary = "the tiles of one CTA of an N:M-sparse product";
  let description = [{
    What one CTA of a sparse product does with its tiles: transfers of operand
    tiles to shared memory (`async_copy`, `async_gather`, `bulk_copy`), the
    product of one K step (`matmul`), and requests to L2 (`prefetch`). The
    schedule of the product says how the threads of the CTA share the work.

    Around them, the structure of the kernel: the K loop (`k_loop`), the loop over
    tiles of a CTA that stays on its SM (`tile_loop`), producers and consumers
    (`warp_specialize`), and the ring of slots through which tiles go from one to
    the other (`ring` and what begins with `ring_`). Passes find it by these
    operations and their operands, until `--nm-sparse-lower-roles` makes mbarriers
    and `scf` of it. No discardable attribute means anything here.

    The operations come from `nm_sparse.matmul` and leave as one thread's code in
    `nvgpu`, `nvvm`, `vector`, `memref` and `arith`.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let dependentDialects = ["::mlir::LLVM::LLVMDialect",
                           "::mlir::nm_sparse::NMSparseDialect",
                           "::mlir::nvgpu::NVGPUDialect"];
}

class NMTile_Op<string mnemonic, list<Trait> traits = []>
    : Op<NMTile_Dialect, mnemonic, traits>;

#endif // NM_SPARSE_DIALECT_NMTILE_IR_NMTILEBASE_TD
