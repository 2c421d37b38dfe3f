//===- FunctionLowering.cpp - one device function for the host ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lowering/FunctionLowering.h"

#include "Memory/Memory.h"
#include "Ops/Matrix/WarpgroupTable.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::nm_sparse::emulator;

/// Loads and stores of up to 16 bytes are one instruction.
static constexpr uint64_t widestAccess = 16;

static AddressSpace getSpace(Value pointer) {
  return static_cast<AddressSpace>(
      cast<LLVM::LLVMPointerType>(pointer.getType()).getAddressSpace());
}

static bool isShared(AddressSpace space) {
  return space == AddressSpace::Shared || space == AddressSpace::SharedCluster;
}

static std::string printLocation(Location loc) {
  if (auto file = loc->findInstanceOf<FileLineColLoc>())
    return llvm::formatv("{0}:{1}:{2}", file.getFilename().getValue(),
                         file.getLine(), file.getColumn());
  std::string text;
  llvm::raw_string_ostream(text) << loc;
  return text;
}

//===----------------------------------------------------------------------===//
// Sites and addresses
//===----------------------------------------------------------------------===//

Site &FunctionLowering::addSite(Operation *source) {
  auto site = std::make_unique<Site>();
  site->op = source;
  StringRef name = source->getName().getStringRef();
  if (auto call = dyn_cast<LLVM::CallIntrinsicOp>(source))
    name = call.getIntrin();
  site->text = (name + " at " + printLocation(source->getLoc())).str();
  result.sites.push_back(std::move(site));
  return *result.sites.back();
}

Value FunctionLowering::makePointer(Location loc, uint64_t address) {
  Value number = LLVM::ConstantOp::create(builder, loc, builder.getI64Type(),
                                          builder.getI64IntegerAttr(address));
  return LLVM::IntToPtrOp::create(builder, loc,
                                  LLVM::LLVMPointerType::get(context), number);
}

Value FunctionLowering::offsetPointer(Location loc, Value base,
                                      uint64_t offset) {
  return LLVM::GEPOp::create(builder, loc, LLVM::LLVMPointerType::get(context),
                             builder.getI8Type(), base,
                             ArrayRef<LLVM::GEPArg>{int32_t(offset)});
}

/// The types of `op` may have lost their address spaces; those of `source`
/// tell.
void FunctionLowering::lowerAddressCast(LLVM::AddrSpaceCastOp op,
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
// Operations
//===----------------------------------------------------------------------===//

/// `pointer`: the operand that is the address.
LogicalResult FunctionLowering::lowerAccess(Operation *op, Operation *source,
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
  // The host must not rely on more than is checked, such as that a vector of 64
  // bytes is aligned to that.
  if (auto load = dyn_cast<LLVM::LoadOp>(op))
    load.setAlignment(site.alignment);
  else if (auto store = dyn_cast<LLVM::StoreOp>(op))
    store.setAlignment(site.alignment);
  return success();
}

LogicalResult FunctionLowering::callHandler(Operation *op, Operation *source,
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
    offset = llvm::alignTo(
        offset, std::max<uint64_t>(layout.getTypeABIAlignment(type), 8));
    Value place = offsetPointer(loc, scratch, offset);
    LLVM::StoreOp::create(builder, loc, place,
                          offsetPointer(loc, scratch, i * 8));
    if (i < operands)
      LLVM::StoreOp::create(builder, loc, op->getOperand(i), place);
    places.push_back(place);
    offset += layout.getTypeSize(type);
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

LogicalResult FunctionLowering::lowerOp(Operation *op, Operation *source) {
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

void FunctionLowering::callBefore(Operation *op, Operation *source,
                                  Handler handler) {
  Site &site = addSite(source);
  site.handler = std::move(handler);
  builder.setInsertionPoint(op);
  LLVM::CallOp::create(
      builder, op->getLoc(), TypeRange(), "nmsEmulatorOp",
      ValueRange{makePointer(op->getLoc(), uint64_t(&site)), scratch, scratch});
}

/// Before `op` reads what `products` write, they must be complete.
void FunctionLowering::checkAccumulators(Operation *op, Operation *source,
                                         const ProductSet &products) {
  callBefore(op, source,
             [list = SmallVector<Operation *>(products.getArrayRef())](
                 Thread &thread, Values, Values) {
               for (Operation *product : list)
                 useAccumulators(thread, product);
             });
}

/// Before `op` writes registers of A, the products that read them must be
/// complete, and a fence must come between the writes and a product.
void FunctionLowering::checkRegistersOfA(Operation *op, Operation *source,
                                         const RegistersOfA &registers) {
  if (auto found = registers.readers.find(source);
      found != registers.readers.end())
    callBefore(op, source,
               [list = SmallVector<Operation *>(found->second.getArrayRef())](
                   Thread &thread, Values, Values) { writeA(thread, list); });
  if (auto found = registers.writers.find(source);
      found != registers.writers.end())
    callBefore(op, source,
               [list = SmallVector<Operation *>(found->second.getArrayRef())](
                   Thread &thread, Values, Values) { readA(thread, list); });
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

LogicalResult FunctionLowering::lower(LLVM::LLVMFuncOp function,
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
  RegistersOfA registersOfA = findRegistersOfA(source);
  for (auto [op, origin] : ops) {
    if (auto products = uses.find(origin); products != uses.end())
      checkAccumulators(op, origin, products->second);
    checkRegistersOfA(op, origin, registersOfA);
    if (failed(lowerOp(op, origin)))
      return failure();
  }
  builder.setInsertionPoint(scratch);
  scratch.getArraySizeMutable().assign(LLVM::ConstantOp::create(
      builder, loc, builder.getI32Type(),
      builder.getI32IntegerAttr(std::max<uint64_t>(scratchBytes, 1))));
  return success();
}
