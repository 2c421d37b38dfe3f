//===- NMSparseAttrs.td - encoding and schedule attributes -*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_ATTRS_TD
#define NM_SPARSE_ATTRS_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/TensorEncoding.td"
include "nm_sparse/Dialect/NMSparse/IR/NMSparseBase.td"
include "nm_sparse/Dialect/NMSparse/IR/WeightStorage.td"

class NMSparse_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<NMSparse_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

//===----------------------------------------------------------------------===//
// Encoding
//===----------------------------------------------------------------------===//

def NMSparse_Order : I32EnumAttr<"OutputOrder",
    "which outputs share a panel", [
      I32EnumAttrCase<"Identity", 0, "identity">,
      I32EnumAttrCase<"Shuffled", 1, "shuffled">]> {
  let cppNamespace = "::mlir::nm_sparse";
  let genSpecializedAttr = 0;
}

def NMSparse_EncodingAttr : NMSparse_Attr<"Encoding", "encoding",
    [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>,
     DeclareAttrInterfaceMethods<NMSparse_WeightStorageInterface>]> {
  let summary = "sparsity pattern of a weight tensor";
  let description = [{
    Says which elements of a weight may be nonzero: granularity x distribution
    x order.

    * `n:m`: at most `n` of every `m` consecutive blocks along the contraction
      dimension are kept, separately in each panel of `bn` outputs. `free`
      instead of `n:m`: each panel keeps a count of its own.
    * `block = [bk, bn]`: the unit that is kept or dropped, `bk` along the
      contraction dimension and `bn` along the output dimension. `[1, 1]`
      (default) is element-wise, `[1, L]` vector-wise.
    * `dim`: the contraction dimension of the tensor, one of its last two; the
      other one of these is the output dimension, and a leading third dimension
      is a batch. Default 0 (a `KxN` weight); 1 is PyTorch's `NxK`.
    * `order`: `identity` (default), or `shuffled`: a permutation of the outputs
      is stored beside the values.

    Two levels, each in brackets: the inner one says which of the rows that the
    outer one keeps are nonzero. Its blocks must divide those of the outer one,
    and one of its windows is exactly what the outer level keeps of one of its
    windows, so that both can be chosen window by window.

    The last window and the last panel may be partial. Elements are f32, f16,
    bf16, f8E4M3FN, f8E5M2 or i8.

    ```mlir
    #w = #nm_sparse.encoding<8:32, block = [1, 128]>
    tensor<4096x4096xf16, #w>

    // V:N:M: 64 outputs share 4 rows of every 10, each output uses 2 of them.
    #v = #nm_sparse.encoding<[4:10, block = [1, 64]], [2:4]>
    ```
  }];
  let parameters = (ins
    ArrayRefParameter<"::mlir::nm_sparse::SparsityLevel">:$levels,
    "int64_t":$dim,
    "::mlir::nm_sparse::OutputOrder":$order
  );
  // Of one level.
  let builders = [AttrBuilder<(ins "int64_t":$n, "int64_t":$m,
      "int64_t":$blockK, "int64_t":$blockN, "int64_t":$dim,
      "::mlir::nm_sparse::OutputOrder":$order), [{
    ::mlir::nm_sparse::SparsityLevel level{n, m, blockK, blockN};
    return $_get($_ctxt, ::llvm::ArrayRef(level), dim, order);
  }]>];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Largest number of dense rows (m * bk) that one window may span: a CTA
    /// holds at least one window of activations in shared memory.
    static constexpr int64_t kMaxWindowRows = 1024;

    /// The level that the dense weight obeys; the only one, mostly. The
    /// accessors below are about this one.
    const SparsityLevel &getOuter() const { return getLevels().front(); }
    /// The level of the elements that are stored.
    const SparsityLevel &getInnermost() const { return getLevels().back(); }
    bool hasInnerLevel() const { return getLevels().size() > 1; }

    int64_t getN() const { return getOuter().n; }
    int64_t getM() const { return getOuter().m; }
    int64_t getBlockK() const { return getOuter().blockK; }
    int64_t getBlockN() const { return getOuter().blockN; }
    bool isFree() const { return getOuter().isFree(); }
    /// Dense rows that one window spans along the contraction dimension.
    int64_t getWindowRows() const { return getOuter().getWindowRows(); }
    /// Dense rows of one window that the outer level keeps.
    int64_t getKeptRows() const { return getOuter().getKeptRows(); }
    /// Width in bits of a position in `index`.
    unsigned getIndexBitWidth() const { return getOuter().getIndexBitWidth(); }
    /// The share of the weight that is stored.
    double getDensity() const;
  }];
}

//===----------------------------------------------------------------------===//
// Packed
//===----------------------------------------------------------------------===//

