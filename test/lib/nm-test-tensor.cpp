//===- nm-test-tensor.cpp - the tensor level alone ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A stand-in for a host compiler that takes the encoding and the operations on
// whole tensors, and generates code itself: it links no dialect of GPUs, and no
// library of this project that needs one. It runs transform scripts, too, with
// upstream's operation that fuses a consumer into loops.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Affine/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/TransformOps/DialectExtension.h"
#include "mlir/Dialect/Linalg/Transforms/TilingInterfaceImpl.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/SCF/TransformOps/SCFTransformOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/Transform/IR/TransformDialect.h"
#include "mlir/Dialect/Transform/Transforms/Passes.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "nm_sparse/Conversion/Passes.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "nm_sparse/Dialect/NMSparse/IR/ValueBoundsOpInterfaceImpl.h"
#include "nm_sparse/Dialect/NMSparse/TransformOps/NMSparseTransformOps.h"
#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::nm_sparse;

namespace test {
/// Upstream's operations that fuse consumers into loops; they have no header.
void registerTestTilingInterfaceTransformDialectExtension(
    mlir::DialectRegistry &registry);
} // namespace test

int main(int argc, char **argv) {
  DialectRegistry registry;
  registry.insert<NMSparseDialect, affine::AffineDialect, arith::ArithDialect,
                  func::FuncDialect, linalg::LinalgDialect, scf::SCFDialect,
                  tensor::TensorDialect>();
  // Tiles of a product ask these for the bounds of their sizes.
  affine::registerValueBoundsOpInterfaceExternalModels(registry);
  arith::registerValueBoundsOpInterfaceExternalModels(registry);
  registerValueBoundsOpInterfaceExternalModels(registry);
  scf::registerValueBoundsOpInterfaceExternalModels(registry);
  tensor::registerValueBoundsOpInterfaceExternalModels(registry);
  // Scripts pack, tile and fuse products.
  registry.insert<transform::TransformDialect>();
  linalg::registerTilingInterfaceExternalModels(registry);
  linalg::registerTransformDialectExtension(registry);
  nm_sparse::registerTransformDialectExtension(registry);
  scf::registerTransformDialectExtension(registry);
  test::registerTestTilingInterfaceTransformDialectExtension(registry);
  registerConvertLinalgToNMSparsePass();
  registerConvertNMSparseToLinalgPass();
  registerNMSparseTransformsPasses();
  registerCSEPass();
  registerCanonicalizerPass();
  transform::registerTransformPasses();
  return asMainReturnCode(
      MlirOptMain(argc, argv, "nm_sparse tensor-level driver\n", registry));
}
