//===- RowReader.h - what a simt thread reads of kept rows -------*- C++
//-*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_PRODUCTS_SIMT_ROWREADER_H
#define NM_SPARSE_LIB_PRODUCTS_SIMT_ROWREADER_H

#include "SimtLayout.h"

namespace mlir::nm_sparse {

/// The data of one kept row that a thread holds, as scalars.
struct KeptRow {
  /// The row of x that belongs to it, for each panel.
  SmallVector<Value> xRows;
  /// The thread's outputs of the row of the weight.
  SmallVector<Value> weights;
  /// For each chunk of the thread's tokens: the chunk of each panel's row of x.
  SmallVector<SmallVector<Value>> chunks;
};

/// Reads kept rows of a CTA tile from shared memory, piece by piece.
class RowReader {
public:
  /// `panels` are those of the thread's outputs. Reads that are `pinned` keep
  /// their order.
  RowReader(OpBuilder &b, TileMatmulOp op, const ThreadLayout &layout,
            const SimtLayout &thread, ArrayRef<Value> panels, bool pinned);

  int64_t getNumChunks() const { return thread.tokens / thread.tokenChunk; }

  /// Finds the rows of x that belong to `row`.
  KeptRow find(Value row);
  void readWeights(Value row, KeptRow &kept);
  /// Reads the first chunk that `kept` does not have yet.
  void readChunk(KeptRow &kept);
  /// All of them.
  KeptRow read(Value row);

private:
  SmallVector<Value> readRun(Value tile, Value row, Value column,
                             int64_t count);
  /// An element at `at`, or neighbours as a vector.
  Value load(Value tile, ValueRange at);
  Value load(Value tile, ValueRange at, VectorType type);
  Value constant(int64_t v);

  OpBuilder &b;
  TileMatmulOp op;
  Location loc;
  const ThreadLayout &layout;
  const SimtLayout &thread;
  SmallVector<Value> panels;
  bool pinned;
  /// Rows of x from the thread's first token on, unless x is token-major.
  Value x;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_PRODUCTS_SIMT_ROWREADER_H
