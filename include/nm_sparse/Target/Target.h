//===- Target.h - kernels to PTX, cubin and a manifest ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The last step of the compiler, on a module that buildToNVVMPipeline made.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_TARGET_TARGET_H
#define NM_SPARSE_TARGET_TARGET_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include <map>
#include <string>

namespace mlir::nm_sparse {

/// PTX text of the kernels of `module`; empty when it has none.
llvm::Expected<std::string> translateToPTX(ModuleOp module);

/// The output of ptxas for one kernel, and the bytes of its code.
struct KernelResources {
  int64_t codeBytes = 0;
  int64_t registers = 0;
  int64_t spillStoreBytes = 0;
  int64_t spillLoadBytes = 0;
  int64_t staticSharedBytes = 0;
};
using ResourceMap = std::map<std::string, KernelResources>;

struct Assembled {
  std::string cubin;
  ResourceMap resources; ///< By kernel.
  double seconds = 0;    ///< That ptxas took.
};

/// Path of ptxas: beside CUDA_HOME, CUDA_ROOT or CUDA_PATH, on the PATH, or in
/// /usr/local/cuda; empty when there is none.
std::string findPtxas();

/// Assembles `ptx` with the ptxas that findPtxas names.
llvm::Expected<Assembled> assemblePTX(StringRef ptx, StringRef chip);

/// A sparse product as the schedule stage left it.
struct ScheduledProduct {
  std::string function, encoding, schedule, shape;
};
std::vector<ScheduledProduct> collectProducts(ModuleOp module);

/// Makes a description of how to launch the kernels of `module`: see
/// docs/Manifest.md. Fails, with an error at the operation, if the host does
/// something that a manifest cannot describe; `option` is the one by which it
/// was asked for, and which the error says to leave out.
FailureOr<llvm::json::Object> makeManifest(ModuleOp module,
                                           ArrayRef<ScheduledProduct> products,
                                           const ResourceMap *resources,
                                           StringRef option = "--manifest");

/// Describes in one line what the host functions of `module` do besides
/// launching its kernels; empty if nothing. With `hostMemory`, which asks for
/// copies to the device and back, these are not mentioned.
std::string describeHostOps(ModuleOp module, bool hostMemory);

/// Describes a host value as an expression over the arguments' sizes, such as
/// "max(ceildiv(arg0.size[0], 128), 1)"; "?" if it is not such an expression.
std::string describeExpression(Value value);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_TARGET_TARGET_H
