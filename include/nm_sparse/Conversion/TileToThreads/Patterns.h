//===- Patterns.h - patterns of the exit conversion -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_CONVERSION_TILETOTHREADS_PATTERNS_H
#define NM_SPARSE_CONVERSION_TILETOTHREADS_PATTERNS_H

#include "nm_sparse/Conversion/TileToThreads/ThreadLayout.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Transforms/DialectConversion.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::nm_sparse {

class TileValues;

/// Converts an operation that the threads of `layout` do together.
template <typename OpT>
struct TilePattern : public OpConversionPattern<OpT> {
  TilePattern(const TypeConverter &converter, MLIRContext *context,
              const ThreadLayout &layout)
      : OpConversionPattern<OpT>(converter, context), layout(layout) {}

  const ThreadLayout &layout;
};

/// Collects properties of a launch that its code shows before the conversion,
/// but no longer after it.
class KernelHints {
public:
  KernelHints(gpu::LaunchOp launch);

  /// `product` adds to a sum in `layout`, one of the launch.
  void addSum(TileMatmulOp product, const ThreadLayout &layout);

  /// Says it, behind the converted code.
  void emit();

private:
  gpu::LaunchOp launch;
  Location loc;
  /// Counts for all sums together.
  std::optional<int64_t> accumulators, registers;
  bool sharesLaunch = true;
  /// Buffers from outside the launch, and tensor maps.
  llvm::SetVector<Value> positions, tiles;
};

/// If registers are short, reads the operands of an epilogue before the K loop,
/// or prefetches them into L2.
void prepareEpilogueReads(gpu::LaunchOp launch, const TileValues &tiles,
                          const ThreadLayout &layout);

struct TileEpilogue;
/// Reads before the K loop where tiles of permuted views lie, which their reads
/// and writes would wait for behind it.
void lookUpPlaces(gpu::LaunchOp launch, const TileValues &tiles,
                  const ThreadLayout &layout, TileEpilogue &epilogue);

/// The knowledge about a read or write of a tile.
enum class TileVersion {
  Unknown, ///< Nothing: it tests whether it may go the fast way.
  Whole,   ///< All elements exist, and are aligned for wide accesses.
  Edge,    ///< Aligned as well, but not all elements exist.
  Runs,    ///< As Edge, and of each access all elements exist or none does.
  Elements ///< Each element is tested, and accessed alone.
};

/// The state of the conversion for the operations around the product.
struct TileEpilogue {
  /// The version of each read and write in epilogues that have several
  /// versions; then the branches between the versions, in the order of the
  /// code, and the body of each version.
  llvm::DenseMap<Operation *, TileVersion> versions;
  SmallVector<scf::IfOp> branches;
  SmallVector<std::pair<Block *, TileVersion>> bodies;

  /// For tiles of permuted views, if they are known before the product: the
  /// places of a thread's elements, by their offsets along the permuted
  /// dimension.
  llvm::DenseMap<Value, llvm::DenseMap<int64_t, Value>> places;

  /// Without versions: scalar operations, and reads of tiles so large that
  /// their elements and the accumulators do not fit in registers together, both
  /// in program order.
  SmallVector<Operation *> elementwise, reads;
  /// Tiles written by the launch, and how many of them may be.
  int64_t numWrites = 0, maxWrites = 1;
  /// A thread has so many elements that registers hold no two values of each.
  bool isCrowded = false;

  /// If registers are short, moves each recorded operation to its first use, so
  /// that an element is read and combined just before it is written.
  void sinkOperations();
  /// Orders the versions of epilogues by what they write.
  void orderVersions(const ThreadLayout &layout, bool sharesTiles);
};

/// A TilePattern that records in `epilogue` what it makes.
template <typename OpT>
struct EpiloguePattern : public TilePattern<OpT> {
  EpiloguePattern(const TypeConverter &converter, MLIRContext *context,
                  const ThreadLayout &layout, TileEpilogue &epilogue)
      : TilePattern<OpT>(converter, context, layout), epilogue(epilogue) {}

  TileEpilogue &epilogue;
};

/// Splits each epilogue that reads more than registers hold into one version
/// for whole tiles and others for those at an edge, before the conversion.
void splitEpilogues(gpu::LaunchOp launch, TileValues &tiles,
                    const ThreadLayout &layout, TileEpilogue &epilogue);

/// Elementwise operations and constants of CTA-tile vectors -> scalars.
/// `epilogue` records what is made of them.
void populateTileElementwisePatterns(const TypeConverter &converter,
                                     const ThreadLayout &layout,
                                     TileEpilogue &epilogue,
                                     RewritePatternSet &patterns);

/// The vector of `low` and `high`. Two numbers that were made narrower are put
/// together first: one instruction converts both.
Value makePair(OpBuilder &b, Location loc, Value low, Value high);

/// Transfers of CTA-tile vectors -> loads and stores of scalars.
void populateTileReadPatterns(const TypeConverter &converter,
                              const ThreadLayout &layout,
                              TileEpilogue &epilogue,
                              RewritePatternSet &patterns);
void populateTileWritePatterns(const TypeConverter &converter,
                               const ThreadLayout &layout,
                               TileEpilogue &epilogue,
                               RewritePatternSet &patterns);

/// store_part and load_part -> vector.store and vector.load.
void populateTilePartPatterns(const TypeConverter &converter,
                              const ThreadLayout &layout,
                              TileEpilogue &epilogue,
                              RewritePatternSet &patterns);

/// sum_warps -> stores and loads of workgroup memory.
void populateSumWarpsPatterns(const TypeConverter &converter,
                              const ThreadLayout &layout,
                              RewritePatternSet &patterns);

/// sum_ctas -> loads of the shared memory of a cluster.
void populateSumCtasPatterns(const TypeConverter &converter,
                             const ThreadLayout &layout,
                             RewritePatternSet &patterns);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_CONVERSION_TILETOTHREADS_PATTERNS_H
