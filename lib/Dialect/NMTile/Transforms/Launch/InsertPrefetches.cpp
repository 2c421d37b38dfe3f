//===- InsertPrefetches.cpp - operands on their way before the wait -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Weights come from device memory: the positions first, then the rows that they
// name, one latency after the other, and all of it behind the wait for the
// kernel before. A prefetch reads nothing, and need not wait: asked for ahead
// of the wait, the operands are in L2 when the ring is filled. On an H200 that
// saves 0.5 to 0.7 us of products that take 3.4 to 4.4 (f16, 75 %).
//
//===----------------------------------------------------------------------===//

#include "Launch/Hints.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "nm_sparse/Chip/Chip.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h"
#include "nm_sparse/GPU/Support/Buffers.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSEINSERTPREFETCHESPASS
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

/// By so much a launch of an H200 is shorter if it overlaps with the kernel
/// ahead, in the fit of lib/Analysis/CostTable.cpp. What DRAM brings meanwhile
/// is asked for, 31 KB a CTA and up to 2 KB more of each buffer; more would
/// evict what the kernel ahead still reads.
static constexpr double kHiddenSeconds = 0.9e-6;

/// The buffer behind a kernel's operand: of a tensor map, the tensor's.
static Value getBuffer(Value operand) {
  if (auto cast = operand.getDefiningOp<UnrealizedConversionCastOp>())
    if (cast.getNumOperands() == 1)
      if (auto map =
              cast.getOperand(0).getDefiningOp<nvgpu::TmaCreateDescriptorOp>())
        return getBufferOf(map.getTensor());
  return getBufferOf(operand);
}

/// An argument of the function or a global: nobody in the function made it.
static bool isFromOutside(Value buffer) {
  auto argument = dyn_cast<BlockArgument>(buffer);
  return argument ? isa<FunctionOpInterface>(argument.getOwner()->getParentOp())
                  : bool(buffer.getDefiningOp<memref::GetGlobalOp>());
}

/// The component of a weight that `buffer`, an argument, holds; else null.
static ComponentAttr getComponent(Value buffer) {
  auto argument = dyn_cast<BlockArgument>(buffer);
  auto function =
      argument
          ? dyn_cast<FunctionOpInterface>(argument.getOwner()->getParentOp())
          : FunctionOpInterface();
  return function ? function.getArgAttrOfType<ComponentAttr>(
                        argument.getArgNumber(),
                        NMSparseDialect::ComponentAttrHelper::getNameStr())
                  : ComponentAttr();
}

/// Buffers outside `kernel` that its first K steps read from their fronts, and
/// that can be asked for. Rows of which there is any number are tokens, or
/// those of ragged panels, the longest panel first.
static SetVector<Value> findNeeded(gpu::LaunchFuncOp launch, HintsOp hints) {
  SetVector<Value> needed;
  for (Value stream : hints.getStreams()) {
    auto inner = dyn_cast<BlockArgument>(stream);
    if (!inner || inner.getArgNumber() >= launch.getNumKernelOperands())
      continue;
    Value operand = launch.getKernelOperand(inner.getArgNumber());
    Value buffer = getBuffer(operand);
    bool isMap = !isa<MemRefType>(stream.getType());
    auto type = dyn_cast<MemRefType>(buffer.getType());
    if (type && PrefetchOp::canPrefetch(type) && type.getRank() > 0 &&
        (!type.isDynamicDim(0) || getComponent(buffer)) &&
        (isMap || buffer == operand))
      needed.insert(buffer);
  }
  return needed;
}

