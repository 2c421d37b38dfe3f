//===- BindArguments.cpp - kernels that any host can launch ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// In two steps. First each memref that a launch passes becomes its fields, as
// values of the host, and what the host code says of them is folded
// (LaunchFields.cpp). Then the kernel is given the arguments that are left
// (ArgumentBinding.cpp says which).
//
//===----------------------------------------------------------------------===//

#include "ArgumentBinding.h"
#include "LaunchFields.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/Passes.h"
#include "nm_sparse/Base/KernelSymbols.h"
#include "nm_sparse/GPU/Passes.h"
#include "nm_sparse/GPU/Support/KernelArguments.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSEBINDARGUMENTSPASS
#include "nm_sparse/GPU/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;
using Kind = ArgumentSource::Kind;

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

namespace {

/// The kernels that were made of one.
struct Variants {
  LLVM::LLVMFuncOp original; ///< As it was.
  std::vector<std::pair<ArgumentBinding, LLVM::LLVMFuncOp>> bound;
};

} // namespace

/// `value`, an i32, as an i64 of which LLVM knows no bits: where it knows that
/// the upper half is zero, it narrows the arithmetic of addresses, which ptxas
/// then schedules worse by up to 8 percent.
static Value widen(OpBuilder &b, Location loc, Value value, Type type) {
  auto dialect =
      LLVM::AsmDialectAttr::get(b.getContext(), LLVM::AsmDialect::AD_ATT);
  return LLVM::InlineAsmOp::create(
             b, loc, type, value, "cvt.u64.u32 $0, $1;", "=l,r",
             /*has_side_effects=*/false, /*is_align_stack=*/false,
             LLVM::TailCallKind::None, dialect, /*operand_attrs=*/ArrayAttr())
      .getResult(0);
}

/// Gives `kernel` the arguments of `binding`.
static void rewrite(LLVM::LLVMFuncOp kernel, const ArgumentBinding &binding) {
  Block &entry = kernel.getBody().front();
  OpBuilder b = OpBuilder::atBlockBegin(&entry);
  Location loc = kernel.getLoc();
  unsigned before = kernel.getNumArguments();
  SmallVector<Value> added;
  for (Type type : binding.types)
    added.push_back(entry.addArgument(type, loc));
  // One value for all arguments that are the same.
  llvm::DenseMap<unsigned, Value> widened;
  for (auto [number, source] : llvm::enumerate(binding.sources)) {
    BlockArgument old = entry.getArgument(number);
    Value value;
    switch (source.kind) {
    case Kind::Unused:
      continue;
    case Kind::Constant:
      value = LLVM::ConstantOp::create(b, loc, old.getType(),
                                       cast<TypedAttr>(source.constant));
      break;
    case Kind::Map:
      value = added[source.index];
      break;
    case Kind::Pointer:
      value = added[source.index];
      if (int64_t bytes = cast<IntegerAttr>(source.constant).getInt())
        value =
            LLVM::GEPOp::create(b, loc, value.getType(), b.getI8Type(), value,
                                ArrayRef<LLVM::GEPArg>{int32_t(bytes)});
      break;
    case Kind::Number:
      value = added[source.index];
      if (value.getType() != old.getType()) {
        Value &wide = widened[source.index];
        if (!wide)
          wide = widen(b, loc, value, old.getType());
        value = wide;
      }
      break;
    }
    old.replaceAllUsesWith(value);
  }
  entry.eraseArguments(0, before);
  kernel.setFunctionType(LLVM::LLVMFunctionType::get(
      LLVM::LLVMVoidType::get(kernel.getContext()), binding.types));
  SmallVector<Attribute> attributes;
  for (const NamedAttrList &list : binding.attributes)
    attributes.push_back(list.getDictionary(kernel.getContext()));
  kernel.setArgAttrsAttr(ArrayAttr::get(kernel.getContext(), attributes));
  if (binding.cluster)
    kernel->setAttr(NVVM::NVVMDialect::getClusterDimAttrName(),
                    binding.cluster);
}

