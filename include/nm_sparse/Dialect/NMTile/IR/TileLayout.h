//===- TileLayout.h - how tiles lie in shared memory ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMTILE_IR_TILELAYOUT_H
#define NM_SPARSE_DIALECT_NMTILE_IR_TILELAYOUT_H

#include "nm_sparse/Dialect/NMTile/IR/Schedule.h"

namespace mlir::nm_sparse {

/// Columns of a 16-bit tile that fill the 128-byte line over which its words
/// are swizzled.
constexpr int64_t kSwizzledColumns = 64;

/// Bytes of that line.
constexpr int64_t kSwizzledLineBytes = 128;

/// Elements that fill it.
int64_t getLineElements(Type element);

/// Rows after which the order of words repeats.
constexpr int64_t kSwizzleRows = 8;
constexpr int64_t kSwizzledBlockAlignment = kSwizzleRows * kSwizzledLineBytes;

/// Returns true for a tile of 8-bit elements or 16-bit floats with rows of
/// whole lines, which a bulk copy swizzles.
bool hasWholeLines(MemRefType tile);

/// Elements of the last dimension of a rank-3 tile that one box of a tensor map
/// holds: all of them, or a divisor of 256, the most that there may be.
int64_t getColumnBlock(MemRefType tile);

/// Returns true if tiles of token-major activations keep a token in each row,
/// as products of tensor cores read them. Gathered tiles do if a row of a block
/// is 16 bytes of a token, and if the tiles are whole lines for warpgroups.
bool keepsTokensAsRows(ScheduleAttr schedule, EncodingAttr encoding,
                       int64_t elementBytes);

/// A table for steps that begin inside windows: the row of the activations with
/// which each block of a panel begins.
struct RowTable {
  /// Blocks of a panel, rounded up to whole steps, and bits of an entry.
  int64_t rows;
  unsigned bits;
};

/// The table of a contraction of `windows`.
RowTable getRowTable(ScheduleAttr schedule, EncodingAttr encoding,
                     int64_t windows);

/// Tiles start at multiples of the 128-byte line, so rows whose pitch is a
/// multiple of 16 bytes keep 16-byte accesses aligned.
constexpr int64_t kTileAlignment = 128;

/// The layout of a tile in shared memory, as its memory space says.
TileLayout getTileLayout(MemRefType tile);

/// The memory space of tiles with `layout`.
Attribute getTileSpace(MLIRContext *context, TileLayout layout);

/// Returns true for buffers in shared memory, whatever their layout.
bool isInSharedMemory(MemRefType buffer);

/// Checks that the layout of `tile`, written or read by `op`, is one of tiles
/// of its shape.
LogicalResult verifyTileLayout(Operation *op, MemRefType tile);

/// Returns the elements of a row of `columns` in a ring, padded if that avoids
/// bank conflicts. `isTransposed`: a copy that transposes fills the tiles.
int64_t getPaddedColumns(Type element, int64_t columns, bool isTransposed);

/// Returns the buffer of a ring of `stages` such tiles. Tiles that bulk copies
/// fill are not padded.
MemRefType getRingType(MemRefType tile, int64_t stages, bool isTransposed,
                       bool isBulk);

/// Bytes of shared memory from the start of `buffer` to where the next one can
/// start.
int64_t getAllocatedBytes(int64_t elements, Type element);
int64_t getAllocatedBytes(MemRefType buffer);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_DIALECT_NMTILE_IR_TILELAYOUT_H
