//===- LaunchAccesses.cpp - what launches read and write ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/GPU/LaunchAccesses.h"

#include "../Memory/DeviceBuffers.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "nm_sparse/GPU/Support/Buffers.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// The buffers that the kernel of `launch` uses; none if they are not known.
static std::optional<Accesses> getAccessesOfLaunch(gpu::LaunchFuncOp launch,
                                                   gpu::GPUFuncOp kernel) {
  Accesses accesses;
  for (auto [operand, argument] :
       llvm::zip(launch.getKernelOperands(), kernel.getArguments())) {
    if (isa<MemRefType>(operand.getType()))
      (isWritten(argument) ? accesses.written : accesses.read)
          .push_back(getBufferOf(operand));
    else if (!operand.getType().isIntOrIndexOrFloat())
      return std::nullopt;
  }
  return accesses;
}

std::optional<Accesses> nm_sparse::getAccesses(Operation *op,
                                               SymbolTableCollection &symbols) {
  if (auto launch = dyn_cast<gpu::LaunchFuncOp>(op)) {
    auto kernel = symbols.lookupNearestSymbolFrom<gpu::GPUFuncOp>(
        launch, launch.getKernelAttr());
    return kernel ? getAccessesOfLaunch(launch, kernel) : std::nullopt;
  }
  std::optional<SmallVector<MemoryEffects::EffectInstance>> effects =
      getEffectsRecursively(op);
  if (!effects)
    return std::nullopt;
  Accesses accesses;
  for (const MemoryEffects::EffectInstance &effect : *effects) {
    // No earlier launch uses a new buffer.
    if (isa<MemoryEffects::Allocate>(effect.getEffect()))
      continue;
    if (!effect.getValue())
      return std::nullopt;
    (isa<MemoryEffects::Read>(effect.getEffect()) ? accesses.read
                                                  : accesses.written)
        .push_back(getBufferOf(effect.getValue()));
  }
  return accesses;
}

static bool overlap(ArrayRef<Value> some, ArrayRef<Value> others,
                    AliasAnalysis &aliases) {
  return llvm::any_of(some, [&](Value one) {
    return llvm::any_of(
        others, [&](Value other) { return !aliases.alias(one, other).isNo(); });
  });
}

/// Returns true if the order of the two counts.
bool nm_sparse::dependOnOrder(const Accesses &a, const Accesses &b,
                              AliasAnalysis &aliases) {
  return overlap(a.written, b.written, aliases) ||
         overlap(a.written, b.read, aliases) ||
         overlap(a.read, b.written, aliases);
}
