//===- NMTileRingOps.td - rings between producers and consumers *- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMTILE_IR_NMTILERINGOPS_TD
#define NM_SPARSE_DIALECT_NMTILE_IR_NMTILERINGOPS_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Dialect/LLVMIR/LLVMOpBase.td"
include "nm_sparse/Dialect/NMTile/IR/NMTileAttrs.td"

class NMTile_Type<string name, string typeMnemonic>
    : TypeDef<NMTile_Dialect, name> {
  let mnemonic = typeMnemonic;
}

def NMTile_RingType : NMTile_Type<"Ring", "ring"> {
  let summary = "slots that producers fill and consumers read in turn";
  let description = [{
    The number of slots, each of which has two mbarriers: `full`, on which
    producers arrive when its tiles are there, and `empty`, on which consumers
    arrive when they have read them. The tiles themselves are buffers of their
    own.

    ```mlir
    !nm_tile.ring<3>
    ```
  }];
  let parameters = (ins "int64_t":$slots);
  let assemblyFormat = "`<` $slots `>`";
  let genVerifyDecl = 1;
}

def NMTile_RingPositionType
    : NMTile_Type<"RingPosition", "ring_position"> {
  let summary = "where in a ring a role stands";
  let description = [{
    A slot, and how often the role has been around the ring. Loops carry it.

    ```mlir
    !nm_tile.ring_position
    ```
  }];
}

/// An operation of one role on the slot of a ring at a position.
class NMTile_RingAccessOp<string mnemonic, list<Trait> traits = []>
    : NMTile_Op<mnemonic, traits> {
  dag access = (ins NMTile_RingType:$ring, NMTile_RingPositionType:$position);
}

/// An operation that changes the state of a ring. It orders accesses of memory,
/// and is not moved.
class NMTile_RingEventOp<string mnemonic, list<Trait> traits = []>
    : NMTile_RingAccessOp<mnemonic,
        traits # [MemoryEffects<[MemRead, MemWrite]>]>;

def NMTile_RingOp : NMTile_Op<"ring", [MemoryEffects<[MemAlloc, MemWrite]>]> {
  let summary = "set up a ring between the roles of a CTA";
  let description = [{
    Allocates the mbarriers of the ring in shared memory and sets them up to
    expect the given arrivals; all threads of the CTA pass it together. Under
    `bulk` the tensor memory accelerator counts on them too. In a `cluster` of so
    many CTAs, all of which pass it together, a slot is empty when the consumers
    of each of them have read it, since producers copy for all.

    ```mlir
    %ring = nm_tile.ring full = 132 empty = 8 : !nm_tile.ring<3>
    ```
  }];
  let arguments = (ins I64Attr:$full, I64Attr:$empty,
                       OptionalAttr<I64Attr>:$cluster, UnitAttr:$bulk);
  let results = (outs NMTile_RingType:$ring);
  let assemblyFormat = [{
    `full` `=` $full `empty` `=` $empty (`cluster` `=` $cluster^)? (`bulk` $bulk^)? attr-dict `:` qualified(type($ring))
  }];
  let hasVerifier = 1;
}

def NMTile_RingBeginOp : NMTile_Op<"ring_begin", [Pure]> {
  let summary = "where a role begins in a ring";
  let description = [{
    The position of one who is to wait for `full` slots, or for `empty` ones,
    which all are at the start: at slot 0, or `at` one that is known at run time.

    ```mlir
    %begin = nm_tile.ring_begin full %ring : !nm_tile.ring<3>
    %turn = nm_tile.ring_begin empty %ring at %warp : !nm_tile.ring<8>
    ```
  }];
  let arguments = (ins NMTile_RingStateAttr:$state, NMTile_RingType:$ring,
                       Optional<Index>:$slot);
  let results = (outs NMTile_RingPositionType:$position);
  let assemblyFormat = [{
    $state $ring (`at` $slot^)? attr-dict `:` qualified(type($ring))
  }];
}

def NMTile_RingAdvanceOp : NMTile_RingAccessOp<"ring_advance", [Pure]> {
  let summary = "the position some steps further";
  let description = [{
    `steps` slots further, around the ring where that is needed.

    ```mlir
    %next = nm_tile.ring_advance %ring[%at] by 1 : !nm_tile.ring<3>
    ```
  }];
  let arguments = !con(access, (ins I64Attr:$steps));
  let results = (outs NMTile_RingPositionType:$next);
  let assemblyFormat = [{
    $ring `[` $position `]` `by` $steps attr-dict `:` qualified(type($ring))
  }];
  let hasVerifier = 1;
}

