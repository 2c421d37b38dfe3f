//===- PTXFeatures.h - what the code of a kernel says of it -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Static features of kernels, counted in PTX text of any compiler: for models
// of time and energy that know no more than the code (DSO, arXiv 2407.13096).
// How often a loop runs the text does not say, so that counts are kept apart by
// how many loops an instruction is in.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_ENERGY_PTXFEATURES_H
#define NM_SPARSE_ENERGY_PTXFEATURES_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include <string>

namespace mlir::nm_sparse {

/// Counts for one thread. Instructions under a predicate count in full.
struct PTXCounts {
  double instructions = 0;
  /// Arithmetic: floating-point operations on CUDA cores, two for an FMA, and
  /// for each half of a packed one; instructions of the special function unit,
  /// conversions between types, and instructions on integers and predicates.
  double f64Flops = 0, f32Flops = 0, f16Flops = 0, special = 0, conversions = 0,
         integer = 0;
  /// A thread's share of the operations of tensor cores: m * n * k * 2 for a
  /// warp or warpgroup; half of that, those of kept elements, for sparse ones.
  double tensorFlops = 0, sparseTensorFlops = 0;
  /// Bytes that are read and written, and copied to shared memory by cp.async;
  /// bulk copies, whose bytes may be in registers, are only counted.
  double globalRead = 0, globalWritten = 0, sharedRead = 0, sharedWritten = 0,
         copied = 0, bulkCopies = 0, atomics = 0;
  /// Control, and what waits for others.
  double branches = 0, barriers = 0, shuffles = 0;

  PTXCounts &operator+=(const PTXCounts &other);
};

/// A count and its name.
struct PTXCountField {
  const char *name;
  double PTXCounts::*field;
};
llvm::ArrayRef<PTXCountField> getPTXCountFields();

struct PTXKernel {
  std::string name;
  int64_t maxThreads = 0;  ///< Threads of a CTA; 0 where the PTX does not say.
  int64_t sharedBytes = 0; ///< Declared in the text; what a launch adds is not.
  /// By the number of loops around an instruction, from 0; and in all.
  llvm::SmallVector<PTXCounts> byDepth;
  PTXCounts getTotal() const;
};

/// The kernels (.entry) of `text`, in order. A loop is what lies between a
/// label and a later branch to it. Functions that are called are not looked
/// into. An error names the line of a statement that does not end, and text
/// without a kernel is one.
llvm::Expected<llvm::SmallVector<PTXKernel>> countPTX(llvm::StringRef text);

llvm::json::Array toJSON(llvm::ArrayRef<PTXKernel> kernels);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_ENERGY_PTXFEATURES_H
