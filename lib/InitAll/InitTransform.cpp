//===- InitTransform.cpp - the transform dialect --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A file of its own: the libraries that only compile link none of it.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Linalg/TransformOps/DialectExtension.h"
#include "mlir/Dialect/SCF/TransformOps/SCFTransformOps.h"
#include "mlir/Dialect/Tensor/TransformOps/TensorTransformOps.h"
#include "mlir/Dialect/Transform/IR/TransformDialect.h"
#include "mlir/Dialect/Transform/Transforms/Passes.h"
#include "nm_sparse/Dialect/NMSparse/TransformOps/NMSparseTransformOps.h"
#include "nm_sparse/InitAll.h"

using namespace mlir;

void nm_sparse::registerTransformOps(DialectRegistry &registry) {
  registry.insert<transform::TransformDialect>();
  linalg::registerTransformDialectExtension(registry);
  registerTransformDialectExtension(registry);
  scf::registerTransformDialectExtension(registry);
  tensor::registerTransformDialectExtension(registry);
}

void nm_sparse::registerTransformPasses() {
  transform::registerTransformPasses();
}
