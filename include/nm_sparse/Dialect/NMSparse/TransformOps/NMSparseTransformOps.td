//===- NMSparseTransformOps.td - transform.nm_sparse.*     -*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMSPARSE_TRANSFORMOPS_NMSPARSETRANSFORMOPS_TD
#define NM_SPARSE_DIALECT_NMSPARSE_TRANSFORMOPS_NMSPARSETRANSFORMOPS_TD

include "mlir/Dialect/Transform/IR/TransformAttrs.td"
include "mlir/Dialect/Transform/IR/TransformDialect.td"
include "mlir/Dialect/Transform/Interfaces/TransformInterfaces.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def NMSparse_TransformPackOp : Op<Transform_Dialect, "nm_sparse.pack",
    [FunctionalStyleTransformOpTrait, MemoryEffectsOpInterface,
     TransformOpInterface, ReportTrackingListenerFailuresOpTrait]> {
  let cppNamespace = "::mlir::nm_sparse";
  let summary = "turn contractions with an encoded weight into nm_sparse ops";
  let description = [{
    Rewrites each target, a linalg contraction with a weight that carries an
    `#nm_sparse.encoding`, into `nm_sparse.pack` and `nm_sparse.matmul`, as
    `--convert-linalg-to-nm-sparse` does. Targets that read one weight share its
    `nm_sparse.pack`.

    Convolutions, products whose body computes activations, and upstream's
    spelling of `n:m` are for that pass, which prepares them first.

    #### Return modes

    A target that is no such contraction, or is not covered, is a silenceable
    failure that gives the reason; then nothing has changed. Otherwise `packs`
    are the packed weights, each once, and `matmuls` the products, one for each
    target. The target handle is consumed.

    ```mlir
    %pack, %matmul = transform.nm_sparse.pack %linear
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    ```
  }];
  let arguments = (ins TransformHandleTypeInterface:$target);
  let results = (outs TransformHandleTypeInterface:$packs,
                      TransformHandleTypeInterface:$matmuls);
  let assemblyFormat =
      "$target attr-dict `:` functional-type($target, results)";
  let extraClassDeclaration = [{
    ::mlir::DiagnosedSilenceableFailure
    apply(::mlir::transform::TransformRewriter &rewriter,
          ::mlir::transform::TransformResults &results,
          ::mlir::transform::TransformState &state);
  }];
}

def NMSparse_TransformSetConfigOp : Op<Transform_Dialect,
    "nm_sparse.set_config",
    [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>, TransformOpInterface,
     TransformEachOpTrait, ReportTrackingListenerFailuresOpTrait]> {
  let cppNamespace = "::mlir::nm_sparse";
  let summary = "say how products are lowered";
  let description = [{
    Sets the attribute by which each target, an `nm_sparse.matmul`, is lowered.
    `config` is any attribute that the operation accepts, such as a schedule. A
    choice that is there already is replaced; `--nm-sparse-select-schedule`
    keeps what this op sets.

    #### Return modes

    A target that is no `nm_sparse.matmul`, or that does not verify with `config`,
    is a silenceable failure that gives the reason, and keeps the attribute that it
    had. The handle stays valid.

    ```mlir
    transform.nm_sparse.set_config #schedule on %matmul : !transform.any_op
    ```
  }];
  let arguments = (ins TransformHandleTypeInterface:$target, AnyAttr:$config);
  let assemblyFormat = "$config `on` $target attr-dict `:` type($target)";
  let extraClassDeclaration = [{
    ::mlir::DiagnosedSilenceableFailure
    applyToOne(::mlir::transform::TransformRewriter &rewriter,
               ::mlir::Operation *target,
               ::mlir::transform::ApplyToEachResultList &results,
               ::mlir::transform::TransformState &state);
  }];
}

#endif // NM_SPARSE_DIALECT_NMSPARSE_TRANSFORMOPS_NMSPARSETRANSFORMOPS_TD
