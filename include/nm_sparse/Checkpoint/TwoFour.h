//===- TwoFour.h - 2:4 along the inputs of a linear layer -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Weights are outputs x inputs, as frameworks store them. A window is four
// neighbouring inputs of one output.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_CHECKPOINT_TWOFOUR_H
#define NM_SPARSE_CHECKPOINT_TWOFOUR_H

#include "nm_sparse/Checkpoint/TensorFile.h"

namespace mlir::nm_sparse {

/// Counts that say how close a weight is to 2:4.
struct TwoFourPattern {
  int64_t windows = 0;
  /// Windows with three or four elements other than zero; NaN is one.
  int64_t violations = 0;
  /// The place of the first violation.
  int64_t firstOutput = -1, firstWindow = -1;

  bool isTwoFour() const { return violations == 0; }
  /// Returns true if at most one window in a hundred violates 2:4. If half of
  /// the elements are zero at random, 31 in a hundred do.
  bool isNearlyTwoFour() const {
    return violations > 0 && violations <= windows / 100;
  }
  /// "2:4", "dense", or "nearly 2:4, but for ...".
  std::string describe() const;
};

/// `data` has outputs x inputs elements of `type`, at any address.
TwoFourPattern checkTwoFour(llvm::ArrayRef<char> data, int64_t outputs,
                            int64_t inputs, const StoredType &type);

/// The parts of a weight in the `sparse-24-bitmask` layout of
/// compressed-tensors.
struct BitmaskParts {
  /// Outputs and inputs.
  const TensorInfo *shape = nullptr;
  /// outputs x inputs / 2: the kept elements of each output, in order.
  const TensorInfo *compressed = nullptr;
  /// outputs x ceil(inputs / 8) bytes. Input i of an output is bit i mod 8 of
  /// byte i / 8, the lowest bit first, and set where it is kept.
  const TensorInfo *bitmask = nullptr;
};

/// Outputs and inputs. Types and shapes of the parts must fit each other. An
/// error begins with the name of the tensor.
llvm::Expected<std::pair<int64_t, int64_t>>
readBitmaskShape(const BitmaskParts &parts);

/// The dense weight. Exactly two of every four inputs must be kept.
llvm::Expected<std::vector<char>> decodeBitmask(const BitmaskParts &parts);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_CHECKPOINT_TWOFOUR_H
