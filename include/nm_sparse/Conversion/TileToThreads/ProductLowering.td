//===- ProductLowering.td - products as the code of threads *- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_CONVERSION_TILETOTHREADS_PRODUCTLOWERING_TD
#define NM_SPARSE_CONVERSION_TILETOTHREADS_PRODUCTLOWERING_TD

include "mlir/IR/OpBase.td"

def NMSparse_ProductLoweringInterface
    : AttrInterface<"ProductLoweringInterface"> {
  let cppNamespace = "::mlir::nm_sparse";
  let description = [{
    How a product becomes the code of threads, which an external model answers:
    see `lib/Products`.
  }];
  let methods = [
    InterfaceMethod<[{
        Says which elements of the tile of `op` each thread holds. Fails with an
        error on `op` when the schedule cannot hold the encoding.
      }],
      "::llvm::FailureOr<::mlir::nm_sparse::AccumulatorAttr>", "layOut",
      (ins "::mlir::nm_sparse::TileMatmulOp":$op)>,
    InterfaceMethod<"The wishes of its code about the code around `op`.",
      "::mlir::nm_sparse::ThreadUse", "getThreadUse",
      (ins "::mlir::nm_sparse::TileMatmulOp":$op), "", "return {};">,
    InterfaceMethod<[{
        Emits the product of one K step: adds to `accumulators`, the elements of
        the thread in the order of `layout`. Fails with an error on `op`.
      }],
      "::llvm::LogicalResult", "emit",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::nm_sparse::TileMatmulOp":$op,
           "const ::mlir::nm_sparse::ThreadLayout &":$layout,
           "::llvm::MutableArrayRef<::mlir::Value>":$accumulators)>
  ];
}

#endif // NM_SPARSE_CONVERSION_TILETOTHREADS_PRODUCTLOWERING_TD
