//===- HostLowering.cpp - kernels for the machine of the host -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Works on a copy of the kernels: the sites keep pointing at the operations as
// they were compiled for the GPU.
//
//===----------------------------------------------------------------------===//

#include "HostLowering.h"

#include "AccumulatorUses.h"
#include "Memory.h"
#include "OpTable.h"
#include "Ops/WarpgroupTable.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::nm_sparse::emulator;

namespace {

/// Loads and stores of up to 16 bytes are one instruction.
constexpr uint64_t widestAccess = 16;

AddressSpace getSpace(Value pointer) {
  return static_cast<AddressSpace>(
      cast<LLVM::LLVMPointerType>(pointer.getType()).getAddressSpace());
}

bool isShared(AddressSpace space) {
  return space == AddressSpace::Shared || space == AddressSpace::SharedCluster;
}

std::string printLocation(Location loc) {
  if (auto file = loc->findInstanceOf<FileLineColLoc>())
    return llvm::formatv("{0}:{1}:{2}", file.getFilename().getValue(),
                         file.getLine(), file.getColumn());
  std::string text;
  llvm::raw_string_ostream(text) << loc;
  return text;
}

class Lowering {
public:
  explicit Lowering(gpu::GPUModuleOp kernels)
      : original(kernels), context(kernels.getContext()), builder(context),
        host(ModuleOp::create(kernels.getLoc())), layout(*host) {}
  FailureOr<HostModule> run();

private:
  LogicalResult placeGlobals();
  LogicalResult lowerFunction(LLVM::LLVMFuncOp function,
                              LLVM::LLVMFuncOp source);
  LogicalResult lowerOp(Operation *op, Operation *source);
  LogicalResult lowerAccess(Operation *op, Operation *source, unsigned pointer,
                            Type type, uint64_t alignment, AccessKind kind,
                            bool polls);
  LogicalResult callHandler(Operation *op, Operation *source,
                            const OpEntry &entry);
  void lowerAddressCast(LLVM::AddrSpaceCastOp op, LLVM::AddrSpaceCastOp source);
  Site &addSite(Operation *source);
  Value makePointer(Location loc, uint64_t address);
  Value offsetPointer(Location loc, Value base, uint64_t offset);
  void checkAccumulators(Operation *op, Operation *source,
                         const ProductSet &products);
  void addEntry(LLVM::LLVMFuncOp function);
  uint64_t getBytes(Type type) { return layout.getTypeSize(type); }
  uint64_t getAlignment(Type type) { return layout.getTypeABIAlignment(type); }

  gpu::GPUModuleOp original;
  MLIRContext *context;
  OpBuilder builder;
  OwningOpRef<ModuleOp> host;
  /// Of the host: 8-byte pointers, natural alignments.
  DataLayout layout;
  HostModule result;
  llvm::StringMap<uint64_t> sharedOffsets;
  /// Operands and results of one operation at a time.
  LLVM::AllocaOp scratch;
  uint64_t scratchBytes = 0;
};

} // namespace

//===----------------------------------------------------------------------===//
// Sites and addresses
//===----------------------------------------------------------------------===//

Site &Lowering::addSite(Operation *source) {
  auto site = std::make_unique<Site>();
  site->op = source;
  StringRef name = source->getName().getStringRef();
  if (auto call = dyn_cast<LLVM::CallIntrinsicOp>(source))
    name = call.getIntrin();
  site->text = (name + " at " + printLocation(source->getLoc())).str();
  result.sites.push_back(std::move(site));
  return *result.sites.back();
}

Value Lowering::makePointer(Location loc, uint64_t address) {
  Value number = LLVM::ConstantOp::create(builder, loc, builder.getI64Type(),
                                          builder.getI64IntegerAttr(address));
  return LLVM::IntToPtrOp::create(builder, loc,
                                  LLVM::LLVMPointerType::get(context), number);
}

Value Lowering::offsetPointer(Location loc, Value base, uint64_t offset) {
  return LLVM::GEPOp::create(builder, loc, LLVM::LLVMPointerType::get(context),
                             builder.getI8Type(), base,
                             ArrayRef<LLVM::GEPArg>{int32_t(offset)});
}