namespace {

struct BindArguments
    : public nm_sparse::impl::NMSparseBindArgumentsPassBase<BindArguments> {
  void getDependentDialects(DialectRegistry &registry) const override {
    Base::getDependentDialects(registry);
    OpPassManager pm = getFolding();
    pm.getDependentDialects(registry);
  }

  void runOnOperation() override {
    SymbolTableCollection symbols;
    SmallVector<gpu::LaunchFuncOp> launches;
    WalkResult checked = getOperation().walk([&](gpu::LaunchFuncOp launch) {
      launches.push_back(launch);
      if (!launch->getParentOfType<func::FuncOp>()) {
        launch.emitError("is in no func.func, whose code says what it passes");
        return WalkResult::interrupt();
      }
      return findLoweredKernel(launch, symbols) ? WalkResult::advance()
                                                : WalkResult::interrupt();
    });
    if (checked.wasInterrupted())
      return signalPassFailure();

    llvm::SetVector<Operation *> functions;
    for (gpu::LaunchFuncOp launch : launches) {
      expandOperands(launch);
      functions.insert(launch->getParentOfType<func::FuncOp>());
    }
    for (Operation *function : functions)
      if (failed(fold(function)))
        return signalPassFailure();

    std::vector<std::pair<gpu::LaunchFuncOp, ArgumentBinding>> bindings;
    WalkResult bound = getOperation().walk([&](gpu::LaunchFuncOp launch) {
      auto kernel = symbols.lookupNearestSymbolFrom<LLVM::LLVMFuncOp>(
          launch, launch.getKernelAttr());
      FailureOr<ArgumentBinding> binding = bindArguments(launch, kernel);
      if (failed(binding))
        return WalkResult::interrupt();
      bindings.emplace_back(launch, std::move(*binding));
      return WalkResult::advance();
    });
    if (bound.wasInterrupted())
      return signalPassFailure();
    llvm::MapVector<Operation *, Variants> variants;
    for (auto &[launch, binding] : bindings)
      apply(launch, binding, variants, symbols);
    for (auto &[kernel, made] : variants)
      if (made.original)
        made.original.erase();
    for (Operation *function : functions)
      if (failed(fold(function)))
        return signalPassFailure();
  }

private:
  static OpPassManager getFolding() {
    OpPassManager pm(func::FuncOp::getOperationName());
    pm.addPass(createCanonicalizerPass());
    pm.addPass(createCSEPass());
    return pm;
  }

  LogicalResult fold(Operation *function) {
    RewritePatternSet patterns(&getContext());
    populateResolveLaunchFieldsPatterns(patterns);
    if (failed(applyPatternsGreedily(function, std::move(patterns))))
      return failure();
    OpPassManager pm = getFolding();
    return runPipeline(pm, function);
  }

  /// Makes `launch` one of a kernel with the arguments of `binding`.
  static void apply(gpu::LaunchFuncOp launch, ArgumentBinding &binding,
                    llvm::MapVector<Operation *, Variants> &variants,
                    SymbolTableCollection &symbols) {
    auto kernel = symbols.lookupNearestSymbolFrom<LLVM::LLVMFuncOp>(
        launch, launch.getKernelAttr());
    Variants &made = variants[kernel];
    auto found = llvm::find_if(
        made.bound, [&](auto &entry) { return entry.first.equals(binding); });
    if (found == made.bound.end()) {
      // The first one takes the kernel's place, and a copy is kept for others.
      LLVM::LLVMFuncOp bound = kernel;
      if (made.bound.empty())
        made.original = kernel.clone();
      else
        bound = addVariant(kernel, made.original, symbols);
      rewrite(bound, binding);
      made.bound.emplace_back(binding, bound);
      found = std::prev(made.bound.end());
    }
    launch.setKernelAttr(SymbolRefAttr::get(
        launch.getKernelModuleName(),
        {FlatSymbolRefAttr::get(found->second.getOperation())}));
    launch.getKernelOperandsMutable().assign(binding.operands);
    launch.getClusterSizeXMutable().clear();
    launch.getClusterSizeYMutable().clear();
    launch.getClusterSizeZMutable().clear();
  }

  /// A further copy of `original`, with its marker.
  static LLVM::LLVMFuncOp addVariant(LLVM::LLVMFuncOp kernel,
                                     LLVM::LLVMFuncOp original,
                                     SymbolTableCollection &symbols) {
    auto module = kernel->getParentOfType<gpu::GPUModuleOp>();
    SymbolTable &table = symbols.getSymbolTable(module);
    LLVM::LLVMFuncOp copy = original.clone();
    table.insert(copy, std::next(Block::iterator(kernel)));
    if (Operation *marker =
            table.lookup(nms::getWaitsSymbol(kernel.getName().str()))) {
      Operation *second = marker->clone();
      SymbolTable::setSymbolName(second,
                                 nms::getWaitsSymbol(copy.getName().str()));
      table.insert(second, Block::iterator(copy));
    }
    return copy;
  }
};

} // namespace
