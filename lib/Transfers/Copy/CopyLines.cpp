//===- CopyLines.cpp - whole lines of gathered rows -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A thread copies a chunk of each line of a row, and of rows that are constants
// apart in the destination. Where a row begins is found once for its lines; the
// lines of patches are those of different outputs, each with a place of its
// own.
//
//===----------------------------------------------------------------------===//

#include "CopyEmitter.h"
#include "nm_sparse/Dialect/NMTile/IR/TileLayout.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::nm_sparse;

Value CopyEmitter::viewFrom(Value memref, Value place) const {
  auto metadata = memref::ExtractStridedMetadataOp::create(b, loc, memref);
  auto type = cast<MemRefType>(memref.getType());
  auto viewType = MemRefType::get(
      {ShapedType::kDynamic}, type.getElementType(),
      StridedLayoutAttr::get(b.getContext(), ShapedType::kDynamic, {1}),
      type.getMemorySpace());
  Value size = metadata.getSizes()[0];
  if (type.hasStaticShape())
    size = math.constant(type.getNumElements());
  return memref::ReinterpretCastOp::create(
      b, loc, viewType, metadata.getBaseBuffer(),
      OpFoldResult(math.add(metadata.getOffset(), place)),
      ArrayRef<OpFoldResult>{math.sub(size, place)},
      ArrayRef<OpFoldResult>{b.getIndexAttr(1)});
}

CopyEmitter::Lines CopyEmitter::findLines(ChunkPlace<Value> first) const {
  auto blocks = cast<MemRefType>(ends.storage.getBuffer().getType());
  Lines lines;
  lines.first = first;
  lines.line = blocks.getDimSize(2);
  lines.block = blocks.getDimSize(1) * lines.line;
  for (int64_t i = 0; i < plan.getLinesOfRow(); ++i) {
    Value column = math.add(first.column, i * lines.line);
    SourceIndex at = ends.columns.find(b, loc, column);
    lines.counts.push_back(ends.columns.count(b, loc, at, width));
    if (ends.patches)
      lines.tokens.push_back(ends.patches->findToken(b, loc, column, isFast));
  }
  // The destination repeats after some rows, but for a constant.
  lines.destinations.resize(kSwizzleRows);
  return lines;
}

CopyEmitter::LineRow CopyEmitter::findLineRow(Lines &lines, int64_t row) const {
  int64_t inPeriod = row % kSwizzleRows;
  Value &to = lines.destinations[inPeriod];
  if (!to) {
    SmallVector<Value> at = ends.storage.getIndices(
        b, loc, math.add(lines.first.row, inPeriod), lines.first.column);
    to = viewFrom(ends.storage.getBuffer(),
                  math.add(math.mul(at[1], lines.line), at[2]));
  }
  LineRow found;
  found.to = to;
  found.destination = (row - inPeriod) * lines.line;
  SourceTerms terms =
      ends.rows.split(b, loc, lines.first.row, plan.getLineRows(), row);
  found.exists = terms.exists;
  if (ends.patches) {
    Value number = math.add(terms.common, terms.offset);
    if (terms.found)
      number = math.add(number, terms.found);
    found.patch = ends.patches->findRow(b, loc, number, isFast);
    return found;
  }
  Value pitch = math.narrow(ends.source.getPitch());
  int64_t knownPitch = ends.source.getStaticPitch();
  bool hasPitch = !ShapedType::isDynamic(knownPitch);
  Value place = math.add(math.mul(math.narrow(terms.common), pitch),
                         math.narrow(lines.first.column));
  if (!hasPitch)
    place = math.add(place, math.mul(pitch, math.word(terms.offset)));
  if (terms.found)
    place = math.add(place, math.mul(math.narrow(terms.found), pitch));
  found.from = viewFrom(ends.source.getBuffer(), math.widen(place));
  found.source = math.constant(hasPitch ? terms.offset * knownPitch : 0);
  return found;
}

void CopyEmitter::copyLine(const Lines &lines, const LineRow &row, int64_t i) {
  Value from = row.from, exists = row.exists, source;
  if (ends.patches) {
    PatchSource::Element element =
        ends.patches->find(b, loc, row.patch, lines.tokens[i], isFast);
    from = ends.source.getBuffer();
    source = element.place;
    exists = math.both(exists, element.exists);
  } else {
    source = math.add(row.source, i * lines.line);
  }
  UnitAttr bypassL1 = width * element.getIntOrFloatBitWidth() == 128
                          ? b.getUnitAttr()
                          : UnitAttr();
  nvgpu::DeviceAsyncCopyOp::create(
      b, loc, nvgpu::DeviceAsyncTokenType::get(b.getContext()), row.to,
      math.constant(row.destination + i * lines.block), from, source,
      b.getIndexAttr(width), selectCount(exists, lines.counts[i]), bypassL1);
}

void CopyEmitter::emitRowsOfLines(ChunkPlace<Value> first) {
  Lines lines = findLines(first);
  int64_t perRow = plan.getLinesOfRow();
  int64_t rowRounds = plan.getRounds() / perRow;
  SmallVector<LineRow> rows;
  for (int64_t round = 0; round < rowRounds; ++round) {
    rows.push_back(findLineRow(lines, round * plan.getLineRows()));
    if (static_cast<int64_t>(rows.size()) < plan.getBatch() &&
        round + 1 < rowRounds)
      continue;
    for (const LineRow &row : rows)
      for (int64_t i = 0; i < perRow; ++i)
        copyLine(lines, row, i);
    rows.clear();
  }
}

void CopyEmitter::emitLines() {
  ChunkPlace<Value> first = plan.getPlace(math, thread, /*round=*/0);
  if (plan.getCopiers() == plan.getShape().threads)
    return emitRowsOfLines(first);
  Value copies = math.isLess(thread, math.constant(plan.getCopiers()));
  auto ifOp = scf::IfOp::create(b, loc, copies, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.thenBlock());
  emitRowsOfLines(first);
}