/// The types of `op` may have lost their address spaces; those of `source`
/// tell.
void Lowering::lowerAddressCast(LLVM::AddrSpaceCastOp op,
                                LLVM::AddrSpaceCastOp source) {
  AddressSpace from = getSpace(source.getArg());
  AddressSpace to = getSpace(source.getRes());
  Value pointer = op.getArg();
  if (isShared(from) != isShared(to)) {
    builder.setInsertionPoint(op);
    Location loc = op.getLoc();
    Type i64 = builder.getI64Type();
    Value address = LLVM::PtrToIntOp::create(builder, loc, i64, pointer);
    Value window = LLVM::ConstantOp::create(
        builder, loc, i64, builder.getI64IntegerAttr(sharedWindow));
    Value moved =
        isShared(from)
            ? LLVM::AddOp::create(builder, loc, address, window).getResult()
            : LLVM::SubOp::create(builder, loc, address, window).getResult();
    pointer = LLVM::IntToPtrOp::create(
        builder, loc, LLVM::LLVMPointerType::get(context), moved);
  }
  op.getRes().replaceAllUsesWith(pointer);
  op.erase();
}

//===----------------------------------------------------------------------===//
// Globals
//===----------------------------------------------------------------------===//

LogicalResult Lowering::placeGlobals() {
  uint64_t end = 0;
  SmallVector<LLVM::GlobalOp> dynamic;
  for (auto global : original.getOps<LLVM::GlobalOp>()) {
    uint64_t bytes = getBytes(global.getGlobalType());
    if (global.getAddrSpace() != unsigned(AddressSpace::Shared)) {
      result.globals.emplace_back(global.getSymName().str(), bytes);
      continue;
    }
    if (bytes == 0) {
      dynamic.push_back(global);
      continue;
    }
    uint64_t alignment =
        global.getAlignment().value_or(getAlignment(global.getGlobalType()));
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
  return success();
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

/// `pointer`: the operand that is the address.
LogicalResult Lowering::lowerAccess(Operation *op, Operation *source,
                                    unsigned pointer, Type type,
                                    uint64_t alignment, AccessKind kind,
                                    bool polls) {
  Site &site = addSite(source);
  uint64_t bytes = layout.getTypeSizeInBits(type) / 8;
  if (bytes == 0)
    bytes = 1;
  uint64_t natural = std::min(llvm::bit_ceil(bytes), widestAccess);
  site.kind = kind;
  site.space = getSpace(source->getOperand(pointer));
  site.bytes = bytes;
  site.alignment = alignment ? std::min(alignment, natural) : natural;
  site.polls = polls;
  result.granule = std::min<uint64_t>(
      result.granule, llvm::MinAlign(site.bytes, site.alignment));

  builder.setInsertionPoint(op);
  Location loc = op->getLoc();
  auto pointerType = LLVM::LLVMPointerType::get(context);
  Value address = LLVM::PtrToIntOp::create(builder, loc, builder.getI64Type(),
                                           op->getOperand(pointer));
  Value host = LLVM::CallOp::create(
                   builder, loc, pointerType, "nmsEmulatorAccess",
                   ValueRange{makePointer(loc, uint64_t(&site)), address})
                   .getResult();
  op->setOperand(pointer, host);
  return success();
}

LogicalResult Lowering::callHandler(Operation *op, Operation *source,
                                    const OpEntry &entry) {
  FailureOr<Handler> handler = entry.prepare(source);
  if (failed(handler))
    return failure();
  Site &site = addSite(source);
  site.handler = std::move(*handler);

  // Tables of addresses, then the values that they point at.
  Location loc = op->getLoc();
  builder.setInsertionPoint(op);
  auto pointerType = LLVM::LLVMPointerType::get(context);
  AttrTypeReplacer flatten;
  flatten.addReplacement(
      [&](LLVM::LLVMPointerType) -> Type { return pointerType; });
  SmallVector<Type> types;
  for (Value operand : op->getOperands())
    types.push_back(flatten.replace(operand.getType()));
  unsigned operands = types.size();
  for (Value value : op->getResults())
    types.push_back(flatten.replace(value.getType()));
  SmallVector<Value> places;
  uint64_t offset = types.size() * 8;
  for (auto [i, type] : llvm::enumerate(types)) {
    // Wide values are read as arrays of vectors by handlers.
    offset = llvm::alignTo(offset, std::max<uint64_t>(getAlignment(type), 8));
    Value place = offsetPointer(loc, scratch, offset);
    LLVM::StoreOp::create(builder, loc, place,
                          offsetPointer(loc, scratch, i * 8));
    if (i < operands)
      LLVM::StoreOp::create(builder, loc, op->getOperand(i), place);
    places.push_back(place);
    offset += getBytes(type);
  }
  scratchBytes = std::max(scratchBytes, offset);
  LLVM::CallOp::create(builder, loc, TypeRange(), "nmsEmulatorOp",
                       ValueRange{makePointer(loc, uint64_t(&site)), scratch,
                                  offsetPointer(loc, scratch, operands * 8)});
  for (auto [i, value] : llvm::enumerate(op->getResults())) {
    Value loaded = LLVM::LoadOp::create(builder, loc, types[operands + i],
                                        places[operands + i]);
    value.replaceAllUsesWith(loaded);
  }
  op->erase();
  return success();
}

LogicalResult Lowering::lowerOp(Operation *op, Operation *source) {
  auto isOrdered = [](auto access) {
    return access.getVolatile_() ||
           access.getOrdering() != LLVM::AtomicOrdering::not_atomic;
  };
  if (auto load = dyn_cast<LLVM::LoadOp>(op))
    return lowerAccess(
        op, source, 0, load.getType(), load.getAlignment().value_or(0),
        isOrdered(load) ? AccessKind::StrongRead : AccessKind::Read,
        isOrdered(load));
  if (auto store = dyn_cast<LLVM::StoreOp>(op))
    return lowerAccess(
        op, source, 1, store.getValue().getType(),
        store.getAlignment().value_or(0),
        isOrdered(store) ? AccessKind::StrongWrite : AccessKind::Write, false);
  if (auto update = dyn_cast<LLVM::AtomicRMWOp>(op))
    return lowerAccess(op, source, 0, update.getVal().getType(),
                       update.getAlignment().value_or(0), AccessKind::Atomic,
                       false);
  if (auto swap = dyn_cast<LLVM::AtomicCmpXchgOp>(op))
    return lowerAccess(op, source, 0, swap.getVal().getType(),
                       swap.getAlignment().value_or(0), AccessKind::Atomic,
                       true);
  if (auto cast = dyn_cast<LLVM::AddrSpaceCastOp>(op)) {
    lowerAddressCast(cast, llvm::cast<LLVM::AddrSpaceCastOp>(source));
    return success();
  }
  if (auto address = dyn_cast<LLVM::AddressOfOp>(op)) {
    auto offset = sharedOffsets.find(address.getGlobalName());
    if (offset == sharedOffsets.end())
      return success();
    builder.setInsertionPoint(op);
    Value pointer = makePointer(op->getLoc(), offset->second);
    address.getRes().replaceAllUsesWith(pointer);
    op->erase();
    return success();
  }

  StringRef name = source->getName().getStringRef();
  if (const OpEntry *entry = findOpEntry(name))
    return callHandler(op, source, *entry);
  auto refuse = [&](const Twine &what) {
    return source->emitOpError()
           << what << " is not emulated; docs/Emulator.md says how to add it";
  };
  if (auto call = dyn_cast<LLVM::CallIntrinsicOp>(op)) {
    if (const OpEntry *entry = findIntrinsicEntry(call.getIntrin()))
      return callHandler(op, source, *entry);
    if (call.getIntrin().starts_with("llvm.nvvm."))
      return refuse("of " + call.getIntrin());
    return success();
  }
  if (auto call = dyn_cast<LLVM::CallOp>(op)) {
    std::optional<StringRef> callee = call.getCallee();
    auto function =
        callee ? original.lookupSymbol<LLVM::LLVMFuncOp>(*callee) : nullptr;
    if (!function || function.isExternal())
      return refuse(callee ? "of the external function @" + *callee
                           : Twine("of a function pointer"));
    return success();
  }
  if (isa<LLVM::MemcpyOp, LLVM::MemcpyInlineOp, LLVM::MemmoveOp, LLVM::MemsetOp,
          LLVM::MaskedLoadOp, LLVM::MaskedStoreOp, LLVM::masked_gather,
          LLVM::masked_scatter, LLVM::InlineAsmOp>(op))
    return refuse("an operation on memory of this kind");
  if (!isa<LLVM::LLVMDialect>(op->getDialect()))
    return refuse("an operation of the " + op->getName().getDialectNamespace() +
                  " dialect of this kind");
  return success();
}

/// Before `op` reads what `products` write, they must be complete.
void Lowering::checkAccumulators(Operation *op, Operation *source,
                                 const ProductSet &products) {
  Site &site = addSite(source);
  site.handler =
      [list = SmallVector<Operation *>(products.begin(), products.end())](
          Thread &thread, Values, Values) {
        for (Operation *product : list)
          useAccumulators(thread, product);
      };
  builder.setInsertionPoint(op);
  LLVM::CallOp::create(
      builder, op->getLoc(), TypeRange(), "nmsEmulatorOp",
      ValueRange{makePointer(op->getLoc(), uint64_t(&site)), scratch, scratch});
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

LogicalResult Lowering::lowerFunction(LLVM::LLVMFuncOp function,
                                      LLVM::LLVMFuncOp source) {
  if (function.isExternal())
    return success();
  SmallVector<std::pair<Operation *, Operation *>> ops;
  SmallVector<Operation *> copies, sources;
  function.walk([&](Operation *op) { copies.push_back(op); });
  source.walk([&](Operation *op) { sources.push_back(op); });
  for (auto [op, origin] : llvm::zip_equal(copies, sources))
    if (op != function)
      ops.emplace_back(op, origin);

  builder.setInsertionPointToStart(&function.getBody().front());
  Location loc = function.getLoc();
  Value one = LLVM::ConstantOp::create(builder, loc, builder.getI32Type(),
                                       builder.getI32IntegerAttr(1));
  scratch =
      LLVM::AllocaOp::create(builder, loc, LLVM::LLVMPointerType::get(context),
                             builder.getI8Type(), one, /*alignment=*/64);
  scratchBytes = 0;
  llvm::DenseMap<Operation *, ProductSet> uses = findAccumulatorUses(source);
  for (auto [op, origin] : ops) {
    if (auto products = uses.find(origin); products != uses.end())
      checkAccumulators(op, origin, products->second);
    if (failed(lowerOp(op, origin)))
      return failure();
  }
  builder.setInsertionPoint(scratch);
  scratch.getArraySizeMutable().assign(LLVM::ConstantOp::create(
      builder, loc, builder.getI32Type(),
      builder.getI32IntegerAttr(std::max<uint64_t>(scratchBytes, 1))));
  return success();
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

  auto pointer = LLVM::LLVMPointerType::get(context);
  Location loc = function.getLoc();
  builder.setInsertionPointToEnd(host->getBody());
  auto entry = LLVM::LLVMFuncOp::create(
      builder, loc, kernel.entry,
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context), {pointer}));
  builder.setInsertionPointToStart(entry.addEntryBlock(builder));
  SmallVector<Value> arguments;
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes())) {
    Value place = LLVM::LoadOp::create(
        builder, loc, pointer, offsetPointer(loc, entry.getArgument(0), i * 8));
    auto inPlace = function.getArgAttrOfType<TypeAttr>(
        i, LLVM::LLVMDialect::getByValAttrName());
    Type held = inPlace ? inPlace.getValue() : type;
    kernel.argumentBytes.push_back(getBytes(held));
    auto declared = function.getArgAttrOfType<IntegerAttr>(
        i, LLVM::LLVMDialect::getAlignAttrName());
    kernel.argumentAlignments.push_back(
        inPlace && declared ? declared.getInt() : getAlignment(held));
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
  if (failed(placeGlobals()))
    return failure();

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
    if (failed(lowerFunction(copy, source)))
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
    // What remains describes the GPU.
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
