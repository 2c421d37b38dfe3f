//===- Passes.td - programs of other compilers' models -----*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_HOSTS_PASSES_TD
#define NM_SPARSE_HOSTS_PASSES_TD

include "mlir/Pass/PassBase.td"

def NMSparseOutlineProgramsPass
    : Pass<"nm-sparse-outline-programs", "::mlir::ModuleOp"> {
  let summary = "move products with encoded weights into a module of their own";
  let description = [{
    For a model that another compiler compiles, all but its sparse products. Runs
    on linalg on tensors, in front of all other passes of ours. Groups of products
    with an `#nm_sparse.encoding` become functions of a nested module, which
    `nm-compile` takes, and the model calls them. Nothing else in the model has an
    attribute of ours then, apart from the types of the weights, and named elementwise
    operations are generic ones, whatever MLIR the other compiler has.

    A group has products that read the same activations, and products of which one
    reads the result of another one. The elementwise operations behind a product
    belong to it as far as the compiler fuses them: each must be the only one that
    reads the value before it (bias, activation, residual, conversions, the
    multiplication of a gated MLP). So does an elementwise operation that makes the
    initial sum of one product. Everything else stays in the model: normalization,
    softmax, dense products, and elementwise operations in front of a product. No
    path leads from a group through the model back into it; where one would, there
    are several groups.

    Groups that compute the same are calls of one function, which takes the weights
    as arguments. Nothing is fused with a product without tokens (`linalg.vecmat`),
    and an initial sum of the model is added behind the product.

    The last arguments of a function are the tensors that its results are written
    to. It does not read them. Constant scalars, fills and `tensor.empty` become
    part of the function. So do reshapes between its operations, the
    `tensor.collapse_shape` that makes tokens of batch and sequence, zeros around
    the image of a convolution, and all that rearranges a weight.

    A weight must be an argument of the model's function. To return it, to carry it
    through a loop, to take a slice of it, or to use it for anything but products
    and calls of other functions of the module is an error. Encodings of
    `sparse_tensor` must be ours already (`--convert-sparse-tensor-to-nm-sparse`).

    ```mlir
    func.func @model(%x: tensor<?x64xf16>, %w: tensor<64x32xf16, #enc>)
        -> tensor<?x32xf32> {
      %n = ... // normalizes %x
      %e = tensor.empty(%m) : tensor<?x32xf32>
      %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x32xf32>)
          -> tensor<?x32xf32>
      %y = linalg.matmul ins(%n, %w : tensor<?x64xf16>, tensor<64x32xf16, #enc>)
          outs(%z : tensor<?x32xf32>) -> tensor<?x32xf32>
      ...
    }
    ```
    becomes
    ```mlir
    module @nm_sparse_programs {
      func.func @model_0(%x: tensor<?x64xf16>, %w: tensor<64x32xf16, #enc>,
                         %out: tensor<?x32xf32>) -> tensor<?x32xf32> {
        %z = linalg.fill ins(%zero : f32) outs(%out : tensor<?x32xf32>)
            -> tensor<?x32xf32>
        %y = linalg.matmul
            ins(%x, %w : tensor<?x64xf16>, tensor<64x32xf16, #enc>)
            outs(%z : tensor<?x32xf32>) -> tensor<?x32xf32>
        return %y : tensor<?x32xf32>
      }
    }
    func.func private @nm_sparse_programs.model_0(
        tensor<?x64xf16>, tensor<64x32xf16, #enc>, tensor<?x32xf32>)
        -> tensor<?x32xf32>
    func.func @model(%x: tensor<?x64xf16>, %w: tensor<64x32xf16, #enc>)
        -> tensor<?x32xf32> {
      %n = ...
      %e = tensor.empty(%m) : tensor<?x32xf32>
      %y = call @nm_sparse_programs.model_0(%n, %w, %e) : ...
      ...
    }
    ```
  }];
  let options = [
    Option<"name", "name", "std::string", "\"nm_sparse_programs\"",
           "name of the module with the programs">,
    Option<"onlyPrograms", "only-programs", "bool", "false",
           "leave nothing but the programs, to compile them alone">];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::func::FuncDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::tensor::TensorDialect"];
}

#endif // NM_SPARSE_HOSTS_PASSES_TD
