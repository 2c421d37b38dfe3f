//===- NMSparsePlugin.cpp - plugin for the stock mlir-opt -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "mlir/Tools/Plugins/PassPlugin.h"
#include "nm_sparse/InitAll.h"
#include "nm_sparse/Version.h"

using namespace mlir;

// mlir-opt registers the upstream passes itself.

extern "C" LLVM_ATTRIBUTE_WEAK DialectPluginLibraryInfo
mlirGetDialectPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "NMSparse", NM_SPARSE_VERSION,
          [](DialectRegistry *registry) {
            nm_sparse::registerAllDialects(*registry);
            nm_sparse::registerTransformOps(*registry);
            nm_sparse::registerOwnPasses();
          }};
}

extern "C" LLVM_ATTRIBUTE_WEAK PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "NMSparse", NM_SPARSE_VERSION,
          [] { nm_sparse::registerOwnPasses(); }};
}
