//===- NMSparseAttrs.td - encoding and packed weights      -*- tablegen -*-===//
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
include "nm_sparse/Dialect/NMSparse/IR/Schedule.td"

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
    [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
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

    The last window and the last panel may be partial. Elements are f32, f16,
    bf16, f8E4M3FN, f8E5M2 or i8.

    ```mlir
    #w = #nm_sparse.encoding<8:32, block = [1, 128]>
    tensor<4096x4096xf16, #w>
    ```
  }];
  let parameters = (ins
    "int64_t":$n,
    "int64_t":$m,
    "int64_t":$blockK,
    "int64_t":$blockN,
    "int64_t":$dim,
    "::mlir::nm_sparse::OutputOrder":$order
  );
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Largest number of dense rows (m * bk) that one window may span: a CTA
    /// holds at least one window of activations in shared memory.
    static constexpr int64_t kMaxWindowRows = 1024;

    bool isFree() const { return getN() == 0; }
    /// Dense rows that one window spans along the contraction dimension.
    int64_t getWindowRows() const { return getM() * getBlockK(); }
    /// Dense rows of one window that are stored.
    int64_t getKeptRows() const { return getN() * getBlockK(); }
    /// Width in bits of an index element: the smallest of 8, 16, 32 that holds
    /// m - 1 unsigned.
    unsigned getIndexBitWidth() const;
    /// The n of n:m over the m, the share of the weight that is stored.
    double getDensity() const { return double(getN()) / double(getM()); }
  }];
}

//===----------------------------------------------------------------------===//
// Packed
//===----------------------------------------------------------------------===//

def NMSparse_PackedAttr : NMSparse_Attr<"Packed", "packed"> {
  let summary = "which weight a pair of packed tensors holds";
  let description = [{
    Encoding, dense shape (as declared: neither transposed nor padded) and
    element type of a weight. `--nm-sparse-materialize-encodings` puts it as
    `nm_sparse.values` on the argument or result that holds the values of a
    packed weight and as `nm_sparse.index` on the next one, which holds its
    index, so that a host knows how to fill them.

    ```mlir
    func.func @f(
      %v: tensor<1024x4096xf16> {nm_sparse.values =
        #nm_sparse.packed<#nm_sparse.encoding<8:32>, [4096, 4096], f16>}, ...
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
    /// The packed tensors, both without an encoding.
    ::mlir::RankedTensorType getValuesType() const;
    ::mlir::RankedTensorType getIndexType() const;
  }];
}

#endif // NM_SPARSE_ATTRS_TD
