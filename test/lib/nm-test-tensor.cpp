//===- nm-test-tensor.cpp - the tensor level alone ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a host compiler links that takes the encoding, the operations on whole
// tensors and the choice of schedules, and generates code itself: no dialect of
// GPUs, and no library of this project that needs one.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Affine/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "nm_sparse/Conversion/Passes.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "nm_sparse/Dialect/NMSparse/IR/ValueBoundsOpInterfaceImpl.h"
#include "nm_sparse/Dialect/NMSparse/Transforms/Passes.h"
#include "nm_sparse/Products/Registration.h"

using namespace mlir;
using namespace mlir::nm_sparse;

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
  registerProductCosts(registry);
  registerConvertLinalgToNMSparsePass();
  registerConvertNMSparseToLinalgPass();
  registerNMSparseTransformsPasses();
  return asMainReturnCode(
      MlirOptMain(argc, argv, "nm_sparse tensor-level driver\n", registry));
}
