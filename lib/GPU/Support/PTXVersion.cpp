//===- PTXVersion.cpp - the PTX that kernels become -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/GPU/Support/PTXVersion.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

unsigned nm_sparse::getPTXVersion(StringRef features) {
  unsigned version = 0;
  for (StringRef feature : llvm::split(features, ','))
    if (feature.consume_front("+ptx"))
      feature.consumeInteger(10, version);
  return version;
}

/// `features` with another PTX version.
static std::string withPTX(StringRef features, unsigned version) {
  SmallVector<std::string> parts;
  for (StringRef feature : llvm::split(features, ','))
    parts.push_back(feature.starts_with("+ptx")
                        ? "+ptx" + std::to_string(version)
                        : feature.str());
  return llvm::join(parts, ",");
}

void nm_sparse::requirePTX(gpu::GPUModuleOp module, unsigned version) {
  ArrayAttr targets = module.getTargetsAttr();
  if (!targets)
    return;
  SmallVector<Attribute> changed;
  for (Attribute attribute : targets) {
    auto target = dyn_cast<NVVM::NVVMTargetAttr>(attribute);
    unsigned found = target ? getPTXVersion(target.getFeatures()) : 0;
    if (found > 0 && found < version)
      attribute = NVVM::NVVMTargetAttr::get(
          module.getContext(), target.getO(), target.getTriple(),
          target.getChip(), withPTX(target.getFeatures(), version),
          target.getFlags(), target.getLink(), target.getVerifyTarget());
    changed.push_back(attribute);
  }
  module.setTargetsAttr(ArrayAttr::get(module.getContext(), changed));
}
