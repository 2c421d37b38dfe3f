//===- TileAccess.h - where a tile lies in a buffer -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_CONVERSION_TILETOTHREADS_TILEACCESS_H
#define NM_SPARSE_LIB_CONVERSION_TILETOTHREADS_TILEACCESS_H

#include "nm_sparse/Conversion/TileToThreads/ThreadLayout.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/VectorInterfaces.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::nm_sparse {

struct TileEpilogue;

/// Accumulators and elements beside them that registers may hold.
constexpr int64_t kLiveElements = 112;

/// Elements of a thread that one access reads or writes.
using TileRun = SmallVector<int64_t>;

/// Where the elements of a tile lie in a buffer, for reads and writes alike.
class TileAccess {
public:
  /// The access of a vector.transfer_read or vector.transfer_write. Its
  /// permutation map takes the buffer's dimensions to (token, output), with
  /// constant 0 for a dimension over which the buffer is broadcast.
  TileAccess(OpBuilder &b, const ThreadLayout &layout,
             VectorTransferOpInterface transfer);
  /// `other` by the threads of another layout.
  TileAccess(const TileAccess &other, const ThreadLayout &layout)
      : b(other.b), loc(other.loc), layout(layout), buffer(other.buffer),
        type(other.type), indices(other.indices), inBounds(other.inBounds),
        dims{other.dims[0], other.dims[1]}, isWrite(other.isWrite),
        view(other.view), interleaved(other.interleaved), root(other.root),
        places(other.places) {}

  bool isBroadcast(unsigned side) const { return dims[side] < 0; }

  /// True when neighbours along `side` (0 tokens, 1 outputs) are neighbours in
  /// memory.
  bool isContiguous(unsigned side);

  /// Indices in the buffer of the element at `offset` from the thread's base.
  SmallVector<Value> getIndices(TileOffset offset);
  /// Returns the indices of the first element of `run`.
  SmallVector<Value> getIndices(ArrayRef<int64_t> run);

  /// For a tile of a nm_tile.permuted_view: reads its permutation at all places
  /// of the thread along that dimension. Call it where it dominates all calls
  /// of getPlace.
  void lookUpPlaces();
  const llvm::DenseMap<int64_t, Value> &getPlaces() const { return places; }
  /// As lookUpPlaces, unless `known` has the places of this tile.
  void
  usePlaces(const llvm::DenseMap<Value, llvm::DenseMap<int64_t, Value>> &known);
  /// How many places lookUpPlaces reads.
  int64_t countPlaces();
  /// The buffer in which the tile lies in memory, and the indices there of the
  /// element at `at`, which getIndices has made of `offset`. Those of the
  /// dimension that is permuted are looked up unless lookUpPlaces has been
  /// called; those of a nm_tile.interleaved_view are computed.
  Value getRoot() const { return root; }
  SmallVector<Value> getPlace(ArrayRef<Value> at, TileOffset offset);
  SmallVector<Value> getPlace(ArrayRef<int64_t> run);
  /// Replaces the buffer in memory by an equal one.
  void setRoot(Value value) {
    if (root == buffer)
      buffer = value;
    root = value;
  }
  /// Returns true if the places along a side of the tile are looked up.
  bool isLookedUp() { return view && getPermutedSide() < 2; }
  /// Returns true if neighbours along a side of the tile may lie at any
  /// distance.
  bool isPermuted() { return interleaved || isLookedUp(); }

  /// i1: the element at `at` exists; null when it is known to.
  Value exists(ArrayRef<Value> at);

  /// `at`, or where no element is there, the last one along each side. (A tile
  /// is of a buffer that has elements.)
  SmallVector<Value> clamp(ArrayRef<Value> at);

  /// The elements of `runs`, those together of which all exist or none does, so
  /// that one test and one branch do for them: with one for each element, the
  /// code of a kernel is mostly branches, which LLVM and ptxas spend their time
  /// on. Each alone where few belong together, for ptxas makes predicated
  /// instructions of a single access. `most` bounds the elements of a group,
  /// for want of registers.
  SmallVector<SmallVector<int64_t>>
  groupByBounds(ArrayRef<TileRun> runs,
                size_t most = std::numeric_limits<size_t>::max()) const;

  /// i1: the whole CTA tile exists, or may at least be written, and runs of
  /// `width` elements along the last dimension are aligned; null when both are
  /// known.
  Value allowsWide(int64_t width);

  /// The tile as a part of a buffer of the program's that ends in padding; null
  /// where it is none.
  memref::SubViewOp getPaddedTile();

  /// i1: each row, and the tile's place in it, are multiples of `width`
  /// elements; null when they always are.
  Value isAligned(int64_t width);
  /// i1: as isAligned, and the elements of each run of `width` all exist or
  /// none does; null when that is known.
  Value hasWholeRuns(int64_t width);

  /// Runs to access together: along the side that is contiguous in memory, up
  /// to 16 bytes wide; single elements when neither is.
  SmallVector<TileRun> getRuns();
  /// As above, without those whose elements an earlier run has already, since
  /// the buffer is broadcast. `first` says where the run of each key begins
  /// among the elements of the result.
  SmallVector<TileRun>
  getDistinctRuns(llvm::DenseMap<std::pair<int64_t, int64_t>, int64_t> &first);
  /// Equal for runs of the same elements.
  std::pair<int64_t, int64_t> getKey(ArrayRef<int64_t> run) const;

  OpBuilder &b;
  Location loc;
  const ThreadLayout &layout;
  Value buffer;
  MemRefType type;
  SmallVector<Value> indices;
  SmallVector<bool> inBounds;
  int64_t dims[2] = {-1, -1};
  bool isWrite;

private:
  Value constant(int64_t v);
  /// The indices in the view's source of the element at `at`, before they are
  /// permuted.
  SmallVector<Value> getViewIndices(ArrayRef<Value> at);
  /// The side of the tile that is permuted; 2 where neither is.
  unsigned getPermutedSide();
  Value lookUp(ArrayRef<Value> viewIndices);
  Value getExtent(unsigned side);
  bool isAlwaysAligned(int64_t width);

  /// The view that the tile is of; at most one is not null.
  PermutedViewOp view;
  InterleavedViewOp interleaved;
  Value root;
  /// Indices that the permutation has, by the offset along its side.
  llvm::DenseMap<int64_t, Value> places;
};

/// Runs in groups whose accesses share one `scf.if`: all in one group, or, when
/// registers are short, 32 elements in each.
SmallVector<ArrayRef<TileRun>> groupRuns(ArrayRef<TileRun> runs, bool small);

/// Returns true if accumulators of type `element` are copied by
/// copyToAnyRegister before they are stored. What was computed from them is in
/// registers of its own.
bool mustUntie(const ThreadLayout &layout, Type element,
               const TileEpilogue &epilogue);
/// A copy of `value` that ptxas cannot do without. Four registers that are
/// stored together are neighbours, as are the four outputs of the weight that
/// one read fetched, so each accumulator of a simt thread would share the
/// register bank of its weight, and the FFMA that reads both takes two cycles.
/// A sum with -0.0 has the bits of `value`.
Value copyToAnyRegister(OpBuilder &b, Location loc, Value value);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_CONVERSION_TILETOTHREADS_TILEACCESS_H
