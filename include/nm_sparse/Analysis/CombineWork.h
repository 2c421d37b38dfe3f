//===- CombineWork.h - the time that counted work takes ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The formula of the cost model, the same for all products. Products count
// their work (CountWork.h); what a unit of it costs is in the table of the GPU
// (CostTable.h). This file knows neither MLIR nor schedules: bench/fit.py calls
// it through libnm_sparse_cost_model.so (CostModelC.h).
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_ANALYSIS_COMBINEWORK_H
#define NM_SPARSE_ANALYSIS_COMBINEWORK_H

#include "nm_sparse/Support/NamedField.h"

namespace mlir::nm_sparse {

/// The work of a schedule. Seconds are those of one SM at its share of the
/// chip's rates; instructions and waits are counted.
struct Work {
  double ctas = 0;            ///< CTAs of the whole product.
  double resident = 1;        ///< Those that an SM holds at a time.
  double multiprocessors = 1; ///< SMs of the chip,
  double clock = 1;           ///< and clocks of one in a second.
  double streamK = 0; ///< 1 where CTAs share tiles along the contraction.
  double steps = 0;   ///< K steps of one CTA.
  double stages = 0;  ///< Stages of its ring; 0 where it has none.

  // One K step of one CTA.
  double math = 0;     ///< Seconds of its flops, at the ceiling of the units.
  double products = 0; ///< Instructions of tensor cores that begin.
  double issued = 0;   ///< Instructions of all warps, by each of 4 schedulers.
  /// The warp that has most does these: seconds of flops, products that begin,
  /// and waits for memory and for instructions, one after the other.
  double ownMath = 0, ownProducts = 0, waits = 0, links = 0;
  /// Seconds of bytes from L2: of activations, of the weight, and of tokens
  /// that a tile has beyond the last one, which are zeros.
  double x = 0, weight = 0, zeros = 0;
  double shared = 0; ///< Seconds of bytes to and from shared memory.
  double copies = 0; ///< Copies of 16 bytes that one thread makes.
  /// Elements that are copied one by one, and pieces of less than 64 bytes that
  /// L2 delivers no faster than those.
  double singles = 0, pieces = 0;

  // One tile of one CTA.
  double index = 0; ///< Copies of parts of the index.
  double sums = 0;  ///< Elements of partial sums that a warp adds.
  /// Seconds of bytes of the result, written and read, and of the instructions
  /// of its epilogue; and accesses of less than 16 bytes to a caller's rows.
  double written = 0, read = 0, applied = 0, scattered = 0;