def NMSparse_PackedAttr : NMSparse_Attr<"Packed", "packed"> {
  let summary = "which weight packed tensors hold";
  let description = [{
    Encoding, dense shape (as declared: neither transposed nor padded) and
    element type of a weight.

    ```mlir
    #nm_sparse.packed<#nm_sparse.encoding<8:32>, [4096, 4096], f16>
    ```
  }];
  let parameters = (ins
    "::mlir::nm_sparse::EncodingAttr":$encoding,
    ArrayRefParameter<"int64_t">:$shape,
    "::mlir::Type":$elementType
  );
  let builders = [
    AttrBuilderWithInferredContext<(ins "::mlir::RankedTensorType":$weight), [{
      auto encoding =
          ::llvm::cast<::mlir::nm_sparse::EncodingAttr>(weight.getEncoding());
      return $_get(weight.getContext(), encoding, weight.getShape(),
                   weight.getElementType());
    }]>
  ];
  let assemblyFormat = [{
    `<` qualified($encoding) `,` `[` $shape `]` `,` $elementType `>`
  }];
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The dense weight, without an encoding.
    ::mlir::RankedTensorType getWeightType() const {
      return ::mlir::RankedTensorType::get(getShape(), getElementType());
    }
    ::llvm::SmallVector<::mlir::nm_sparse::WeightComponent>
    getComponents() const {
      return getEncoding().getComponents(getWeightType());
    }
    /// The version of docs/Encoding.md that specifies the components.
    int64_t getLayoutVersion() const { return getEncoding().getLevels().size(); }
  }];
}

//===----------------------------------------------------------------------===//
// Component
//===----------------------------------------------------------------------===//

def NMSparse_ComponentAttr : NMSparse_Attr<"Component", "component"> {
  let summary = "which component of which weight an argument holds";
  let description = [{
    Name of a component, and the weight that it belongs to. A function that takes
    a packed weight has it as `nm_sparse.component` on one argument for each
    component; `weight` is the same number on all of them, and on no other. They
    need not be neighbours. The same holds for results.
    `--nm-sparse-materialize-encodings` writes it, so that a host knows how to
    fill the arguments.

    ```mlir
    #p = #nm_sparse.packed<#nm_sparse.encoding<2:4>, [64, 32], f16>
    func.func @f(
      %v: tensor<32x32xf16>
        {nm_sparse.component = #nm_sparse.component<"values", weight = 0, of = #p>},
      %i: tensor<32x32xi8>
        {nm_sparse.component = #nm_sparse.component<"index", weight = 0, of = #p>})
    ```
  }];
  let parameters = (ins
    StringRefParameter<>:$name,
    "int64_t":$weight,
    "::mlir::nm_sparse::PackedAttr":$packed
  );
  let assemblyFormat = [{
    `<` $name `,` `weight` `=` $weight `,` `of` `=` qualified($packed) `>`
  }];
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    ::mlir::nm_sparse::WeightComponent getComponent() const;
  }];
}

//===----------------------------------------------------------------------===//
// Schedule
//===----------------------------------------------------------------------===//

def NMSparse_ScheduleKind : I32EnumAttr<"ScheduleKind",
    "which hardware path multiplies", [
      I32EnumAttrCase<"Simt", 0, "simt">,
      I32EnumAttrCase<"Mma", 1, "mma">,
      I32EnumAttrCase<"Wgmma", 2, "wgmma">]> {
  let cppNamespace = "::mlir::nm_sparse";
  let genSpecializedAttr = 0;
}

def NMSparse_OperandMode : I32EnumAttr<"OperandMode",
    "which activation rows reach shared memory", [
      I32EnumAttrCase<"Unpacked", 0, "unpacked">,
      I32EnumAttrCase<"Packed", 1, "packed">]> {
  let cppNamespace = "::mlir::nm_sparse";
  let genSpecializedAttr = 0;
}

def NMSparse_IndexMode : I32EnumAttr<"IndexMode",
    "when the index reaches shared memory", [
      I32EnumAttrCase<"Staged", 0, "staged">,
      I32EnumAttrCase<"Resident", 1, "resident">]> {
  let cppNamespace = "::mlir::nm_sparse";
  let genSpecializedAttr = 0;
}

