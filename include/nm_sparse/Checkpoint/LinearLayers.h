//===- LinearLayers.h - programs of the weights of a checkpoint -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_CHECKPOINT_LINEARLAYERS_H
#define NM_SPARSE_CHECKPOINT_LINEARLAYERS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "nm_sparse/Checkpoint/Checkpoint.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "llvm/Support/raw_ostream.h"

namespace mlir::nm_sparse {

/// A weight and the function that multiplies by it.
struct LinearLayer {
  const CheckpointWeight *weight;
  std::string function;
  /// The packed form in which the function takes its weight, once it was
  /// chosen.
  PackedAttr packed = {};
};

/// Names functions after their weights, without characters that PTX symbols
/// must not have: "model.layers.0.mlp.up_proj.weight" gives
/// "model_layers_0_mlp_up_proj".
std::vector<LinearLayer>
nameLayers(llvm::ArrayRef<const CheckpointWeight *> weights);

/// A function y = x W^T for each layer: x has any number of tokens, token by
/// token, and W is an argument, 2:4 along the inputs. The sum is that of the
/// compiler for the type; y has the type of x where x has 16 bits or more.
llvm::Expected<OwningOpRef<ModuleOp>>
makeLayers(MLIRContext &context, llvm::ArrayRef<LinearLayer> layers);

/// A linear layer whose weight need not be there.
struct LayerShape {
  int64_t outputs, inputs;
  const StoredType *type; ///< One that has an `element`.
  /// Results of elements of 8 bits are bf16, as those of models' layers, which
  /// scales multiply before; else they are sums.
  bool roundsSums = false;
};

/// The same function for one layer, `@linear`, whose weight has `encoding`.
llvm::Expected<OwningOpRef<ModuleOp>> makeLayer(const LayerShape &shape,
                                                EncodingAttr encoding);

/// Returns the packed form in which `function`, after the front stage, takes
/// its only weight, or null.
PackedAttr getPacked(func::FuncOp function);

/// Reads from `module`, as the front stage left it, how each function takes its
/// weight.
llvm::Error findStorage(ModuleOp module,
                        llvm::MutableArrayRef<LinearLayer> layers);

/// Writes the packed weights of `layers` to a plain file, as docs/Encoding.md
/// says; one weight is in memory at a time.
llvm::Error writePackedWeights(const Checkpoint &checkpoint,
                               llvm::ArrayRef<LinearLayer> layers,
                               llvm::raw_fd_ostream &file);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_CHECKPOINT_LINEARLAYERS_H