  // The whole product.
  double dram = 0;  ///< Seconds of each byte of operands and results once.
  double again = 0; ///< Seconds of L2, of the chip, for the weight once more.
  double runs = 0;  ///< Seconds of 32 bytes for each run of the weight.
  double parts = 1; ///< CTAs that share a tile along the contraction.
  /// Elements of a tile that they add up, by global memory, or in a cluster.
  double exchanged = 0, met = 0;
  double overlaps = 0; ///< 1 where the launch overlaps with the kernel before.
  /// Kernels before the product's: seconds of device memory for activations
  /// that are transposed, or whose rows are copied to where they are aligned.
  double transposed = 0, aligned = 0;
};

/// Costs of a unit of work, in one family of kernels.
struct ProductCosts {
  double math = 1;    ///< Times the seconds at the ceiling.
  double product = 0; ///< Clocks of an SM for an instruction to begin,
  double begin = 0;   ///< and of a warp.
  double issue = 1;   ///< Clocks of a scheduler for an instruction.
  double wait = 0;    ///< Clocks of a wait for memory,
  double link = 0;    ///< and for an instruction.
  double step = 0;    ///< Clocks of a K step beside those.
  double x = 1, weight = 1, zeros = 1, shared = 1; ///< Times their seconds.
  double copy = 0;      ///< Clocks of a thread for a copy of 16 bytes.
  double single = 0;    ///< Clocks of an SM for an element.
  double latency = 0;   ///< Clocks until copies arrive.
  double tile = 0;      ///< Clocks of a tile beside its K steps,
  double fillSteps = 0; ///< and K steps in which its ring fills.
  double index = 0;     ///< Clocks of a copy of a part of the index.
  double sum = 0;       ///< Clocks of a warp for a sum.
  double written = 1;   ///< Times the seconds of the result.
  double wave = 0;      ///< Clocks of each wave of CTAs after the first.
  double lastWave = 1;  ///< The part of a full wave that a last one takes.
  double apart = 0;     ///< By how much tiles that CTAs share take longer.
  double stream = 0;    ///< Clocks to exchange these.
  double dram = 1;      ///< Times the seconds of device memory.
  double uneven = 0;    ///< The part of the wait for the fullest port.
  double run = 0;       ///< Times the seconds of runs.
  /// The higher these are, the better the longest part of a step, and of the
  /// whole, hides the others.
  double stepNorm = 4, norm = 4;
  double split = 0; ///< Clocks of an exchange between CTAs of a tile,
  double part = 0;  ///< of each of them, and of each element of it.
  double element = 0;
};

/// Costs outside of the K loops, equal in all families, in clocks, and times
/// the seconds of what results read and apply.
struct SharedCosts {
  double launch = 0;  ///< From the end of the kernel before to the first copy.
  double overlap = 0; ///< By how much that is less where launches overlap.
  double read = 0, apply = 0, scattered = 0;
  /// Kernels that transpose, or copy rows, beside their bytes.
  double transposition = 0, rowCopy = 0;
  /// A cluster meets twice, and adds an element of a tile.
  double meet = 0, met = 0;
};

/// The resource that is busy longest.
enum class Bound { Product, L2, SharedMemory, Copies, DRAM };

struct CombinedTime {
  double seconds;
  Bound bound;
};

CombinedTime combineWork(const Work &work, const ProductCosts &costs,
                         const SharedCosts &shared);

/// Seconds of the kernels before the product's.
double combineKernelsBefore(const Work &work, const SharedCosts &shared);

inline constexpr NamedField<Work> workFields[] = {
    {"ctas", &Work::ctas},
    {"resident", &Work::resident},
    {"multiprocessors", &Work::multiprocessors},
    {"clock", &Work::clock},
    {"streamK", &Work::streamK},
    {"steps", &Work::steps},
    {"stages", &Work::stages},
    {"math", &Work::math},
    {"products", &Work::products},
    {"issued", &Work::issued},
    {"ownMath", &Work::ownMath},
    {"ownProducts", &Work::ownProducts},
    {"waits", &Work::waits},
    {"links", &Work::links},
    {"x", &Work::x},
    {"weight", &Work::weight},
    {"zeros", &Work::zeros},
    {"shared", &Work::shared},
    {"copies", &Work::copies},
    {"singles", &Work::singles},
    {"pieces", &Work::pieces},
    {"index", &Work::index},
    {"sums", &Work::sums},
    {"written", &Work::written},
    {"read", &Work::read},
    {"applied", &Work::applied},
    {"scattered", &Work::scattered},
    {"dram", &Work::dram},
    {"again", &Work::again},
    {"runs", &Work::runs},
    {"parts", &Work::parts},
    {"exchanged", &Work::exchanged},
    {"met", &Work::met},
    {"overlaps", &Work::overlaps},
    {"transposed", &Work::transposed},
    {"aligned", &Work::aligned}};
inline constexpr NamedField<ProductCosts> productCostFields[] = {
    {"math", &ProductCosts::math},
    {"product", &ProductCosts::product},
    {"begin", &ProductCosts::begin},
    {"issue", &ProductCosts::issue},
    {"wait", &ProductCosts::wait},
    {"link", &ProductCosts::link},
    {"step", &ProductCosts::step},
    {"x", &ProductCosts::x},
    {"weight", &ProductCosts::weight},
    {"zeros", &ProductCosts::zeros},
    {"shared", &ProductCosts::shared},
    {"copy", &ProductCosts::copy},
    {"single", &ProductCosts::single},
    {"latency", &ProductCosts::latency},
    {"tile", &ProductCosts::tile},
    {"fillSteps", &ProductCosts::fillSteps},
    {"index", &ProductCosts::index},
    {"sum", &ProductCosts::sum},
    {"written", &ProductCosts::written},
    {"wave", &ProductCosts::wave},
    {"lastWave", &ProductCosts::lastWave},
    {"apart", &ProductCosts::apart},
    {"stream", &ProductCosts::stream},
    {"dram", &ProductCosts::dram},
    {"uneven", &ProductCosts::uneven},
    {"run", &ProductCosts::run},
    {"stepNorm", &ProductCosts::stepNorm},
    {"norm", &ProductCosts::norm},
    {"split", &ProductCosts::split},
    {"part", &ProductCosts::part},
    {"element", &ProductCosts::element}};
inline constexpr NamedField<SharedCosts> sharedCostFields[] = {
    {"launch", &SharedCosts::launch},
    {"overlap", &SharedCosts::overlap},
    {"read", &SharedCosts::read},
    {"apply", &SharedCosts::apply},
    {"scattered", &SharedCosts::scattered},
    {"transposition", &SharedCosts::transposition},
    {"rowCopy", &SharedCosts::rowCopy},
    {"meet", &SharedCosts::meet},
    {"met", &SharedCosts::met}};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_ANALYSIS_COMBINEWORK_H
