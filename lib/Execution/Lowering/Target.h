//===- Target.h - the GPU that is compiled for ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EXECUTION_LOWERING_TARGET_H
#define NM_SPARSE_LIB_EXECUTION_LOWERING_TARGET_H

#include "mlir/Support/LLVM.h"
#include "llvm/Support/Error.h"
#include <string>

namespace mlir::nm_sparse {

/// Sets `gpu`, which is what there is, to `asked` where that is not empty. An
/// error when that is no GPU with the chip `chip`; without one that is asked
/// for, empty: the rates are those of the chip.
llvm::Error chooseRates(StringRef chip, StringRef asked, std::string &gpu);

/// The chip (sm_90a) of the CUDA device in use.
llvm::Expected<std::string> getDeviceChip();

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_EXECUTION_LOWERING_TARGET_H
