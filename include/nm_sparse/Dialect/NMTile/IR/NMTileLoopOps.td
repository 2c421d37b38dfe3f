//===- NMTileLoopOps.td - loops and roles of one CTA -------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMTILE_IR_NMTILELOOPOPS_TD
#define NM_SPARSE_DIALECT_NMTILE_IR_NMTILELOOPOPS_TD

include "mlir/IR/OpBase.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/LoopLikeInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "nm_sparse/Dialect/NMTile/IR/NMTileBase.td"

def NMTile_YieldOp : NMTile_Op<"yield",
    [Pure, ReturnLike, Terminator,
     ParentOneOf<["KLoopOp", "TileLoopOp", "WarpSpecializeOp"]>]> {
  let summary = "end of a loop's body or of a role";
  let description = [{
    Passes on what a loop carries. A role has no results.

    ```mlir
    nm_tile.yield %sum, %next : vector<64x128xf32>, !nm_tile.ring_position
    ```
  }];
  let arguments = (ins Variadic<AnyType>:$results);
  let builders = [OpBuilder<(ins), [{ /* nothing is passed on */ }]>];
  let assemblyFormat = "($results^ `:` type($results))? attr-dict";
}

/// A loop that counts from a lower bound in steps and carries values. It stays
/// a loop even for a single iteration: nothing moves the body out of it before
/// it is lowered.
class NMTile_LoopOp<string mnemonic, list<Trait> traits = []>
    : NMTile_Op<mnemonic, traits # [
        DeclareOpInterfaceMethods<LoopLikeOpInterface,
          ["getInitsMutable", "getLoopResults", "getRegionIterArgs",
           "getLoopInductionVars", "getLoopLowerBounds", "getLoopSteps",
           "getLoopUpperBounds", "getYieldedValuesMutable"]>,
        DeclareOpInterfaceMethods<RegionBranchOpInterface,
          ["getEntrySuccessorOperands"]>,
        SingleBlock, RecursiveMemoryEffects]> {
  let results = (outs Variadic<AnyType>:$results);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;

  code loopDeclaration = [{
    Value getInductionVar() { return getBody().getArgument(0); }
    void setLowerBound(Value bound) { getLowerBoundMutable().set(bound); }
    void setUpperBound(Value bound) { getUpperBoundMutable().set(bound); }
    void setStep(Value step) { getStepMutable().set(step); }

    /// The initial value of the ring position that the loop carries. Null if
    /// the loop uses no ring.
    OpOperand *getRingInit();
    BlockArgument getRingPosition();
    OpResult getRingResult();
  }];
}

def NMTile_KLoopOp : NMTile_LoopOp<"k_loop"> {
  let summary = "the K steps of a CTA's tile";
  let description = [{
    Its body is one K step of the product: first `nm_sparse.matmul` on slices,
    then copies of the operand tiles and `nm_tile.matmul`. It carries the sum: a
    tensor, then a vector. In a role it also carries the position in the ring,
    and a producer carries that alone.

    `stages` is the number of tiles of each operand among which copies and
    products take turns; `--nm-sparse-assign-stages` sets it.

    ```mlir
    %sum = nm_tile.k_loop %k = %c0 to %c128 step %c4 stages = 3
             iter_args(%acc = %zero) -> (vector<128x128xf32>) {
      nm_tile.async_copy ...
      %r = nm_tile.matmul ... acc(%acc : vector<128x128xf32>) -> vector<128x128xf32>
      nm_tile.yield %r : vector<128x128xf32>
    }
    ```
  }];
  let arguments = (ins Index:$lowerBound, Index:$upperBound, Index:$step,
                       Variadic<AnyType>:$initArgs,
                       OptionalAttr<I64Attr>:$stages);
  let builders = [OpBuilder<(ins "Value":$lowerBound, "Value":$upperBound,
                                 "Value":$step, "ValueRange":$initArgs,
                                 CArg<"IntegerAttr", "{}">:$stages)>];
  let extraClassDeclaration = loopDeclaration # [{
    /// The product of a K step, null where there is none, as in a producer.
    TileMatmulOp getProduct();
  }];
}

