//===- Clusters.cpp - addresses in other CTAs of a cluster ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Machine/Machine.h"
#include "Ops/OpTable.h"
#include "Ops/Operands.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::nm_sparse;
using namespace mlir::nm_sparse::emulator;

static FailureOr<Handler> prepareMapa(Operation *op) {
  auto map = cast<NVVM::MapaOp>(op);
  OperandReader<uint64_t> address(map.getAMutable());
  OperandReader<uint32_t> rank(map.getBMutable());
  AddressSpace space = getAddressSpace(map.getA());
  uint64_t window =
      getAddressSpace(map.getRes()) == AddressSpace::Generic ? sharedWindow : 0;
  return Handler([=](Thread &thread, Values operands, Values results) {
    uint64_t wanted = rank(operands);
    size_t numCTAs = thread.cta.cluster.ctas.size();
    if (wanted >= numCTAs)
      thread.fault(llvm::formatv("rank {0} does not exist: the cluster has {1} "
                                 "CTAs",
                                 wanted, numCTAs));
    uint64_t offset = thread.toShared(address(operands), space) &
                      ((uint64_t(1) << sharedRankShift) - 1);
    setResult(results, window | (wanted + 1) << sharedRankShift | offset);
  });
}

ArrayRef<OpEntry> emulator::getClusterOps() {
  static const OpEntry entries[] = {{"nvvm.mapa", prepareMapa}};
  return entries;
}
