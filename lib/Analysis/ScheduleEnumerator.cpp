//===- ScheduleEnumerator.cpp - schedules of one tile ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScheduleEnumerator.h"
#include "nm_sparse/Dialect/NMSparse/IR/TileLayout.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace mlir::nm_sparse;

SmallVector<int64_t> ScheduleEnumerator::getWindows(int64_t low,
                                                    int64_t high) const {
  int64_t n = encoding.getKeptRows();
  SmallVector<int64_t> choices;
  for (int64_t rows = low; rows <= high; rows *= 2) {
    int64_t windows = std::max<int64_t>(1, rows / n);
    // Whole k16 steps waste nothing.
    if (problem.tensorCores && windows * n % 16 != 0) {
      int64_t whole = 16 / std::gcd<int64_t>(16, n);
      windows = std::max(whole, windows / whole * whole);
      if (windows * n > 2 * high)
        windows = std::max<int64_t>(1, rows / n);
    }
    windows = std::min(windows, problem.windows);
    if (!llvm::is_contained(choices, windows))
      choices.push_back(windows);
  }
  return choices;
}

void ScheduleEnumerator::add(ScheduleKind kind, Shape shape, Role role,
                             int64_t windows, int64_t stages, int64_t splitK,
                             Modes modes) {
  // Adding up the parts of 128 accumulators takes more registers than exist,
  // save beside producers, who leave theirs to the others; for sm_100a ptxas
  // still spills 12 bytes.
  int64_t accumulators = shape.tokens * shape.outputs /
                         (shape.warpsTokens * shape.warpsOutputs * 32);
  bool spare =
      kind == ScheduleKind::Simt && role.producers > 0 && chip.wgmma != 0;
  if (splitK > 1 && accumulators > 64 && !spare)
    return;
  // A box of the accelerator is all rows of a step, 64 outputs wide.
  int64_t rows = windows * encoding.getKeptRows();
  bool tma = kind != ScheduleKind::Simt && role.producers > 0 &&
             rows % 16 == 0 && rows <= 256 && shape.outputs % 64 == 0;
  auto schedule = ScheduleAttr::get(
      encoding.getContext(), kind, {shape.tokens, shape.outputs, windows},
      {shape.warpsTokens, shape.warpsOutputs}, stages, splitK, modes.operands,
      modes.index, role.producers, role.persistent, tma,
      /*stream_k=*/false);
  // A gather of rows needs their positions at once: the index is resident.
  bool aligned = schedule.isPanelAligned(encoding);
  if (!aligned && (schedule.isTensorCores() || schedule.isPacked()))
    return;
  if (schedule.isPacked() && !schedule.isResident())
    return;
  // Gathering a token-major x element by element takes longer than multiplying.
  if (kind == ScheduleKind::Wgmma && !problem.xFeatureMajor &&
      !keepsTokensAsRows(schedule, encoding, problem.elementBytes))
    return;
  if (getSharedBytes(problem, schedule) > chip.sharedBytes - 1024)
    return;
  Prediction prediction = predict(problem, schedule, chip);
  // Beyond 16 copies of a step, producers that gather copy in a loop: 24 take
  // three times as long as 16.
  if (tma && prediction.terms.copies > 16)
    return;
  // The large tiles of persistent CTAs have enough bytes on the way: 8 steps of
  // 32 rows take up to 8 % longer than 4 of 64.
  if (role.persistent && stages > 4 && rows <= 32)
    return;
  // A persistent CTA with one tile has none to fetch ahead, and parts of tiles
  // on the way from one to the next take twice the time of CTAs of their own.
  if (role.persistent &&
      (prediction.ctas <= chip.multiprocessors || splitK > 1))
    return;
  ranked.emplace_back(schedule, prediction);
}

void ScheduleEnumerator::addShape(ScheduleKind kind, Shape shape, Role role,
                                  ArrayRef<int64_t> windows,
                                  ArrayRef<Modes> modes,
                                  ArrayRef<int64_t> ring) {
  // Where products take long beside the exchange of parts, each way to fill the
  // last wave counts.
  static constexpr int64_t all[] = {1, 2, 3, 4, 5, 6, 8}, few[] = {1, 2, 4, 8};
  ArrayRef<int64_t> splits(few);
  if (kind == ScheduleKind::Simt)
    splits = all;
  for (int64_t step : windows)
    for (int64_t stages : ring)
      for (int64_t splitK : splits) {
        int64_t steps = llvm::divideCeil(problem.windows, step);
        if (splitK > 1 && steps < splitK * stages)
          continue;
        for (Modes mode : modes)
          add(kind, shape, role, step, stages, splitK, mode);
      }
}
