//===- Manifest.cpp - how to launch the kernels ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One object for each host function; everything comes from the host IR.
//
//===----------------------------------------------------------------------===//

#include "FunctionWriter.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "nm_sparse/Base/KernelSymbols.h"
#include "nm_sparse/Commit.h"
#include "nm_sparse/Target/Target.h"
#include "nm_sparse/Version.h"

using namespace mlir;
using namespace mlir::nm_sparse;
using llvm::json::Array;
using llvm::json::Object;

/// The version of the format that `function` needs: 3 has `cases`, 4 `checks`,
/// 5 tensor maps by value, and 6 such in mode im2col, by value or not.
static int64_t getVersion(const Object &function) {
  int64_t version = function.get("checks") ? 4 : function.get("cases") ? 3 : 2;
  if (const Array *launches = function.getArray("launches"))
    for (const llvm::json::Value &launch : *launches)
      for (const llvm::json::Value &parameter :
           *launch.getAsObject()->getArray("parameters")) {
        if (parameter.getAsObject()->get("im2col"))
          return 6;
        if (parameter.getAsObject()->getString("type") == "tensor_map")
          version = 5;
      }
  return version;
}

FailureOr<Object> nm_sparse::makeManifest(ModuleOp module,
                                          ArrayRef<ScheduledProduct> products,
                                          const ResourceMap *resources,
                                          StringRef option) {
  Object manifest{{"compiler", Object{{"name", "nm_sparse"},
                                      {"version", NM_SPARSE_VERSION},
                                      {"commit", NM_SPARSE_COMMIT}}}};
  Array kernels, functions, scheduled;
  for (auto kernelModule : module.getOps<gpu::GPUModuleOp>()) {
    if (ArrayAttr targets = kernelModule.getTargetsAttr())
      for (Attribute attribute : targets)
        if (auto target = dyn_cast<NVVM::NVVMTargetAttr>(attribute)) {
          manifest["chip"] = target.getChip();
          manifest["features"] = target.getFeatures();
        }
    for (auto kernel : kernelModule.getOps<LLVM::LLVMFuncOp>()) {
      if (!kernel->hasAttr(gpu::GPUDialect::getKernelFuncAttrName()))
        continue;
      Object object{{"name", kernel.getSymName()}};
      if (kernelModule.lookupSymbol(
              nms::getWaitsSymbol(kernel.getName().str())))
        object["waits"] = true;
      auto found = resources ? resources->find(kernel.getSymName().str())
                             : ResourceMap::const_iterator();
      if (resources && found != resources->end()) {
        object["registers"] = found->second.registers;
        object["spill_bytes"] =
            found->second.spillStoreBytes + found->second.spillLoadBytes;
        object["code_bytes"] = found->second.codeBytes;
      }
      kernels.push_back(std::move(object));
    }
  }
  int64_t version = 2;
  for (auto function : module.getOps<func::FuncOp>())
    if (!function.isExternal()) {
      FailureOr<Object> written = FunctionWriter(function, option).write();
      if (failed(written))
        return failure();
      version = std::max(version, getVersion(*written));
      functions.push_back(std::move(*written));
    }
  for (const ScheduledProduct &product : products)
    scheduled.push_back(Object{{"function", product.function},
                               {"encoding", product.encoding},
                               {"schedule", product.schedule},
                               {"operands", product.shape}});
  manifest["manifest_version"] = version;
  manifest["kernels"] = std::move(kernels);
  manifest["functions"] = std::move(functions);
  manifest["products"] = std::move(scheduled);
  return manifest;
}
