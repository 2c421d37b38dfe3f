//===- PackChecks.cpp - what a host checks of packed weights --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Exactly this, in one block, where nothing else uses either buffer:
//
//   memref.store -1, %word         a word of the host's stack
//   gpu.memcpy %found, %word       before the launches that take %found
//   gpu.memcpy %word, %found       behind them
//   %value = memref.load %word
//   call @nmsRuntimeCheckPacked(%value, n, m, batch, windows, panels)
//
//===----------------------------------------------------------------------===//

#include "PackChecks.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"
#include "nm_sparse/Packing/Packing.h"

using namespace mlir;
using namespace mlir::nm_sparse;

static constexpr llvm::StringLiteral kCheckPacked = "nmsRuntimeCheckPacked";
static constexpr llvm::StringLiteral kNumbers[] = {"n", "m", "batch", "windows",
                                                   "panels"};

/// A buffer of one i64.
static bool isWord(Value value) {
  auto type = dyn_cast<MemRefType>(value.getType());
  return type && type.getElementType().isInteger(64) &&
         type.getShape() == ArrayRef<int64_t>{1};
}

/// Puts `op` into `slot` if it is what the slot holds, and the first one.
template <typename OpT>
static bool take(Operation *op, OpT &slot) {
  if (slot || !isa<OpT>(op))
    return false;
  slot = cast<OpT>(op);
  return true;
}

/// The call that is all that is done with `value`.
static func::CallOp getCheck(memref::LoadOp value) {
  if (!value->hasOneUse())
    return nullptr;
  auto call = dyn_cast<func::CallOp>(*value->user_begin());
  if (!call || call.getCallee() != kCheckPacked ||
      call.getNumOperands() != 1 + std::size(kNumbers) ||
      call.getOperand(0) != value.getResult())
    return nullptr;
  auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
      call, call.getCalleeAttr());
  return callee && callee.isExternal() ? call : nullptr;
}

/// True when nothing uses `found` but the two copies, launches between them,
/// and what frees it.
static bool isOfLaunches(Value found, gpu::MemcpyOp in, gpu::MemcpyOp out) {
  Operation *alloc = found.getDefiningOp();
  if (!isa_and_nonnull<gpu::AllocOp, memref::AllocOp>(alloc) ||
      !isWord(found) || alloc->getBlock() != in->getBlock())
    return false;
  return llvm::all_of(found.getUsers(), [&](Operation *user) {
    if (user == in || user == out)
      return true;
    if (isa<gpu::DeallocOp, memref::DeallocOp>(user))
      return true;
    return isa<gpu::LaunchFuncOp>(user) && user->getBlock() == in->getBlock() &&
           in->isBeforeInBlock(user) && user->isBeforeInBlock(out);
  });
}

static std::optional<PackCheck> findCheck(memref::AllocaOp word) {
  memref::StoreOp store;
  memref::LoadOp load;
  gpu::MemcpyOp in, out;
  if (!isWord(word))
    return std::nullopt;
  for (Operation *user : word->getUsers()) {
    if (user->getBlock() != word->getBlock())
      return std::nullopt;
    auto copy = dyn_cast<gpu::MemcpyOp>(user);
    bool isOut = copy && copy.getDst() == word;
    if (!(copy ? take(user, isOut ? out : in)
               : take(user, store) || take(user, load)))
      return std::nullopt;
  }
  if (!store || !load || !in || !out)
    return std::nullopt;
  func::CallOp call = getCheck(load);
  if (!call || call->getBlock() != word->getBlock())
    return std::nullopt;
  const std::array<Operation *, 6> order = {word, store, in, out, load, call};
  for (size_t i = 1; i < order.size(); ++i)
    if (!order[i - 1]->isBeforeInBlock(order[i]))
      return std::nullopt;
  APInt initial;
  if (in.getDst() != out.getSrc() ||
      !matchPattern(store.getValueToStore(), m_ConstantInt(&initial)) ||
      initial.getSExtValue() != NMS_PACKED_NOTHING_FOUND ||
      !isOfLaunches(in.getDst(), in, out))
    return std::nullopt;
  PackCheck check{in.getDst(), call, {}, {order.begin(), order.end()}};
  for (auto [number, operand] :
       llvm::zip_equal(check.numbers, llvm::drop_begin(call.getOperands()))) {
    APInt constant;
    if (!matchPattern(operand, m_ConstantInt(&constant)))
      return std::nullopt;
    number = constant.getSExtValue();
  }
  return check;
}

std::vector<PackCheck> nm_sparse::findPackChecks(func::FuncOp function) {
  std::vector<PackCheck> checks;
  if (function.isExternal())
    return checks;
  for (auto word : function.getOps<memref::AllocaOp>())
    if (std::optional<PackCheck> check = findCheck(word))
      checks.push_back(std::move(*check));
  llvm::sort(checks, [](const PackCheck &a, const PackCheck &b) {
    return a.call->isBeforeInBlock(b.call);
  });
  return checks;
}

llvm::json::Object nm_sparse::describePackCheck(const PackCheck &check,
                                                const std::string &buffer) {
  llvm::json::Object object{{"buffer", buffer}, {"kind", "packed"}};
  for (auto [name, number] : llvm::zip_equal(kNumbers, check.numbers))
    object[name] = number;
  return object;
}
