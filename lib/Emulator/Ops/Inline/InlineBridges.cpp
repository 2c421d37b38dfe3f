//===- InlineBridges.cpp - inline PTX that is an nvvm operation too -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One function for each family, which builds that operation. See
// InlineBridge.h.
//
//===----------------------------------------------------------------------===//

#include "Ops/Inline/InlineBridge.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::nm_sparse;
using namespace mlir::nm_sparse::emulator;

namespace {

//===----------------------------------------------------------------------===//
// Barriers and fences
//===----------------------------------------------------------------------===//

/// bar.sync id[, threads]; bar.arrive id, threads; bar.warp.sync mask
FailureOr<Step> compileBarrier(InlineCompiler &compiler,
                               const PtxInstruction &instruction) {
  InlineBridge bridge(compiler, instruction);
  OpBuilder &b = bridge.builder;
  if (bridge.has("warp"))
    return bridge.finish(
        NVVM::SyncWarpOp::create(b, bridge.loc, bridge.getI32(0)));
  if (bridge.has("red"))
    return bridge.fail() << "is not emulated: known are sync and arrive";
  Value id = bridge.getI32(0);
  Value threads =
      bridge.size() > 1 || bridge.has("arrive") ? bridge.getI32(1) : Value();
  if (bridge.has("arrive"))
    return bridge.finish(
        NVVM::BarrierArriveOp::create(b, bridge.loc, id, threads));
  return bridge.finish(
      NVVM::BarrierOp::create(b, bridge.loc, TypeRange(), id, threads,
                              NVVM::BarrierReductionAttr(), Value()));
}

/// barrier.cluster.arrive, barrier.cluster.wait
FailureOr<Step> compileClusterBarrier(InlineCompiler &compiler,
                                      const PtxInstruction &instruction) {
  InlineBridge bridge(compiler, instruction);
  OpBuilder &b = bridge.builder;
  UnitAttr aligned = bridge.has("aligned") ? b.getUnitAttr() : UnitAttr();
  if (bridge.has("wait"))
    return bridge.finish(NVVM::ClusterWaitOp::create(b, bridge.loc, aligned));
  if (bridge.has("relaxed"))
    return bridge.finish(
        NVVM::ClusterArriveRelaxedOp::create(b, bridge.loc, aligned));
  return bridge.finish(NVVM::ClusterArriveOp::create(b, bridge.loc, aligned));
}

FailureOr<Step> compileFence(InlineCompiler &compiler,
                             const PtxInstruction &instruction) {
  InlineBridge bridge(compiler, instruction);
  OpBuilder &b = bridge.builder;
  StringRef mnemonic = instruction.mnemonic;
  if (mnemonic.starts_with("fence.mbarrier_init"))
    return bridge.finish(NVVM::FenceMbarrierInitOp::create(b, bridge.loc));
  auto proxy = [&](NVVM::ProxyKind kind,
                   std::optional<NVVM::SharedSpace> space = std::nullopt) {
    NVVM::SharedSpaceAttr spaceAttr;
    if (space)
      spaceAttr = NVVM::SharedSpaceAttr::get(b.getContext(), *space);
    return bridge.finish(NVVM::FenceProxyOp::create(
        b, bridge.loc, NVVM::ProxyKindAttr::get(b.getContext(), kind),
        spaceAttr));
  };
  if (mnemonic == "fence.proxy.async")
    return proxy(NVVM::ProxyKind::async);
  if (mnemonic == "fence.proxy.async.global")
    return proxy(NVVM::ProxyKind::async_global);
  if (mnemonic == "fence.proxy.async.shared::cta")
    return proxy(NVVM::ProxyKind::async_shared, NVVM::SharedSpace::shared_cta);
  if (mnemonic == "fence.proxy.async.shared::cluster")
    return proxy(NVVM::ProxyKind::async_shared,
                 NVVM::SharedSpace::shared_cluster);
  if (bridge.has("proxy"))
    return bridge.fail() << "is not emulated; known are "
                            "fence.proxy.async[.global,.shared::cta,"
                            ".shared::cluster]";
  NVVM::MemScopeKind scope = NVVM::MemScopeKind::GPU;
  if (bridge.has("cta"))
    scope = NVVM::MemScopeKind::CTA;
  else if (bridge.has("cluster"))
    scope = NVVM::MemScopeKind::CLUSTER;
  else if (bridge.has("sys"))
    scope = NVVM::MemScopeKind::SYS;
  return bridge.finish(NVVM::MembarOp::create(
      b, bridge.loc, NVVM::MemScopeKindAttr::get(b.getContext(), scope)));
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

/// cp.async.cg.shared.global[.L2::*] [to], [from], 16[, read][, policy]
FailureOr<Step> compileCopy(InlineCompiler &compiler,
                            const PtxInstruction &instruction) {
  InlineBridge bridge(compiler, instruction);
  OpBuilder &b = bridge.builder;
  if (!bridge.has("cg") && !bridge.has("ca"))
    return bridge.fail() << "is not emulated; known are cp.async.{ca,cg}, "
                            "commit_group and wait_group";
  Value to = bridge.getPointer(0, AddressSpace::Shared);
  Value from = bridge.getPointer(1, AddressSpace::Global);
  auto bytes = int32_t(bridge.getNumber(2));
  bool hasPolicy = bridge.has("L2::cache_hint");
  Value read = bridge.size() > 3u + hasPolicy ? bridge.getI32(3) : Value();
  auto modifier = bridge.has("cg") ? NVVM::LoadCacheModifierKind::CG
                                   : NVVM::LoadCacheModifierKind::CA;
  return bridge.finish(NVVM::CpAsyncOp::create(
      b, bridge.loc, to, from, b.getI32IntegerAttr(bytes),
      NVVM::LoadCacheModifierKindAttr::get(b.getContext(), modifier), read));
}

FailureOr<Step> compileCommit(InlineCompiler &compiler,
                              const PtxInstruction &instruction) {
  InlineBridge bridge(compiler, instruction);
  if (bridge.has("bulk"))
    return bridge.finish(
        NVVM::CpAsyncBulkCommitGroupOp::create(bridge.builder, bridge.loc));
  return bridge.finish(
      NVVM::CpAsyncCommitGroupOp::create(bridge.builder, bridge.loc));
}

FailureOr<Step> compileWait(InlineCompiler &compiler,
                            const PtxInstruction &instruction) {
  InlineBridge bridge(compiler, instruction);
  OpBuilder &b = bridge.builder;
  IntegerAttr groups = b.getI32IntegerAttr(int32_t(bridge.getNumber(0)));
  if (bridge.has("bulk"))
    return bridge.finish(NVVM::CpAsyncBulkWaitGroupOp::create(
        b, bridge.loc, groups,
        bridge.has("read") ? b.getUnitAttr() : UnitAttr()));
  return bridge.finish(NVVM::CpAsyncWaitGroupOp::create(b, bridge.loc, groups));
}

/// cp.async.bulk.prefetch.L2.global [from], bytes
FailureOr<Step> compilePrefetch(InlineCompiler &compiler,
                                const PtxInstruction &instruction) {
  InlineBridge bridge(compiler, instruction);
  if (instruction.mnemonic != "cp.async.bulk.prefetch.L2.global" ||
      bridge.size() != 2)
    return bridge.fail() << "is emulated only as "
                            "cp.async.bulk.prefetch.L2.global [from], bytes";
  Value from = bridge.getPointer(0, AddressSpace::Global);
  return bridge.finish(NVVM::CpAsyncBulkPrefetchOp::create(
      bridge.builder, bridge.loc, from, bridge.getI32(1),
      /*l2CacheHint=*/Value()));
}

//===----------------------------------------------------------------------===//
// Warps and warpgroups
//===----------------------------------------------------------------------===//

/// elect.sync d|p, mask
FailureOr<Step> compileElect(InlineCompiler &compiler,
                             const PtxInstruction &instruction) {
  InlineBridge bridge(compiler, instruction);
  if (bridge.size() != 2 ||
      instruction.operands[0].kind != PtxOperand::Kind::Pair ||
      instruction.operands[0].elements[0].name != "_")
    return bridge.fail() << "is emulated only as elect.sync _|p, mask";
  bridge.setResult(instruction.operands[0].elements[1], 0, 1);
  return bridge.finish(NVVM::ElectSyncOp::create(bridge.builder, bridge.loc,
                                                 bridge.builder.getI1Type(),
                                                 bridge.getI32(1)));
}

/// shfl.sync.bfly.b32 d[|p], a, b, c, mask
FailureOr<Step> compileShuffle(InlineCompiler &compiler,
                               const PtxInstruction &instruction) {
  InlineBridge bridge(compiler, instruction);
  OpBuilder &b = bridge.builder;
  if (bridge.size() != 5)
    return bridge.fail() << "has " << bridge.size() << " operands, not 5";
  NVVM::ShflKind kind = NVVM::ShflKind::idx;
  if (bridge.has("bfly"))
    kind = NVVM::ShflKind::bfly;
  else if (bridge.has("up"))
    kind = NVVM::ShflKind::up;
  else if (bridge.has("down"))
    kind = NVVM::ShflKind::down;
  PtxOperand target = instruction.operands[0];
  if (target.kind == PtxOperand::Kind::Pair) {
    bridge.setResult(target.elements[1], 4, 1);
    target = PtxOperand(target.elements[0]);
  }
  bridge.setResult(target, 0, 4);
  Type result = LLVM::LLVMStructType::getLiteral(
      b.getContext(), {b.getI32Type(), b.getI1Type()});
  Value value = bridge.getI32(1), offset = bridge.getI32(2);
  Value segments = bridge.getI32(3), mask = bridge.getI32(4);
  return bridge.finish(NVVM::ShflOp::create(
      b, bridge.loc, result, mask, value, offset, segments,
      NVVM::ShflKindAttr::get(b.getContext(), kind), b.getUnitAttr()));
}

/// setmaxnreg.inc.sync.aligned.u32 232
FailureOr<Step> compileRegisters(InlineCompiler &compiler,
                                 const PtxInstruction &instruction) {
  InlineBridge bridge(compiler, instruction);
  auto action = bridge.has("inc") ? NVVM::SetMaxRegisterAction::increase
                                  : NVVM::SetMaxRegisterAction::decrease;
  return bridge.finish(NVVM::SetMaxRegisterOp::create(
      bridge.builder, bridge.loc, uint32_t(bridge.getNumber(0)), action));
}

FailureOr<Step> compileWarpgroup(InlineCompiler &compiler,
                                 const PtxInstruction &instruction) {
  InlineBridge bridge(compiler, instruction);
  OpBuilder &b = bridge.builder;
  if (bridge.has("fence"))
    return bridge.finish(NVVM::WgmmaFenceAlignedOp::create(b, bridge.loc));
  if (bridge.has("commit_group"))
    return bridge.finish(NVVM::WgmmaGroupSyncAlignedOp::create(b, bridge.loc));
  if (bridge.has("wait_group"))
    return bridge.finish(NVVM::WgmmaWaitGroupSyncOp::create(
        b, bridge.loc, uint64_t(bridge.getNumber(0))));
  return bridge.fail() << "is not emulated beside other instructions; known "
                          "are wgmma.{fence,commit_group,wait_group}";
}

/// mapa.shared::cluster.u32 d, a, rank
FailureOr<Step> compileMap(InlineCompiler &compiler,
                           const PtxInstruction &instruction) {
  InlineBridge bridge(compiler, instruction);
  OpBuilder &b = bridge.builder;
  if (instruction.mnemonic != "mapa.shared::cluster.u32" || bridge.size() != 3)
    return bridge.fail()
           << "is emulated only as mapa.shared::cluster.u32 d, a, rank";
  // The shared address is a number here and a pointer there.
  PtxInstruction bracketed = instruction;
  PtxOperand &address = bracketed.operands[1];
  address.kind = PtxOperand::Kind::Address;
  InlineBridge mapping(compiler, bracketed);
  mapping.setResult(bracketed.operands[0], 0, 4);
  Value pointer = mapping.getPointer(1, AddressSpace::Shared);
  return mapping.finish(NVVM::MapaOp::create(
      mapping.builder, mapping.loc,
      LLVM::LLVMPointerType::get(b.getContext(),
                                 unsigned(AddressSpace::SharedCluster)),
      pointer, mapping.getI32(2)));
}

/// nanosleep.u32 t
FailureOr<Step> compileSleep(InlineCompiler &compiler,
                             const PtxInstruction &instruction) {
  InlineBridge bridge(compiler, instruction);
  return bridge.finish(
      NVVM::NanosleepOp::create(bridge.builder, bridge.loc, bridge.getI32(0)));
}

} // namespace

ArrayRef<InlineForm> emulator::getInlineBridges() {
  static const InlineForm forms[] = {
      {"bar", compileBarrier, "bar[.warp].{sync,arrive}"},
      {"barrier", compileBarrier, "barrier[.cta].{sync,arrive}"},
      {"barrier.cluster", compileClusterBarrier,
       "barrier.cluster.{arrive,wait}"},
      {"fence", compileFence,
       "fence[.sc,.acq_rel].<scope>, fence.proxy.async[.<space>], "
       "fence.mbarrier_init"},
      {"membar", compileFence, "membar.{cta,gl,sys}"},
      {"cp.async", compileCopy, "cp.async.{ca,cg}.shared.global"},
      {"cp.async.commit_group", compileCommit, "cp.async.commit_group"},
      {"cp.async.wait_group", compileWait, "cp.async.wait_group"},
      {"cp.async.bulk.commit_group", compileCommit,
       "cp.async.bulk.commit_group"},
      {"cp.async.bulk.wait_group", compileWait, "cp.async.bulk.wait_group"},
      {"cp.async.bulk.prefetch", compilePrefetch,
       "cp.async.bulk.prefetch.L2.global"},
      {"elect", compileElect, "elect.sync"},
      {"shfl", compileShuffle, "shfl.sync.{bfly,up,down,idx}.b32"},
      {"setmaxnreg", compileRegisters, "setmaxnreg.{inc,dec}.sync.aligned.u32"},
      {"wgmma", compileWarpgroup, "wgmma.{fence,commit_group,wait_group}"},
      {"mapa", compileMap, "mapa.shared::cluster.u32"},
      {"nanosleep", compileSleep, "nanosleep.u32"},
  };
  return forms;
}
