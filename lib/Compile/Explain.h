//===- Explain.h - what each stage did --------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_COMPILE_EXPLAIN_H
#define NM_SPARSE_LIB_COMPILE_EXPLAIN_H

#include "nm_sparse/Analysis/CostModel.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "nm_sparse/Energy/CombineEnergy.h"
#include "nm_sparse/Target/Target.h"
#include "nm_sparse/Tuning/MeasuredTime.h"
#include <map>

namespace mlir::nm_sparse {
struct Chip;

/// Number of operations of each dialect.
using OpCounts = std::map<std::string, int64_t>;
OpCounts countOps(ModuleOp module);

/// One line: the stage, operations before and after, the dialects that
/// changed, and the time.
void explainStage(llvm::raw_ostream &os, StringRef stage,
                  const OpCounts &before, const OpCounts &after,
                  double milliseconds);
/// Which copies functions select between, and for how many tokens.
void explainClasses(llvm::raw_ostream &os, ModuleOp module);
void explainProducts(llvm::raw_ostream &os,
                     ArrayRef<ScheduledProduct> products);
/// Launches with grid, block and shared memory.
void explainLaunches(llvm::raw_ostream &os, ModuleOp module);
void explainPTX(llvm::raw_ostream &os, StringRef ptx,
                const Assembled *assembled);

/// The operation that makes the activations of `op`, or the image that they are
/// patches of, without reshapes; null if a caller gives them.
Operation *findPreparation(MatmulOp op);
/// The products whose activations `op` makes.
SmallVector<MatmulOp> findReaders(Operation *op);
/// Bytes of the activations of `op`, or of their image.
double countActivations(MatmulOp op, int64_t tokens);

/// Activations and results of sparse matmuls that `module`, as the layout stage
/// left it, transposes, and the predicted time of that.
void explainTransposes(llvm::raw_ostream &os, ModuleOp module, const Chip &chip,
                       int64_t tokens);

/// For each sparse matmul of `module`, as the layout stage left it, the `count`
/// best schedules of each family of kernels for `tokens` tokens, as JSON; the
/// first one is the choice. A schedule that the matmul was given comes beside
/// them.
llvm::Error printCandidates(ModuleOp module, const Chip &chip, int64_t tokens,
                            int64_t count, Objective objective,
                            llvm::raw_ostream &os);

/// For each sparse matmul of `module`, as the schedule stage left it, what the
/// model predicts, what it compared, and what a dense product would take.
void explainCandidates(llvm::raw_ostream &os, ModuleOp module, const Chip &chip,
                       int64_t tokens, Objective objective);
/// The prediction for a product under its own schedule, with its share of the
/// kernel before it.
struct ChosenTime {
  double seconds;
  double dense; ///< Seconds of the vendor's dense product.
  StringRef bound;
  StringRef before; ///< The work of that kernel; empty if there is none.
  /// The energy of the product and of the dense one; none if the energy of the
  /// GPU was not measured.
  std::optional<CombinedEnergy> energy = {}, denseEnergy = {};
  /// The time of a tuning database, if the schedule is from there.
  std::optional<MeasuredTime> measured = {};
};
ChosenTime predictChosen(MatmulOp op, const Chip &chip, int64_t tokens);
/// Predicts `op` under `schedule`, together with its share of the kernel
/// before.
Prediction predictWhole(MatmulOp op, ScheduleAttr schedule, const Chip &chip,
                        int64_t tokens);
/// Names the sparse matmuls that a dense product is predicted to beat.
void warnOfSlowProducts(llvm::raw_ostream &os, ModuleOp module,
                        const Chip &chip, int64_t tokens);

/// Millijoules, with three digits or more.
std::string printMillijoules(double joules);

/// The support table: each combination is compiled.
void printSupport(MLIRContext &context, llvm::raw_ostream &os);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_COMPILE_EXPLAIN_H
