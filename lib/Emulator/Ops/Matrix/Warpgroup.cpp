//===- Warpgroup.cpp - wgmma and setmaxnreg of the nvvm dialect ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ops/Matrix/WarpgroupProduct.h"
#include "Ops/Matrix/WarpgroupTable.h"
#include "Ops/OpTable.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"

namespace mlir::nm_sparse::emulator {

namespace {

FailureOr<Handler> prepareFence(Operation *) {
  return Handler([](Thread &thread, Values, Values) {
    WarpgroupTable::get(thread).fence(thread);
  });
}

FailureOr<Handler> prepareCommit(Operation *) {
  return Handler([](Thread &thread, Values, Values) {
    WarpgroupTable::get(thread).commit(thread);
  });
}

FailureOr<Handler> prepareWait(Operation *op) {
  uint64_t pending = cast<NVVM::WgmmaWaitGroupSyncOp>(op).getGroup();
  return Handler([pending](Thread &thread, Values, Values) {
    WarpgroupTable::get(thread).wait(thread, pending);
  });
}

FailureOr<Handler> prepareProduct(Operation *op) {
  auto wgmma = cast<NVVM::WgmmaMmaAsyncOp>(op);
  auto getType = [](NVVM::WGMMATypes type) {
    return findElementType(NVVM::stringifyWGMMATypes(type));
  };
  std::optional<ElementType> a = getType(wgmma.getTypeA()),
                             b = getType(wgmma.getTypeB()),
                             d = getType(wgmma.getTypeD());
  if (!a || !b || !d)
    return op->emitError("emulating nvvm.wgmma.mma_async: the type of A is ")
           << NVVM::stringifyWGMMATypes(wgmma.getTypeA())
           << "; emulated are f16, bf16, tf32, e4m3, e5m2, s8 and u8";
  WarpgroupProduct product;
  product.n = wgmma.getShape().getN();
  product.k = wgmma.getShape().getK();
  product.types = {*a, *b, *d,
                   wgmma.getSatfinite() == NVVM::MMAIntOverflow::satfinite};
  product.negateA = wgmma.getScaleA() == NVVM::WGMMAScaleIn::neg;
  product.negateB = wgmma.getScaleB() == NVVM::WGMMAScaleIn::neg;
  // The op names the order of each matrix as if it were stored plainly: A by
  // rows and B by columns are K-major.
  product.transposeA = wgmma.getLayoutA() == NVVM::MMALayout::col;
  product.transposeB = wgmma.getLayoutB() == NVVM::MMALayout::row;
  std::string error = product.verify();
  if (!error.empty())
    return op->emitError("emulating nvvm.wgmma.mma_async: ") << error;
  auto registers = cast<LLVM::LLVMStructType>(wgmma.getInouts().getType());
  unsigned bits = 0;
  for (Type type : registers.getBody())
    bits += DataLayout::closest(op).getTypeSizeInBits(type);
  if (bits != 32 * product.countAccumulators())
    return op->emitError(
               "emulating nvvm.wgmma.mma_async: the accumulators have ")
           << bits << " bits; its shape and type need "
           << 32 * product.countAccumulators();
  bool accumulate = wgmma.getScaleD() == NVVM::WGMMAScaleOut::one;
  return Handler([product, accumulate](Thread &thread, Values operands,
                                       Values results) {
    enum { accumulators, descriptorA, descriptorB };
    memcpy(results[0], operands[accumulators], 4 * product.countAccumulators());
    WarpgroupArrival arrival;
    arrival.descriptorA = *static_cast<uint64_t *>(operands[descriptorA]);
    arrival.descriptorB = *static_cast<uint64_t *>(operands[descriptorB]);
    arrival.accumulate = accumulate;
    arrival.accumulators = static_cast<uint32_t *>(results[0]);
    runWarpgroupProduct(thread, product, arrival);
  });
}

FailureOr<Handler> prepareSetRegisters(Operation *op) {
  auto set = cast<NVVM::SetMaxRegisterOp>(op);
  unsigned count = set.getRegCount();
  if (count % 8 != 0 || count < 24 || count > 256)
    return op->emitError(
               "emulating nvvm.setmaxregister: the register count is ")
           << count << "; legal are multiples of 8 from 24 to 256";
  bool isIncrease = set.getAction() == NVVM::SetMaxRegisterAction::increase;
  return Handler([count, isIncrease](Thread &thread, Values operands,
                                     Values results) {
    runWarpgroupCollective(thread, operands, results, [](ArrayRef<Lane>) {});
    WarpgroupTable::get(thread).setRegisters(thread, count, isIncrease);
  });
}

constexpr OpEntry entries[] = {
    {"nvvm.wgmma.fence.aligned", prepareFence},
    {"nvvm.wgmma.commit.group.sync.aligned", prepareCommit},
    {"nvvm.wgmma.wait.group.sync.aligned", prepareWait},
    {"nvvm.wgmma.mma_async", prepareProduct},
    {"nvvm.setmaxregister", prepareSetRegisters},
};

} // namespace

ArrayRef<OpEntry> getWarpgroupOps() { return entries; }

} // namespace mlir::nm_sparse::emulator
