//===- BindArguments.cpp - kernels that any host can launch ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// In two steps. First each memref that a launch passes becomes its fields, as
// values of the host, and what the host code says of them is folded
// (LaunchFields.cpp). Then the kernel is given the arguments that are left.
//
//===----------------------------------------------------------------------===//

#include "LaunchFields.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/Passes.h"
#include "nm_sparse/Base/KernelSymbols.h"
#include "nm_sparse/GPU/Passes.h"
#include "nm_sparse/GPU/Support/Buffers.h"
#include "nm_sparse/GPU/Support/KernelArguments.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSEBINDARGUMENTSPASS
#include "nm_sparse/GPU/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

//===----------------------------------------------------------------------===//
// What is passed
//===----------------------------------------------------------------------===//

namespace {

/// How a kernel gets one of its old arguments.
struct Source {
  enum class Kind { Unused, Constant, Pointer, Map, Number };
  Kind kind = Kind::Unused;
  Attribute constant; ///< A number, or the bytes from where a pointer is.
  unsigned index = 0; ///< Among the new arguments.

  bool operator==(const Source &other) const {
    return kind == other.kind && constant == other.constant &&
           index == other.index;
  }
};

/// The new arguments of a kernel, for one launch.
struct Binding {
  SmallVector<Source> sources; ///< One for each old argument.
  SmallVector<Value> operands;
  SmallVector<Type> types;
  SmallVector<NamedAttrList> attributes; ///< Of the new arguments.
  DenseI32ArrayAttr cluster;

  /// Returns true if a kernel for one serves the other.
  bool equals(const Binding &other) const {
    return sources == other.sources && types == other.types &&
           attributes == other.attributes && cluster == other.cluster;
  }
};

/// Works out the binding of one launch.
class Binder {
public:
  Binder(gpu::LaunchFuncOp launch, LLVM::LLVMFuncOp kernel)
      : launch(launch), kernel(kernel), b(launch) {}

  FailureOr<Binding> bind() {
    binding.sources.resize(kernel.getNumArguments());
    auto operands = launch.getKernelOperands();
    for (auto [number, operand] : llvm::enumerate(operands))
      if (isNeeded(number) && failed(collect(number, operand)))
        return failure();
    addPointers();
    for (unsigned number : maps)
      addMap(number, operands[number]);
    for (unsigned number : numbers)
      addNumber(number, operands[number]);
    if (failed(addCluster()))
      return failure();
    return std::move(binding);
  }

private:
  struct Use {
    bool reads = false, writes = false;
    SmallVector<std::pair<unsigned, int64_t>> arguments; ///< And bytes.
  };

  /// Returns true if the kernel reads argument `number`, or if it is a pointer
  /// to what the kernel accesses, perhaps by a tensor map alone: hosts order
  /// launches by their pointers.
  bool isNeeded(unsigned number) {
    return !kernel.getArgument(number).use_empty() ||
           kernel.getArgAttr(number,
                             LLVM::LLVMDialect::getReadonlyAttrName()) ||
           kernel.getArgAttr(number, LLVM::LLVMDialect::getWriteOnlyAttrName());
  }

  /// Notes what argument `number` is.
  LogicalResult collect(unsigned number, Value operand) {
    Source &source = binding.sources[number];
    Type type = kernel.getArgumentTypes()[number];
    Attribute constant;
    if (matchPattern(operand, m_Constant(&constant))) {
      if (auto integer = dyn_cast<IntegerAttr>(constant))
        constant = IntegerAttr::get(
            type, integer.getValue().sextOrTrunc(type.getIntOrFloatBitWidth()));
      source.kind = Source::Kind::Constant;
      source.constant = constant;
      return success();
    }
    if (getTensorMap(operand)) {
      source.kind = Source::Kind::Map;
      maps.push_back(number);
      return success();
    }
    if (!isa<LLVM::LLVMPointerType>(type)) {
      source.kind = Source::Kind::Number;
      numbers.push_back(number);
      return success();
    }
    BufferPlace place = findPlace(operand);
    if (!place.buffer)
      return launch.emitError() << "passes a pointer as argument " << number
                                << " whose buffer is not known";
    source.kind = Source::Kind::Pointer;
    Use &use = uses[place.buffer];
    auto has = [&](StringRef name) {
      return kernel.getArgAttr(number, name) != nullptr;
    };
    // A map is only read.
    bool isMap = llvm::any_of(kernel.getArgument(number).getUsers(),
                              llvm::IsaPred<NVVM::FenceProxyAcquireOp>);
    use.reads |= !has(LLVM::LLVMDialect::getWriteOnlyAttrName());
    use.writes |= !has(LLVM::LLVMDialect::getReadonlyAttrName()) && !isMap;
    use.arguments.push_back({number, place.bytes});
    return success();
  }

  unsigned add(Type type, Value operand) {
    binding.types.push_back(type);
    binding.operands.push_back(operand);
    binding.attributes.emplace_back();
    return binding.types.size() - 1;
  }

