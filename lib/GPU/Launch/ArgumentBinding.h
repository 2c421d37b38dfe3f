//===- ArgumentBinding.h - what a launch passes when bound ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_GPU_LAUNCH_ARGUMENTBINDING_H
#define NM_SPARSE_LIB_GPU_LAUNCH_ARGUMENTBINDING_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace mlir::nm_sparse {

/// How a kernel gets one of its old arguments.
struct ArgumentSource {
  enum class Kind { Unused, Constant, Pointer, Map, Number };
  Kind kind = Kind::Unused;
  Attribute constant; ///< A number, or the bytes from where a pointer is.
  unsigned index = 0; ///< Among the new arguments.

  bool operator==(const ArgumentSource &other) const {
    return kind == other.kind && constant == other.constant &&
           index == other.index;
  }
};

/// The new arguments of a kernel, for one launch.
struct ArgumentBinding {
  SmallVector<ArgumentSource> sources; ///< One for each old argument.
  SmallVector<Value> operands;
  SmallVector<Type> types;
  SmallVector<NamedAttrList> attributes; ///< One for each new argument.
  DenseI32ArrayAttr cluster;

  /// Returns true if a kernel for one serves the other.
  bool equals(const ArgumentBinding &other) const {
    return sources == other.sources && types == other.types &&
           attributes == other.attributes && cluster == other.cluster;
  }
};

/// Works out the binding of `launch`, whose operands have been expanded. Fails,
/// with an error, where a pointer is of no known buffer or a cluster has no
/// constant size.
FailureOr<ArgumentBinding> bindArguments(gpu::LaunchFuncOp launch,
                                         LLVM::LLVMFuncOp kernel);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_GPU_LAUNCH_ARGUMENTBINDING_H
