//===- NMSparseTokenOps.td - selection by a number of tokens -*- tablegen -*-=//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_TOKEN_OPS_TD
#define NM_SPARSE_TOKEN_OPS_TD

include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "nm_sparse/Dialect/NMSparse/IR/NMSparseBase.td"

def NMSparse_TokenClassOp : NMSparse_Op<"token_class", [Pure]> {
  let summary = "the class that a number of tokens belongs to";
  let description = [{
    `classes[i]` for the first `i` with `tokens <= last[i]`, and the last of
    `classes`, of which there is one more, for all other numbers. Selects between
    functions that are compiled for some numbers of tokens
    (--nm-sparse-specialize-tokens), and is what a manifest says of that.

    ```mlir
    // Class 0 up to 64 tokens, class 1 from 1025 to 2048, else class 2.
    %c = nm_sparse.token_class %tokens last = [64, 1024, 2048] classes = [0, 2, 1, 2]
    ```
  }];
  let arguments = (ins Index:$tokens, DenseI64ArrayAttr:$last,
                       DenseI64ArrayAttr:$classes);
  let results = (outs Index:$result);
  let assemblyFormat = [{
    $tokens `last` `=` $last `classes` `=` $classes attr-dict
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

#endif // NM_SPARSE_TOKEN_OPS_TD
