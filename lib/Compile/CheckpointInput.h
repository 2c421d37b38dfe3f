//===- CheckpointInput.h - weights in place of a program --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_COMPILE_CHECKPOINTINPUT_H
#define NM_SPARSE_LIB_COMPILE_CHECKPOINTINPUT_H

#include "Options.h"
#include "nm_sparse/Checkpoint/LinearLayers.h"
#include "nm_sparse/Support/OutputFile.h"

namespace mlir::nm_sparse {

/// The weights of `options.checkpoint` that are compiled. A weight that is
/// named must be 2:4; of those that a pattern means, or of all, the ones that
/// are 2:4 are taken.
class CheckpointInput {
public:
  static llvm::Expected<CheckpointInput> open(const CompileOptions &options);

  llvm::Expected<OwningOpRef<ModuleOp>> makeModule(MLIRContext &context) const {
    return makeLayers(context, layers);
  }
  /// Reads how the functions take their weights; after the front stage.
  llvm::Error findStorage(ModuleOp module) {
    return nm_sparse::findStorage(module, layers);
  }
  /// Packs the weights, as the functions take them.
  llvm::Expected<OutputFile> pack(StringRef path) const;

private:
  explicit CheckpointInput(Checkpoint checkpoint)
      : checkpoint(std::move(checkpoint)) {}

  Checkpoint checkpoint;
  std::vector<LinearLayer> layers;
};

/// Prints the weights of `options.checkpoint` as a table.
llvm::Error printWeights(const CompileOptions &options, llvm::raw_ostream &os);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_COMPILE_CHECKPOINTINPUT_H
