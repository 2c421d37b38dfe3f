//===- CopyPlan.cpp - which thread copies which chunk ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Transfers/CopyPlan.h"

using namespace mlir::nm_sparse;

CopyPlan CopyPlan::chunkByChunk(Shape shape, bool rowsFirst, int64_t batch) {
  CopyPlan plan(shape, rowsFirst ? Order::RowsFirst : Order::ColumnsFirst,
                batch, /*rounds=*/0);
  plan.rounds = plan.getChunks() / shape.threads;
  return plan;
}

std::optional<CopyPlan> CopyPlan::interleaved(Shape shape, int64_t batch) {
  if (shape.width != 1 || shape.threads % kWarp != 0)
    return std::nullopt;
  CopyPlan plan(shape, Order::Interleaved, batch,
                shape.rows * shape.columns / shape.threads);
  int64_t roundRows = plan.getRoundRows();
  int64_t roundColumns = plan.getRoundColumns();
  if (shape.rows % 8 != 0 || shape.threads % roundRows != 0 ||
      roundColumns % 4 != 0 || shape.rows % roundRows != 0 ||
      shape.columns % roundColumns != 0)
    return std::nullopt;
  return plan;
}

std::optional<CopyPlan> CopyPlan::wholeRows(Shape shape) {
  CopyPlan plan(shape, Order::WholeRows, /*batch=*/0, /*rounds=*/0);
  int64_t chunks = plan.getChunksOfRow();
  if (shape.threads % kWarp != 0 ||
      plan.getRowsTogether() * chunks != plan.getRoundsOfRow() * kWarp ||
      shape.rows % plan.getRowStep() != 0)
    return std::nullopt;
  plan.rounds = plan.batch = plan.getChunks() / shape.threads;
  return plan;
}

std::optional<CopyPlan> CopyPlan::lines(Shape shape, int64_t line,
                                        int64_t batch) {
  constexpr int64_t mostRows = 32;
  if (shape.columns % line != 0 || line % shape.width != 0 ||
      shape.threads < line / shape.width)
    return std::nullopt;
  CopyPlan plan(shape, Order::Lines, batch, /*rounds=*/0);
  plan.line = line;
  int64_t rowRounds = shape.rows / plan.getLineRows();
  if (rowRounds > mostRows)
    return std::nullopt;
  plan.rounds = rowRounds * plan.getLinesOfRow();
  return plan;
}

int64_t CopyPlan::getLoopedRounds() const {
  return goesByChunk() && rounds > 2 * batch ? rounds / batch * batch : 0;
}

bool CopyPlan::hasOffsets() const {
  return !goesByChunk() || shape.threads % getFastChunks() == 0;
}

ChunkPlace<int64_t> CopyPlan::getOffset(int64_t round) const {
  switch (order) {
  case Order::ColumnsFirst:
    return {round * (shape.threads / getFastChunks()), 0};
  case Order::RowsFirst:
    return {0, round * (shape.threads / getFastChunks()) * shape.width};
  case Order::Interleaved: {
    int64_t down = shape.rows / getRoundRows();
    return {round % down * getRoundRows(), round / down * getRoundColumns()};
  }
  case Order::Lines:
    return {round / getLinesOfRow() * getLineRows(),
            round % getLinesOfRow() * line};
  case Order::WholeRows:
    break;
  }
  return {round / getRoundsOfRow() * getRowStep(),
          round % getRoundsOfRow() * kWarp * shape.width};
}
