//===- SegmentFragments.cpp - fragments of whole windows ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A lane reads the values of its segment 16 bytes at a time, and its bits, and
// has all that it needs for the rows of the segment in its own registers.
//
//===----------------------------------------------------------------------===//

#include "SegmentFragments.h"
#include "../SharedLoads.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "nm_sparse/Dialect/NMTile/IR/TileLayout.h"

using namespace mlir;
using namespace mlir::nm_sparse;

static constexpr int64_t kLanes = Segment::kLanes, kLineBytes = 128,
                         kBitsBytes = 4, kValueBytes = 2;
/// Sizes of TileLayout::SegmentLines: outputs of a line, boxes of 32 outputs,
/// and blocks of 32 outputs in a box.
static constexpr int64_t kLineOutputs = 8, kBoxes = 4, kBoxBlocks = 2;

SegmentFragments::SegmentFragments(OpBuilder &b, TileMatmulOp op, Value lane,
                                   Value output, Value share, int64_t shares)
    : b(b), loc(op.getLoc()), tile(*op.getStoredTile()),
      segment(Segment::get(op.getEncoding(), tile, kValueBytes)),
      table(b, loc, lane, segment.registerRows) {
  IndexMath math(b, loc);
  auto valuesType = cast<MemRefType>(op.getRhs().getType());
  blocks = valuesType.getDimSize(0);
  tiles = valuesType.getDimSize(1);
  int64_t ownTiles = tiles / shares;
  groups = ownTiles * segment.perTile / kLanes;
  Value t = math.rem(lane, kLanes);
  Value block = math.div(output, BitmapTile::kOutputs);
  Value inBlock = math.rem(output, BitmapTile::kOutputs);

  // Four segments are eight lines, in which the order of words repeats.
  Value key = math.add(math.mul(t, kBoxBlocks), math.rem(block, kBoxBlocks));
  Value line = key;
  if (share)
    line = math.add(line, math.mul(share, groups * kLanes * kBoxBlocks));
  Value box = math.add(math.mul(math.div(block, kBoxBlocks), kBoxes),
                       math.div(inBlock, kLineOutputs));
  line = math.add(math.mul(box, tiles * segment.perTile * kBoxBlocks), line);
  Value word = math.bitXor(math.rem(inBlock, kLineOutputs), key);
  values = getPointer(b, loc, op.getRhs(),
                      math.add(math.mul(line, kSwizzledColumns),
                               math.mul(word, segment.getPieceValues())));

  Value tileNumber =
      math.add(math.mul(block, tiles), math.div(t, segment.perTile));
  if (share)
    tileNumber = math.add(tileNumber, math.mul(share, ownTiles));
  Value first = math.add(math.mul(tileNumber, tile.getBitsWords()),
                         math.mul(inBlock, tile.words));
  Value inTile = math.rem(t, segment.perTile);
  if (tile.words < segment.perTile * segment.words)
    place = math.narrow(math.mul(inTile, segment.rows));
  else
    first = math.add(first, math.mul(inTile, segment.words));
  bits = getPointer(b, loc, op.getIndex(), first);
}

SmallVector<SmallVector<int64_t>> SegmentFragments::getParts() const {
  SmallVector<SmallVector<int64_t>> parts(groups);
  for (int64_t group = 0; group < groups; ++group)
    for (int64_t chunk : SegmentExpansion::getChunkOrder(segment))
      parts[group].push_back(group * getGroupRows() + chunk * kPartRows);
  return parts;
}

/// The segment of the lane in `group`, of output g, or g + 8, and `output`
/// further.
SegmentExpansion &SegmentFragments::getSegment(int64_t group, int64_t output,
                                               bool isUpper) {
  auto known = segments.find({group, output, isUpper});
  if (known != segments.end())
    return known->second;
  int64_t boxBytes = tiles * segment.perTile * kBoxBlocks * kLineBytes;
  int64_t furtherBlocks = output / BitmapTile::kOutputs;
  int64_t bytes = (furtherBlocks / kBoxBlocks * kBoxes + isUpper) * boxBytes +
                  group * kLanes * kBoxBlocks * kLineBytes;
  auto four = VectorType::get({4}, b.getI32Type());
  SmallVector<Value> registers, words;
  for (int64_t first = 0; first < segment.values;
       first += segment.getPieceValues()) {
    Value piece = loadAt(b, loc, values, bytes, four);
    for (int64_t i = 0; i < 4; ++i)
      registers.push_back(vector::ExtractOp::create(b, loc, piece, i));
    bytes += blocks / kBoxBlocks * kBoxes * boxBytes;
  }
  int64_t firstWord =
      (furtherBlocks * tiles + group * kLanes / segment.perTile) *
          tile.getBitsWords() +
      (isUpper ? kLineOutputs * tile.words : 0);
  for (int64_t i = 0; i < segment.words; ++i) {
    Value word =
        loadAt(b, loc, bits, (firstWord + i) * kBitsBytes, b.getI32Type());
    if (place)
      word = arith::ShLIOp::create(b, loc, word, place);
    words.push_back(word);
  }
  return segments
      .try_emplace({group, output, isUpper},
                   SegmentExpansion(b, loc, segment, registers, words, table))
      .first->second;
}

void SegmentFragments::load(int64_t row, int64_t output) {
  int64_t group = row / getGroupRows();
  getSegment(group, output, /*isUpper=*/false);
  getSegment(group, output, /*isUpper=*/true);
}

SmallVector<Value> SegmentFragments::getFragment(int64_t row, int64_t output) {
  int64_t group = row / getGroupRows();
  int64_t inSegment = row % getGroupRows() / kLanes;
  SegmentExpansion &lower = getSegment(group, output, /*isUpper=*/false);
  SegmentExpansion &upper = getSegment(group, output, /*isUpper=*/true);
  return {lower.getRows(inSegment), upper.getRows(inSegment),
          lower.getRows(inSegment + 2), upper.getRows(inSegment + 2)};
}