def NMSparse_ScheduleAttr : NMSparse_Attr<"Schedule", "schedule"> {
  let summary = "how one matmul is mapped to the GPU";
  let description = [{
    Every decision about one `nm_sparse.matmul`, made by
    `--nm-sparse-select-schedule` unless the op has one already.

    * kind: `simt` (FFMA, f32), `mma` (`mma.sync` tensor cores, f16/bf16) or
      `wgmma` (warpgroup products of sm_90a, f16/bf16).
    * `tile = [tokens, outputs, windows]`: what one CTA computes, and how many
      windows one step of its K loop consumes.
    * `warps = [tokens, outputs]`: warps of the CTA over its tile. A `simt` warp
      is 8 x 4 lanes, an `mma` warp tiles by 16 x 8 fragments. Four `wgmma`
      warps along outputs are a warpgroup, which multiplies a multiple of 64
      outputs by 64, 128, 192 or 256 tokens.
    * `stages`: depth of the shared-memory ring, 2 to 8.
    * `split_k`: parts of the contraction dimension, each computed by a CTA of its
      own; the last one to finish a tile adds them in order.
    * `operands`: `packed` gathers only the activation rows that the index
      names (`async_gather`); `unpacked` copies whole windows, which `wgmma`
      cannot select rows of.
    * `index`: `resident` copies the panel's index once before the K loop,
      `staged` copies it step by step.
    * `producers`: warps of the CTA beside `warps` that only copy, while `warps`
      only multiply; 0 (default, not printed) lets every warp do both.
    * `persistent = true`: one CTA on each SM goes from tile to tile, so that its
      producers fetch the next one while the last is written; needs producers.
    * `tma = true`: the values come through the tensor memory accelerator, one
      instruction a step, instead of through the registers' side of the
      producers; needs `wgmma` or `mma`, and producers.
    * `stream_k = true`: the CTAs share the tiles of the last one to two waves
      along the contraction, the same number of K steps for each; the second of
      the two CTAs that share a tile adds the part of the first. Runs agree in
      every bit, but a token's last bits depend on the number of tokens. Needs
      `persistent`, and `split_k = 1`.

    ```mlir
    #nm_sparse.schedule<mma, tile = [128, 128, 4], warps = [2, 4], stages = 3,
                        split_k = 1, operands = packed, index = resident>
    ```
  }];
  let parameters = (ins
    "::mlir::nm_sparse::ScheduleKind":$kind,
    ArrayRefParameter<"int64_t">:$tile,
    ArrayRefParameter<"int64_t">:$warps,
    "int64_t":$stages,
    "int64_t":$splitK,
    "::mlir::nm_sparse::OperandMode":$operands,
    "::mlir::nm_sparse::IndexMode":$index,
    DefaultValuedParameter<"int64_t", "0">:$producers,
    DefaultValuedParameter<"bool", "false">:$persistent,
    DefaultValuedParameter<"bool", "false">:$tma,
    DefaultValuedParameter<"bool", "false">:$stream_k
  );
  let assemblyFormat = [{
    `<` $kind `,` `tile` `=` `[` $tile `]` `,` `warps` `=` `[` $warps `]` `,`
    `stages` `=` $stages `,` `split_k` `=` $splitK `,`
    `operands` `=` $operands `,` `index` `=` $index
    `` custom<OptionalFields>($producers, $persistent, $tma, $stream_k) `>`
  }];
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// CTAs exchange parts of tiles.
    bool sharesTiles() const { return getSplitK() > 1 || getStreamK(); }
    int64_t getTileTokens() const { return getTile()[0]; }
    int64_t getTileOutputs() const { return getTile()[1]; }
    int64_t getTileWindows() const { return getTile()[2]; }
    /// Threads that multiply, the first of the CTA.
    int64_t getNumThreads() const { return getWarps()[0] * getWarps()[1] * 32; }
    /// All threads of the CTA, those of `producers` last.
    int64_t getBlockThreads() const {
      return getNumThreads() + getProducers() * 32;
    }
    bool isPacked() const { return getOperands() == OperandMode::Packed; }
    bool isResident() const { return getIndex() == IndexMode::Resident; }
    /// Rows of the condensed tiles of one K step: the kept rows of `windows`
    /// windows, rounded up to the 16 rows of one product of tensor cores.
    int64_t getStepRows(EncodingAttr encoding) const;
    /// Panels that one CTA tile can touch: one when the tile lies inside a
    /// panel, and one more than fit when panels and tiles are not aligned.
    int64_t getTilePanels(EncodingAttr encoding) const;
    /// True when each tile is a whole number of panels or lies inside one.
    bool isPanelAligned(EncodingAttr encoding) const;
    /// True for the kinds that multiply f16 and bf16 on tensor cores.
    bool isTensorCores() const { return getKind() != ScheduleKind::Simt; }
    /// Tokens and outputs that one warpgroup of a `wgmma` schedule computes.
    int64_t getWarpgroupTokens() const { return getTile()[0] / getWarps()[0]; }
    int64_t getWarpgroupOutputs() const {
      return getTile()[1] / getWarps()[1] * 4;
    }
    /// True when what each of several warpgroups computes is one product of 64
    /// tokens and 256 outputs of a panel. With outputs as the 64 rows it is
    /// four products, which read 1.6 times as much of shared memory.
    bool isProductOfTokensByPanel(EncodingAttr encoding) const;
  }];
}

#endif // NM_SPARSE_ATTRS_TD
