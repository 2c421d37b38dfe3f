//===- HostLowering.cpp - kernels for the machine of the host -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Works on a copy of the kernels: the sites keep pointing at the operations as
// they were compiled for the GPU.
//
//===----------------------------------------------------------------------===//

#include "Lowering/HostLowering.h"

#include "Lowering/FunctionLowering.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::nm_sparse::emulator;

namespace {

class Lowering {
public:
  explicit Lowering(gpu::GPUModuleOp kernels)
      : original(kernels), context(kernels.getContext()), builder(context),
        host(ModuleOp::create(kernels.getLoc())), layout(*host) {}
  FailureOr<HostModule> run();

private:
  void placeGlobals();
  void addEntry(LLVM::LLVMFuncOp function);

  gpu::GPUModuleOp original;
  MLIRContext *context;
  OpBuilder builder;
  OwningOpRef<ModuleOp> host;
  /// The data layout of the host: 8-byte pointers, natural alignments.
  DataLayout layout;
  HostModule result;
  llvm::StringMap<uint64_t> sharedOffsets;
};

} // namespace

void Lowering::placeGlobals() {
  uint64_t end = 0;
  SmallVector<LLVM::GlobalOp> dynamic;
  for (auto global : original.getOps<LLVM::GlobalOp>()) {
    uint64_t bytes = layout.getTypeSize(global.getGlobalType());
    if (global.getAddrSpace() != unsigned(AddressSpace::Shared)) {
      result.globals.emplace_back(global.getSymName().str(), bytes);
      continue;
    }
    if (bytes == 0) {
      dynamic.push_back(global);
      continue;
    }
    uint64_t alignment = global.getAlignment().value_or(
        layout.getTypeABIAlignment(global.getGlobalType()));
    end = llvm::alignTo(end, alignment);
    sharedOffsets[global.getSymName()] = end;
    end += bytes;
  }
  // All dynamic arrays start behind the static ones.
  for (LLVM::GlobalOp global : dynamic)
    end = llvm::alignTo(end, global.getAlignment().value_or(16));
  for (LLVM::GlobalOp global : dynamic)
    sharedOffsets[global.getSymName()] = end;
  result.staticSharedBytes = end;
}

/// Adds `void <name>$entry(void **arguments)`.
void Lowering::addEntry(LLVM::LLVMFuncOp function) {
  KernelSignature kernel;
  kernel.name = function.getSymName().str();
  kernel.entry = kernel.name + "$entry";
  if (auto threads = function->getAttrOfType<DenseI32ArrayAttr>("nvvm.maxntid"))
    kernel.maxThreads = llvm::product_of(threads.asArrayRef());
  if (auto registers = function->getAttrOfType<IntegerAttr>("nvvm.maxnreg"))
    kernel.maxRegisters = registers.getInt();
  if (auto cluster = function->getAttrOfType<DenseI32ArrayAttr>(
          NVVM::NVVMDialect::getClusterDimAttrName())) {
    kernel.cluster.assign(cluster.asArrayRef().begin(),
                          cluster.asArrayRef().end());
    kernel.cluster.resize(3, 1);
  }

  auto pointer = LLVM::LLVMPointerType::get(context);
  Location loc = function.getLoc();
  builder.setInsertionPointToEnd(host->getBody());
  auto entry = LLVM::LLVMFuncOp::create(
      builder, loc, kernel.entry,
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context), {pointer}));
  builder.setInsertionPointToStart(entry.addEntryBlock(builder));
  SmallVector<Value> arguments;
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes())) {
    Value slot =
        LLVM::GEPOp::create(builder, loc, pointer, pointer,
                            entry.getArgument(0), LLVM::GEPArg(int32_t(i)));
    Value place = LLVM::LoadOp::create(builder, loc, pointer, slot);
    auto inPlace = function.getArgAttrOfType<TypeAttr>(
        i, LLVM::LLVMDialect::getByValAttrName());
    Type held = inPlace ? inPlace.getValue() : type;
    kernel.argumentBytes.push_back(layout.getTypeSize(held));
    auto declared = function.getArgAttrOfType<IntegerAttr>(
        i, LLVM::LLVMDialect::getAlignAttrName());
    kernel.argumentAlignments.push_back(inPlace && declared
                                            ? declared.getInt()
                                            : layout.getTypeABIAlignment(held));
    kernel.argumentIsInPlace.push_back(bool(inPlace));
    arguments.push_back(
        inPlace ? place
                : LLVM::LoadOp::create(builder, loc, type, place).getResult());
  }
  LLVM::CallOp::create(builder, loc, function, arguments);
  LLVM::ReturnOp::create(builder, loc, ValueRange());
  result.kernels.push_back(std::move(kernel));
}

FailureOr<HostModule> Lowering::run() {
  // Operations of the emulator itself access 4 bytes and more.
  result.granule = 4;
  placeGlobals();

  builder.setInsertionPointToStart(host->getBody());
  auto pointer = LLVM::LLVMPointerType::get(context);
  auto declare = [&](StringRef name, Type returned, ArrayRef<Type> arguments) {
    LLVM::LLVMFuncOp::create(builder, original.getLoc(), name,
                             LLVM::LLVMFunctionType::get(returned, arguments));
  };
  declare("nmsEmulatorAccess", pointer, {pointer, builder.getI64Type()});
  declare("nmsEmulatorOp", LLVM::LLVMVoidType::get(context),
          {pointer, pointer, pointer});

  SmallVector<LLVM::LLVMFuncOp> functions;
  for (Operation &op : *original.getBody()) {
    if (auto global = dyn_cast<LLVM::GlobalOp>(op)) {
      if (!sharedOffsets.contains(global.getSymName()))
        builder.clone(op);
      continue;
    }
    auto source = dyn_cast<LLVM::LLVMFuncOp>(op);
    if (!source)
      return op.emitOpError("is not emulated at the top of a gpu.module");
    auto copy = cast<LLVM::LLVMFuncOp>(builder.clone(op));
    if (failed(FunctionLowering(original, sharedOffsets, layout, result)
                   .lower(copy, source)))
      return failure();
    functions.push_back(copy);
    builder.setInsertionPointToEnd(host->getBody());
  }

  AttrTypeReplacer flatten;
  flatten.addReplacement(
      [&](LLVM::LLVMPointerType) -> Type { return pointer; });
  flatten.recursivelyReplaceElementsIn(*host, /*replaceAttrs=*/true,
                                       /*replaceLocs=*/false,
                                       /*replaceTypes=*/true);
  host->walk([](LLVM::GlobalOp global) { global.setAddrSpace(0); });
  for (LLVM::LLVMFuncOp function : functions) {
    if (function->hasAttr(NVVM::NVVMDialect::getKernelFuncAttrName()))
      addEntry(function);
    // The remaining attributes describe the GPU.
    SmallVector<StringAttr> foreign;
    for (NamedAttribute attribute : function->getDiscardableAttrs())
      foreign.push_back(attribute.getName());
    for (StringAttr name : foreign)
      function->removeDiscardableAttr(name);
    function.removeArgAttrsAttr();
    function.setCConv(LLVM::CConv::C);
  }
  result.module = std::move(host);
  return std::move(result);
}

FailureOr<HostModule>
nm_sparse::emulator::lowerForHost(gpu::GPUModuleOp kernels) {
  return Lowering(kernels).run();
}
