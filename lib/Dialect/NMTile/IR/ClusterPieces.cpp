//===- ClusterPieces.cpp - who adds which piece of a tile -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMTile/IR/ClusterPieces.h"

#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"
#include <numeric>

using namespace mlir;
using namespace mlir::nm_sparse;

/// Elements by which a row is longer than its columns: 8 rows of 4 pairs, as
/// threads of tensor cores hold them, then lie in 64 banks.
static constexpr int64_t kPadding = 8;

/// Threads that read neighbouring accesses of a row.
static int64_t getThreadsOfRow(int64_t columns, int64_t threads) {
  return std::gcd(columns / kPieceAccess, threads);
}

ClusterPieces::ClusterPieces(ScheduleAttr schedule, bool tokensContiguous)
    : ctas(schedule.getSplitK()) {
  tileRows = schedule.getTileTokens();
  columns = schedule.getTileOutputs();
  if (tokensContiguous)
    std::swap(tileRows, columns);
  int64_t threads = schedule.getNumThreads();
  rows = llvm::alignTo(llvm::divideCeil(tileRows, ctas),
                       threads / getThreadsOfRow(columns, threads));
  pitch = columns + kPadding;
}

AccumulatorAttr nm_sparse::layOutPiece(MLIRContext *context, int64_t rows,
                                       int64_t columns, int64_t threads,
                                       bool tokensContiguous) {
  TileDim along = TileDim::Outputs, across = TileDim::Tokens;
  if (tokensContiguous)
    std::swap(along, across);
  int64_t ofRow = getThreadsOfRow(columns, threads);
  int64_t together = threads / ofRow;
  LayoutDigit unit[] = {{along, ofRow, kPieceAccess}, {across, together, 1}};
  LayoutDigit elements[] = {
      {along, kPieceAccess, 1},
      {along, columns / kPieceAccess / ofRow, ofRow * kPieceAccess},
      {across, rows / together, together}};
  return AccumulatorAttr::get(context, unit, /*units=*/{}, elements);
}
