//===- MatmulProblem.h - what the cost model knows of a product -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_ANALYSIS_MATMULPROBLEM_H
#define NM_SPARSE_ANALYSIS_MATMULPROBLEM_H

#include "nm_sparse/Analysis/Epilogue.h"
#include "nm_sparse/Dialect/NMTile/IR/ElementFormat.h"
#include "nm_sparse/Dialect/NMTile/IR/Schedule.h"
#include <optional>

namespace mlir::nm_sparse {

/// A constant weight that may become code.
struct ConstantWeight {
  int64_t elements;     ///< Number of elements that are not +0.
  int64_t maxCodeBytes; ///< Limit on the bytes of its instructions.
};

/// Everything that the cost model needs to know about one matmul.
struct MatmulProblem {
  EncodingAttr encoding;
  int64_t batch;  ///< Products of this shape.
  int64_t tokens; ///< Rows of x; an estimate when they are dynamic.
  int64_t outputs;
  int64_t windows;
  int64_t elementBytes;    ///< Size of an element of x and values.
  bool tensorCores;        ///< The element type can use mma.sync.
  bool xFeatureMajor;      ///< Consecutive tokens are neighbours in memory.
  bool yFeatureMajor;      ///< So are they in what is written in the end.
  bool yTransposable;      ///< Warps can transpose that as they write it.
  int64_t xAlignment = 32; ///< Rows of x begin at multiples of so many bytes.
  Epilogue epilogue = {};
  /// Rows of the dense weight without the padding of its last window; 0 if
  /// there is no padding.
  int64_t denseRows = 0;
  /// The tiles of the weight where it is stored as bitmaps.
  std::optional<BitmapTile> bitmap = {};
  /// Values of the weight lie along the contraction.
  bool valuesKMajor = false;
  /// Rows that the panels of a ragged weight are filled up to; 0 of others.
  int64_t raggedRows = 0;
  /// The share of the weight that is kept; an expected one for a free weight.
  double density = 1;
  /// If x is patches of an image: the elements of the image over those of the
  /// patches, and the share of rows that lie outside of the image for some
  /// tokens.
  std::optional<double> patchShare = {};
  double guardedRows = 0;
  PatchesAttr patches = {}; ///< These patches, and the type of the image.
  ShapedType image = {};
  const ElementFormat *format = nullptr; ///< Format of x and values.
  /// The number of tokens is dynamic.
  bool hasAnyTokens = false;
  /// The tensor memory accelerator can copy rows of x: they are aligned, or may
  /// yet be.
  bool canCopyInBulk = true;
  std::optional<ConstantWeight> constant = {};

  /// Rows of the dense weight.
  int64_t getDenseRows() const {
    return denseRows ? denseRows : windows * encoding.getWindowRows();
  }

  /// The rows that are stored for each output: kept rows, zeros between free
  /// elements, and the padding of ragged panels.
  double getStoredRows() const;

  /// Rows of x are single elements, which the tensor memory accelerator cannot
  /// address.
  bool hasRowsOfOne() const {
    return (xFeatureMajor ? tokens : getDenseRows()) == 1;
  }

  /// Kernels with this schedule read x where it is: their transfers do, or they
  /// know the place of each row, or it is no patches of an image, which are
  /// computed for others.
  bool readsInPlace(ScheduleAttr schedule) const;

  /// Gathered rows of x are copied 16 bytes at a time, be they rows of tokens
  /// or, of blocks that high, parts of a token.
  bool gathersWords() const {
    return xFeatureMajor || encoding.getBlockK() * elementBytes % 16 == 0;
  }

  static MatmulProblem get(MatmulOp op, int64_t dynamicTokens);
};

/// Bytes of shared memory that one CTA needs, with padding and ring.
int64_t getSharedBytes(const MatmulProblem &problem, ScheduleAttr schedule);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_ANALYSIS_MATMULPROBLEM_H