/// Bytes of `buffer`, as many as are expected: ragged panels have the rows of
/// all panels one after the other, or an index for some of them each.
static double countBytes(Value buffer, int64_t tokens) {
  auto type = cast<MemRefType>(buffer.getType());
  double bytes = type.getElementTypeBitWidth() / 8.0;
  ComponentAttr component = getComponent(buffer);
  std::optional<ListedPanels> listed =
      component ? component.getPacked().getStorage().getListedPanels()
                : std::nullopt;
  if (listed && type.isDynamicDim(0)) {
    auto elements =
        double(component.getPacked().getWeightType().getNumElements());
    double rows = elements /
                  double(component.getPacked().getEncoding().getBlockN()) *
                  listed->density;
    bool isIndex = component.getComponent().role == ComponentRole::Positions;
    return bytes * double(type.getDimSize(1)) * rows /
           double(isIndex ? listed->blockRows : 1);
  }
  for (int64_t extent : type.getShape())
    bytes *= double(ShapedType::isDynamic(extent) ? tokens : extent);
  return bytes;
}

/// The argument of `kernel` that is `buffer`; one is added where it has none.
static Value findOrAddArgument(gpu::LaunchFuncOp launch, gpu::GPUFuncOp kernel,
                               Value buffer) {
  for (auto [operand, argument] :
       llvm::zip(launch.getKernelOperands(), kernel.getArguments()))
    if (operand == buffer)
      return argument;
  unsigned position = kernel.getNumArguments();
  launch.getKernelOperandsMutable().append(buffer);
  (void)kernel.insertArgument(position, buffer.getType(), DictionaryAttr(),
                              buffer.getLoc());
  return kernel.getArgument(position);
}

namespace {

struct InsertPrefetches
    : public nm_sparse::impl::NMSparseInsertPrefetchesPassBase<
          InsertPrefetches> {
  using Base::Base;

  void runOnOperation() override {
    const Chip *target = findChip(chip, gpu);
    if (!target || !target->hasDependentLaunch())
      return;
    SymbolTableCollection symbols;
    llvm::MapVector<gpu::GPUFuncOp, SmallVector<gpu::LaunchFuncOp>> launches;
    getOperation().walk([&](gpu::LaunchFuncOp launch) {
      if (auto kernel = symbols.lookupNearestSymbolFrom<gpu::GPUFuncOp>(
              launch, launch.getKernelAttr()))
        launches[kernel].push_back(launch);
    });
    llvm::DenseSet<Value> touched;
    getOperation().walk([&](gpu::LaunchFuncOp launch) {
      auto kernel = symbols.lookupNearestSymbolFrom<gpu::GPUFuncOp>(
          launch, launch.getKernelAttr());
      HintsOp hints = kernel ? findHints(kernel) : HintsOp();
      // Data to prefetch for one launch may just have been written by another.
      if (hints && hints.getHasSm() && launches[kernel].size() == 1)
        insert(launch, kernel, findNeeded(launch, hints), touched, *target);
      for (Value operand : launch.getKernelOperands())
        touched.insert(getBuffer(operand));
    });
  }

private:
  void insert(gpu::LaunchFuncOp launch, gpu::GPUFuncOp kernel,
              SetVector<Value> buffers, const llvm::DenseSet<Value> &touched,
              const Chip &target) {
    buffers.remove_if([&](Value buffer) {
      return !isFromOutside(buffer) || touched.contains(buffer);
    });
    int64_t expected = getExpectedTokens(launch, tokens);
    double all = 0;
    for (Value buffer : buffers)
      all += countBytes(buffer, expected);
    if (all == 0)
      return;
    double budget =
        kHiddenSeconds * target.dramBytes / double(target.multiprocessors);
    OpBuilder b = OpBuilder::atBlockBegin(&kernel.getBody().front());
    for (Value buffer : buffers) {
      double part = countBytes(buffer, expected);
      constexpr int64_t piece = PrefetchOp::kPieceBytes;
      int64_t bytes = llvm::alignTo(int64_t(budget * part / all), piece);
      PrefetchOp::create(b, buffer.getLoc(),
                         findOrAddArgument(launch, kernel, buffer),
                         std::max(bytes, piece), target.multiprocessors);
    }
  }
};

} // namespace
