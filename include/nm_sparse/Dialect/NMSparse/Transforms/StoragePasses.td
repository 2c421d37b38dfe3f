//===- StoragePasses.td - how weights are stored -----------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMSPARSE_TRANSFORMS_STORAGEPASSES_TD
#define NM_SPARSE_DIALECT_NMSPARSE_TRANSFORMS_STORAGEPASSES_TD

include "mlir/Pass/PassBase.td"

def NMSparseEmbedWeightsPass
    : Pass<"nm-sparse-embed-weights", "::mlir::ModuleOp"> {
  let summary = "store weights by another pattern that they obey, too";
  let description = [{
    Products with `nm_sparse.embed` get that encoding, and their weight is changed to
    it: a constant is packed anew, and one that does not obey the other pattern is an
    error that names window and panel; arguments that hold its components
    (`nm_sparse.component`) change their types, so that a caller packs the weight by
    the other pattern; and so does `nm_sparse.pack`, which checks it when the program
    runs. A function that takes two levels loses the argument of the inner one.
    Arguments that something else reads, too, or of functions that the module
    calls, stay as they are, and a remark says so.

    The other pattern is one level of `n:m` with single elements. `dim` and `order`
    stay those of the weight. Where it is the weight's own encoding, nothing changes:
    so a program says that `--nm-sparse-select-embedding` must leave a weight alone.

    ```mlir
    func.func @f(%v: tensor<16x32xf16> {nm_sparse.component =
        #nm_sparse.component<"values", weight = 0,
          of = #nm_sparse.packed<#nm_sparse.encoding<1:4>, [64, 32], f16>>}, ...) {
      %y = nm_sparse.matmul #nm_sparse.encoding<1:4> ... ins(%x, %v, %i : ...)
        {nm_sparse.embed = #nm_sparse.encoding<2:4>}
    ```
    becomes
    ```mlir
    func.func @f(%v: tensor<32x32xf16> {nm_sparse.component =
        #nm_sparse.component<"values", weight = 0,
          of = #nm_sparse.packed<#nm_sparse.encoding<2:4>, [64, 32], f16>>}, ...) {
      %y = nm_sparse.matmul #nm_sparse.encoding<2:4> ... ins(%x, %v, %i : ...)
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::nm_sparse::NMSparseDialect"];
}

#endif // NM_SPARSE_DIALECT_NMSPARSE_TRANSFORMS_STORAGEPASSES_TD
