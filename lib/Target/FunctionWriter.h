//===- FunctionWriter.h - a host function for the manifest ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_TARGET_FUNCTIONWRITER_H
#define NM_SPARSE_LIB_TARGET_FUNCTIONWRITER_H

#include "HostCode.h"
#include "PackChecks.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "llvm/Support/JSON.h"

namespace mlir::nm_sparse {

/// Writes one function: its arguments, the buffers that it needs in between,
/// and its launches in order.
class FunctionWriter {
public:
  /// `option` is what errors say to leave out.
  FunctionWriter(func::FuncOp function, StringRef option)
      : function(function), option(option), checks(findPackChecks(function)) {}

  FailureOr<llvm::json::Object> write();

private:
  FailureOr<llvm::json::Object> finish(llvm::json::Object object);
  /// What to do about something of the host.
  std::string getAdvice() const;
  /// Records that something cannot be told, with an error.
  void refuse(const std::string &what);

  // Values of the host (FunctionWriter.cpp).
  std::string describe(Value value);
  /// argN, or bufferN for memory that the host allocates.
  std::string getName(Value root);
  /// Says which part of the buffer `name` `value` is, unless it is all of it.
  void addView(llvm::json::Object &object, Value value, StringRef name);
  ViewDescription getView(Value value, StringRef name);
  ComponentAttr getComponent(BlockArgument argument);
  llvm::json::Object writeArgument(BlockArgument argument);
  /// The weight that `values` belongs to; each weight has values once.
  llvm::json::Object writeWeight(ComponentAttr values);
  llvm::json::Object writeResult(Value result);

  // Launches (WriteLaunch.cpp).
  llvm::json::Object writeLaunch(gpu::LaunchFuncOp launch);
  llvm::json::Array writeParameters(gpu::LaunchFuncOp launch);
  /// The arguments of cuTensorMapEncodeTiled beside the buffer's shape.
  llvm::json::Object writeTensorMap(nvgpu::TmaCreateDescriptorOp map,
                                    bool isByValue);
  /// The fields of the memref `operand`, which `access` is said of.
  void writeMemref(Value operand, StringRef access, llvm::json::Array &into);
  llvm::json::Object writePointer(Value operand, StringRef access);

  func::FuncOp function;
  StringRef option;
  std::vector<PackCheck> checks;
  Operation *current = nullptr; ///< The op that is being described.
  LogicalResult described = success();
  llvm::json::Array buffers;
  llvm::DenseMap<Value, std::string> names;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_TARGET_FUNCTIONWRITER_H
