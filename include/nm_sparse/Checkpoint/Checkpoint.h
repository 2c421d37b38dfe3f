//===- Checkpoint.h - the weights of a trained model ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// docs/Checkpoints.md says what is understood.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_CHECKPOINT_CHECKPOINT_H
#define NM_SPARSE_CHECKPOINT_CHECKPOINT_H

#include "nm_sparse/Checkpoint/TwoFour.h"

namespace mlir::nm_sparse {

/// A matrix that may be the weight of a linear layer: outputs x inputs.
struct CheckpointWeight {
  std::string name;
  int64_t outputs, inputs;
  const StoredType *type; ///< One that has an `element`.
  /// The stored form: dense, or the tensors of a sparse-24-bitmask.
  const TensorInfo *dense = nullptr;
  BitmaskParts parts;
  /// The tensor that the product is to be multiplied by; empty: none.
  std::string scale;

  bool isCompressed() const { return dense == nullptr; }
};

/// The elements of a weight, row by row, at any address.
struct WeightData {
  llvm::ArrayRef<char> bytes;
  std::vector<char> storage; ///< Holds them where they had to be decoded.
};

class Checkpoint {
public:
  /// Opens a `.safetensors` file, an index of several, or the folder of a
  /// model. Pickles are refused: reading one runs the code in it.
  static llvm::Expected<Checkpoint> open(llvm::StringRef path);

  llvm::StringRef getPath() const { return path; }
  /// The files that hold the tensors, and those that describe them.
  llvm::ArrayRef<std::string> getPaths() const { return paths; }
  /// In the order of their names; layer 10 comes behind layer 9.
  llvm::ArrayRef<CheckpointWeight> getWeights() const { return weights; }
  /// Returns in a few words what config.json says about sparsity; empty if it
  /// says nothing.
  llvm::StringRef getSparsity() const { return sparsity; }

  llvm::Expected<WeightData> read(const CheckpointWeight &weight) const;

private:
  /// A tensor and its file.
  struct Place {
    const TensorInfo *tensor;
    const TensorFile *file;
  };

  llvm::Error openShards(llvm::StringRef index);
  llvm::Error addFile(llvm::StringRef file);
  llvm::Error readConfig(llvm::StringRef folder);
  llvm::Error findWeights();
  llvm::Error addCompressed(llvm::StringRef prefix);
  std::string findScale(llvm::StringRef weight) const;
  const TensorInfo *find(const llvm::Twine &name) const;
  llvm::Error fail(llvm::StringRef name, const llvm::Twine &found,
                   const llvm::Twine &legal) const;
  llvm::Error addFileName(const CheckpointWeight &weight,
                          llvm::Error error) const;

  std::string path, sparsity;
  std::vector<std::string> paths;
  std::vector<std::unique_ptr<TensorFile>> files;
  llvm::StringMap<Place> places;
  std::vector<CheckpointWeight> weights;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_CHECKPOINT_CHECKPOINT_H
