//===- FunctionLowering.h - one device function for the host ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EMULATOR_LOWERING_FUNCTIONLOWERING_H
#define NM_SPARSE_LIB_EMULATOR_LOWERING_FUNCTIONLOWERING_H

#include "Lowering/HostLowering.h"
#include "Lowering/RegistersOfA.h"
#include "Ops/OpTable.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::nm_sparse::emulator {

/// Replaces the operations of a copy of a device function by ones that the host
/// can execute. Types keep their address spaces where no operation changes;
/// HostLowering removes them at the end.
class FunctionLowering {
public:
  /// `sharedOffsets`: of the arrays in shared memory, by name. `layout` is the
  /// host's. Sites and the granule become part of `result`.
  FunctionLowering(gpu::GPUModuleOp original,
                   const llvm::StringMap<uint64_t> &sharedOffsets,
                   const DataLayout &layout, HostModule &result)
      : original(original), sharedOffsets(sharedOffsets), layout(layout),
        result(result), context(original.getContext()), builder(context) {}

  /// `source` is what `function` is a copy of.
  LogicalResult lower(LLVM::LLVMFuncOp function, LLVM::LLVMFuncOp source);

private:
  LogicalResult lowerOp(Operation *op, Operation *source);
  LogicalResult lowerAccess(Operation *op, Operation *source, unsigned pointer,
                            Type type, uint64_t alignment, AccessKind kind,
                            bool polls);
  LogicalResult callHandler(Operation *op, Operation *source,
                            const OpEntry &entry);
  void lowerAddressCast(LLVM::AddrSpaceCastOp op, LLVM::AddrSpaceCastOp source);
  /// Calls `handler` before `op`.
  void callBefore(Operation *op, Operation *source, Handler handler);
  void checkAccumulators(Operation *op, Operation *source,
                         const ProductSet &products);
  void checkRegistersOfA(Operation *op, Operation *source,
                         const RegistersOfA &registers);
  Site &addSite(Operation *source);
  Value makePointer(Location loc, uint64_t address);
  Value offsetPointer(Location loc, Value base, uint64_t offset);

  gpu::GPUModuleOp original;
  const llvm::StringMap<uint64_t> &sharedOffsets;
  const DataLayout &layout;
  HostModule &result;
  MLIRContext *context;
  OpBuilder builder;
  /// Operands and results of one operation at a time.
  LLVM::AllocaOp scratch;
  uint64_t scratchBytes = 0;
};

} // namespace mlir::nm_sparse::emulator

#endif // NM_SPARSE_LIB_EMULATOR_LOWERING_FUNCTIONLOWERING_H