def NMTile_RingSlotOp : NMTile_Op<"ring_slot", [Pure]> {
  let summary = "the number of the slot at a position";
  let description = [{
    By it, each operand's tile of the slot is chosen.

    ```mlir
    %slot = nm_tile.ring_slot %at
    %tile = memref.subview %tiles[%slot, 0, 0] [1, 64, 128] [1, 1, 1] : ...
    ```
  }];
  let arguments = (ins NMTile_RingPositionType:$position);
  let results = (outs Index:$slot);
  let assemblyFormat = "$position attr-dict";
}

def NMTile_RingMBarrierOp : NMTile_RingAccessOp<"ring_mbarrier", [Pure]> {
  let summary = "an mbarrier of a slot";
  let description = [{
    For copies that arrive there themselves.

    ```mlir
    %m = nm_tile.ring_mbarrier full %ring[%at] : !nm_tile.ring<3> -> !llvm.ptr<3>
    ```
  }];
  let arguments = !con((ins NMTile_RingStateAttr:$state), access);
  let results = (outs LLVM_PointerInAddressSpace<3>:$mbarrier);
  let assemblyFormat = [{
    $state $ring `[` $position `]` attr-dict `:` qualified(type($ring)) `->` qualified(type($mbarrier))
  }];
}

def NMTile_RingWaitOp : NMTile_RingEventOp<"ring_wait"> {
  let summary = "wait until a slot is full, or empty";
  let description = [{
    Consumers wait for `full` slots, producers for `empty` ones.

    ```mlir
    nm_tile.ring_wait full %ring[%at] : !nm_tile.ring<3>
    ```
  }];
  let arguments = !con((ins NMTile_RingStateAttr:$state), access);
  let assemblyFormat = [{
    $state $ring `[` $position `]` attr-dict `:` qualified(type($ring))
  }];
  let hasVerifier = 1;
}

def NMTile_RingCommitOp : NMTile_RingEventOp<"ring_commit"> {
  let summary = "producers: the slot is full when these copies are done";
  let description = [{
    Each producer thread arrives on `full` when the copies that it has started
    are done, and goes on. With `stores`, each warp arrives as well, now: what
    it has stored is there.

    ```mlir
    nm_tile.ring_commit stores %ring[%at] : !nm_tile.ring<3>
    ```
  }];
  let arguments = !con(access, (ins UnitAttr:$stores));
  let assemblyFormat = [{
    (`stores` $stores^)? $ring `[` $position `]` attr-dict `:` qualified(type($ring))
  }];
  let hasVerifier = 1;
}

def NMTile_RingReleaseOp : NMTile_RingEventOp<"ring_release"> {
  let summary = "consumers: the slot has been read";
  let description = [{
    Each consumer warp arrives on `empty` when its lanes have read the tiles.

    Under `late` the product of this step stays in flight, and what has been read
    is the slot of the step before, if the K loop that the operation is in has
    made one. The wait for that product was the warp's, so that its lanes need
    no order, unless they read tiles themselves beside the product: `by_threads`.

    ```mlir
    nm_tile.ring_release late %ring[%at] : !nm_tile.ring<3>
    ```
  }];
  let arguments = !con(access, (ins UnitAttr:$late, UnitAttr:$by_threads));
  let assemblyFormat = [{
    (`late` $late^)? (`by_threads` $by_threads^)? $ring `[` $position `]` attr-dict `:` qualified(type($ring))
  }];
  let hasVerifier = 1;
}

def NMTile_RingDrainOp : NMTile_RingEventOp<"ring_drain"> {
  let summary = "consumers: the products of a tile are over";
  let description = [{
    The end of a tile whose products stay in flight: waits for the last one,
    behind the K loop that ended at `position`. Where producers go on to another
    tile, and `release` holds, which says that there was a product, the slot
    before `position` has then been read; `by_threads` as in `ring_release`.

    ```mlir
    nm_tile.ring_drain %ring[%end] release(%any) : !nm_tile.ring<3>
    ```
  }];
  let arguments = !con(access, (ins Optional<I1>:$release, UnitAttr:$by_threads));
  let assemblyFormat = [{
    (`by_threads` $by_threads^)? $ring `[` $position `]` (`release` `(` $release^ `)`)? attr-dict
    `:` qualified(type($ring))
  }];
  let hasVerifier = 1;
}

#endif // NM_SPARSE_DIALECT_NMTILE_IR_NMTILERINGOPS_TD