def NMTile_TileLoopOp : NMTile_LoopOp<"tile_loop"> {
  let summary = "the tiles of a CTA that stays on its SM";
  let description = [{
    What a role of a persistent CTA does for each of its tiles, which the
    induction variable numbers. It carries the position in the ring from one tile
    to the next, so that producers fill slots for the next tile while consumers
    write the one before.

    ```mlir
    %end = nm_tile.tile_loop %tile = %cta to %tiles step %ctas
             iter_args(%at = %begin) -> (!nm_tile.ring_position) {
      %sum, %next = nm_tile.k_loop ... iter_args(%acc = %zero, %here = %at) ...
      nm_tile.yield %next : !nm_tile.ring_position
    }
    ```
  }];
  let arguments = (ins Index:$lowerBound, Index:$upperBound, Index:$step,
                       Variadic<AnyType>:$initArgs);
  let builders = [OpBuilder<(ins "Value":$lowerBound, "Value":$upperBound,
                                 "Value":$step, "ValueRange":$initArgs)>];
  let extraClassDeclaration = loopDeclaration # [{
    /// The K loop of a tile; null unless there is one.
    KLoopOp getKLoop();
  }];
}

def NMTile_WarpSpecializeOp : NMTile_Op<"warp_specialize",
    [SingleBlockImplicitTerminator<"YieldOp">, RecursiveMemoryEffects,
     DeclareOpInterfaceMethods<RegionBranchOpInterface>]> {
  let summary = "warps that multiply, and warps that copy";
  let description = [{
    The first `consumers` threads of the CTA run the first region, the
    `producers` threads behind them the second. Both see what stands before the
    operation. With `registers`, a thread of a role keeps that many: the
    consumers take over what the producers leave.

    ```mlir
    nm_tile.warp_specialize consumers = 256 registers = 216 {
      ...
      nm_tile.role_barrier
    } producers = 128 registers = 72 {
      ...
    }
    ```
  }];
  let arguments = (ins I64Attr:$consumers, I64Attr:$producers,
                       OptionalAttr<I64Attr>:$consumer_registers,
                       OptionalAttr<I64Attr>:$producer_registers);
  let regions = (region SizedRegion<1>:$consumerBody,
                        SizedRegion<1>:$producerBody);
  let builders = [OpBuilder<(ins "int64_t":$consumers, "int64_t":$producers,
                                 "IntegerAttr":$consumer_registers,
                                 "IntegerAttr":$producer_registers)>];
  let skipDefaultBuilders = 1;
  let assemblyFormat = [{
    `consumers` `=` $consumers (`registers` `=` $consumer_registers^)?
    $consumerBody
    `producers` `=` $producers (`registers` `=` $producer_registers^)?
    $producerBody attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    Block *getConsumerBlock() { return &getConsumerBody().front(); }
    Block *getProducerBlock() { return &getProducerBody().front(); }
    /// Returns true if `op`, which is inside, belongs to the producers.
    bool isProducer(Operation *op) {
      return getProducerBody().isAncestor(op->getParentRegion());
    }
    /// Threads of the role that `op` belongs to.
    int64_t getRoleThreads(Operation *op) {
      return static_cast<int64_t>(isProducer(op) ? getProducers()
                                                 : getConsumers());
    }
  }];
}

def NMTile_RoleBarrierOp : NMTile_Op<"role_barrier"> {
  let summary = "a barrier of the threads of one role";
  let description = [{
    All threads of the role that it stands in arrive before one goes on; the
    other role has no part in it.

    ```mlir
    nm_tile.role_barrier
    ```
  }];
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
}

#endif // NM_SPARSE_DIALECT_NMTILE_IR_NMTILELOOPOPS_TD