  void addPointers() {
    auto pointer = LLVM::LLVMPointerType::get(b.getContext());
    for (auto [reads, writes] :
         {std::pair(true, false), {true, true}, {false, true}})
      for (auto &[buffer, use] : uses) {
        if (use.reads != reads || use.writes != writes)
          continue;
        unsigned index =
            add(pointer, getDevicePointer(b, launch.getLoc(), buffer));
        NamedAttrList &attributes = binding.attributes.back();
        if (!writes)
          attributes.set(LLVM::LLVMDialect::getReadonlyAttrName(),
                         b.getUnitAttr());
        if (!reads)
          attributes.set(LLVM::LLVMDialect::getWriteOnlyAttrName(),
                         b.getUnitAttr());
        for (auto [number, bytes] : use.arguments) {
          binding.sources[number].index = index;
          binding.sources[number].constant = b.getI64IntegerAttr(bytes);
        }
      }
  }

  void addMap(unsigned number, Value operand) {
    binding.sources[number].index =
        add(LLVM::LLVMPointerType::get(b.getContext()), operand);
    NamedAttrList &attributes = binding.attributes.back();
    attributes.set(LLVM::LLVMDialect::getByValAttrName(),
                   TypeAttr::get(LLVM::LLVMArrayType::get(b.getI8Type(),
                                                          kTensorMapBytes)));
    attributes.set(LLVM::LLVMDialect::getAlignAttrName(),
                   b.getI64IntegerAttr(64));
    attributes.set(NVVM::NVVMDialect::getGridConstantAttrName(),
                   b.getUnitAttr());
  }

  /// One number for all arguments that get the same value.
  void addNumber(unsigned number, Value operand) {
    Type type = kernel.getArgumentTypes()[number];
    auto [place, isNew] = known.try_emplace({operand, type}, 0);
    if (isNew) {
      Type passed = type.isInteger(64) ? b.getI32Type() : type;
      Value value = operand;
      if (operand.getType().isIndex())
        value = arith::IndexCastOp::create(b, launch.getLoc(), passed, operand);
      else if (passed != operand.getType())
        value = arith::TruncIOp::create(b, launch.getLoc(), passed, operand);
      place->second = add(passed, value);
    }
    binding.sources[number].index = place->second;
  }

  LogicalResult addCluster() {
    if (!launch.hasClusterSize())
      return success();
    gpu::KernelDim3 size = launch.getClusterSizeOperandValues();
    SmallVector<int32_t> sizes;
    for (Value value : {size.x, size.y, size.z}) {
      APInt constant;
      if (!matchPattern(value, m_ConstantInt(&constant)))
        return launch.emitError(
            "has a cluster whose size is no constant, and a kernel can have "
            "no other");
      sizes.push_back(constant.getSExtValue());
    }
    binding.cluster = b.getDenseI32ArrayAttr(sizes);
    return success();
  }

  gpu::LaunchFuncOp launch;
  LLVM::LLVMFuncOp kernel;
  OpBuilder b;
  Binding binding;
  llvm::MapVector<Value, Use> uses;
  SmallVector<unsigned> maps, numbers;
  llvm::DenseMap<std::pair<Value, Type>, unsigned> known;
};

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// The kernels that were made of one.
struct Variants {
  LLVM::LLVMFuncOp original; ///< As it was.
  std::vector<std::pair<Binding, LLVM::LLVMFuncOp>> bound;
};

} // namespace

/// Gives `kernel` the arguments of `binding`.
static void rewrite(LLVM::LLVMFuncOp kernel, const Binding &binding) {
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
    case Source::Kind::Unused:
      continue;
    case Source::Kind::Constant:
      value = LLVM::ConstantOp::create(b, loc, old.getType(),
                                       cast<TypedAttr>(source.constant));
      break;
    case Source::Kind::Map:
      value = added[source.index];
      break;
    case Source::Kind::Pointer:
      value = added[source.index];
      if (int64_t bytes = cast<IntegerAttr>(source.constant).getInt())
        value =
            LLVM::GEPOp::create(b, loc, value.getType(), b.getI8Type(), value,
                                ArrayRef<LLVM::GEPArg>{int32_t(bytes)});
      break;
    case Source::Kind::Number:
      value = added[source.index];
      if (value.getType() != old.getType()) {
        Value &wide = widened[source.index];
        if (!wide)
          wide = LLVM::ZExtOp::create(b, loc, old.getType(), value);
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

    std::vector<std::pair<gpu::LaunchFuncOp, Binding>> bindings;
    WalkResult bound = getOperation().walk([&](gpu::LaunchFuncOp launch) {
      auto kernel = symbols.lookupNearestSymbolFrom<LLVM::LLVMFuncOp>(
          launch, launch.getKernelAttr());
      FailureOr<Binding> binding = Binder(launch, kernel).bind();
      if (failed(binding))
        return WalkResult::interrupt();
      bindings.push_back({launch, std::move(*binding)});
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
  static void apply(gpu::LaunchFuncOp launch, Binding &binding,
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
      made.bound.push_back({binding, bound});
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
