//===- MatmulConfig.td - how a host compiles one product ---*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_MATMUL_CONFIG_TD
#define NM_SPARSE_MATMUL_CONFIG_TD

include "mlir/IR/OpBase.td"

def NMSparse_MatmulConfigInterface : AttrInterface<"MatmulConfigInterface"> {
  let cppNamespace = "::mlir::nm_sparse";
  let description = [{
    A host's decision about how one `nm_sparse.matmul` is compiled. The tensor
    level carries it and asks nothing of it but whether it suits the operation;
    the dialect that generates code knows what it means. `#nm_tile.schedule`
    implements it for the GPU kernels of this project.
  }];
  let methods = [
    InterfaceMethod<[{
        Checks that this configuration suits `op`, an `nm_sparse.matmul` or a
        linalg contraction that is to become one. Emits an error on `op` and
        fails when it does not.
      }],
      "::llvm::LogicalResult", "verifyConfig", (ins "::mlir::Operation *":$op),
      "", "return ::llvm::success();">
  ];
}

#endif // NM_SPARSE_MATMUL_CONFIG_TD
