//===- GatheredDim.h - the rows that an index names -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_TRANSFERS_GATHER_GATHEREDDIM_H
#define NM_SPARSE_LIB_TRANSFERS_GATHER_GATHEREDDIM_H

#include "../Copy/SourceDim.h"

namespace mlir::nm_sparse {

/// Extent of what `op` gathers from, its source or a slice of its patches,
/// along `dim`.
OpFoldResult getSourceExtent(OpBuilder &b, AsyncGatherOp op, int64_t dim);

/// The kept rows of a step, of one panel after the other: the rows of the
/// source that the positions of an index name.
class GatheredDim : public SourceDim {
public:
  /// Emits the extents of the operands of `op`, whose index has static or known
  /// panels.
  GatheredDim(OpBuilder &b, AsyncGatherOp op);

  bool isPlain() const override { return false; }
  int64_t getRun() const override { return encoding.getBlockK(); }
  SourceIndex find(OpBuilder &b, Location loc, Value row) const override;
  SourceTerms split(OpBuilder &b, Location loc, Value first, int64_t below,
                    int64_t offset) const override;

protected:
  Value getExtent() const override { return sourceRows; }

private:
  /// The position of a block in its window, if the index has it.
  SourceIndex readIndex(OpBuilder &b, Location loc, Value block,
                        Value panel) const;

  EncodingAttr encoding;
  Value index;
  /// Kept rows and number of panels in the destination.
  int64_t panelRows, panels;
  /// Extents of the source and of the index; null where they hold all that the
  /// destination can ask for.
  Value sourceRows, indexRows, indexPanels;
};

/// The same, of an index that lists where blocks begin in the source.
class ListedDim : public SourceDim {
public:
  ListedDim(OpBuilder &b, AsyncGatherOp op);

  bool isPlain() const override { return false; }
  int64_t getRun() const override { return blockRows; }
  SourceIndex find(OpBuilder &b, Location loc, Value row) const override;
  SourceTerms split(OpBuilder &b, Location loc, Value first, int64_t below,
                    int64_t offset) const override;

protected:
  Value getExtent() const override { return sourceRows; }

private:
  Value index;
  int64_t blockRows, panelRows, panels;
  /// Extent of the source; null where it has all rows.
  Value sourceRows;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_TRANSFERS_GATHER_GATHEREDDIM_H
