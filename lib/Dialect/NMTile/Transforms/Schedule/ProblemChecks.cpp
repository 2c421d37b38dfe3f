//===- ProblemChecks.cpp - products that no kernel multiplies -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A product without any schedule is refused before schedules are compared, so
// that the reason names what the program says: element type, storage, order and
// panels.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "nm_sparse/Analysis/CostModel.h"
#include "nm_sparse/Chip/Chip.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "nm_sparse/Dialect/NMTile/Transforms/Transforms.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// The encoding that the program gives the weight of `op`, or null where
/// neither an argument nor an op that packs says it.
static EncodingAttr findDeclaredEncoding(MatmulOp op) {
  Value values = op.getValues();
  if (auto pack = values.getDefiningOp<PackOp>())
    return pack.getEncoding();
  auto argument = dyn_cast<BlockArgument>(values);
  auto function =
      argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp())
               : func::FuncOp();
  auto component = function
                       ? function.getArgAttrOfType<ComponentAttr>(
                             argument.getArgNumber(),
                             NMSparseDialect::ComponentAttrHelper::getNameStr())
                       : ComponentAttr();
  return component ? component.getPacked().getEncoding() : EncodingAttr();
}

/// Says why a weight whose products need bitmaps has none.
static LogicalResult reportNoBitmaps(MatmulOp op, Type element) {
  static constexpr const char *others = "or elements of f32, f16 or bf16";
  InFlightDiagnostic error = op.emitOpError("on ")
                             << op.getEncoding() << " of " << element
                             << " has no schedule: products of " << element
                             << " read weights that are stored as bitmaps, "
                                "but this one is stored as ";
  if (op.getListedPanels())
    return error << "ragged panels, because its blocks are free; legal are "
                    "free elements (block = [1, 1]), a pattern n:m, "
                 << others;
  error << "values and positions";
  EncodingAttr declared = findDeclaredEncoding(op);
  if (declared && declared.getOrder() == OutputOrder::Shuffled)
    return error << ", because order = shuffled has no bitmaps; legal are "
                    "order = identity, "
                 << others;
  return error << "; legal are storage = auto or bitmap, of a weight with "
                  "order = identity that is a constant or an argument that "
                  "only products read, "
               << others;
}

/// Values along the contraction are read by products of warpgroups of 8 bits
/// alone.
static LogicalResult checkKMajor(MatmulOp op, const MatmulProblem &problem) {
  constexpr int64_t unit = 64, stepRows = 128;
  const EncodingAttr &encoding = problem.encoding;
  if (problem.elementBytes == 1 && encoding.getBlockN() % unit == 0 &&
      stepRows % encoding.getBlockK() == 0)
    return success();
  return op.emitOpError("on ")
         << encoding << " of " << getElementTypeOrSelf(op.getX())
         << " has no schedule: weights stored as k_major have elements of 8 "
            "bits, panels of a multiple of "
         << unit << " outputs, and blocks whose rows divide " << stepRows
         << "; legal are storage = auto, or bitmap";
}

LogicalResult nm_sparse::checkProblem(MatmulOp op,
                                      const MatmulProblem &problem) {
  Type element = getElementTypeOrSelf(op.getX());
  if (!element.isF32() && !problem.tensorCores && !problem.bitmap &&
      !problem.valuesKMajor)
    return reportNoBitmaps(op, element);
  EncodingAttr encoding = op.getEncoding();
  int64_t bn = encoding.getBlockN();
  if (problem.valuesKMajor)
    return checkKMajor(op, problem);
  // Tiles lie inside one panel.
  int64_t unit = element.isF32() ? 4 : 8;
  if (problem.raggedRows && bn % unit != 0)
    return op.emitOpError("on ")
           << encoding << " of " << element
           << " has no schedule: its ragged panels have " << bn
           << " outputs, legal are multiples of " << unit
           << ", or free elements (block = [1, 1]) with order = identity";
  if (problem.tensorCores && !problem.bitmap && !encoding.hasInnerLevel() &&
      bn % 8 != 0 && 8 % bn != 0)
    return op.emitOpError("on ")
           << encoding << " of " << element
           << " has no schedule: its panels have " << bn
           << " outputs, legal are multiples and divisors of 8, or a weight "
              "with order = identity that is stored as bitmaps (storage = "
              "auto or bitmap)";
  return success();
}

/// Rows of a tile of bitmaps with so little code that no product refuses it.
static constexpr int64_t kShortTileRows = 256;

LogicalResult nm_sparse::reportNoSchedule(MatmulOp op,
                                          const MatmulProblem &problem,
                                          const Chip &target) {
  EncodingAttr encoding = op.getEncoding();
  InFlightDiagnostic error = op.emitOpError("on ") << encoding;
  // Code for short tiles is never too long: a build may lack the products that
  // read them.
  if (!encoding.hasInnerLevel() && problem.bitmap &&
      problem.bitmap->rows <= kShortTileRows)
    return error << " of " << getElementTypeOrSelf(op.getX())
                 << " has no schedule for " << target.name
                 << ": no product of this build reads its bitmaps; legal are "
                    "a build with more products or transfers "
                    "(NM_SPARSE_PRODUCTS, NM_SPARSE_TRANSFERS), or, for f32, "
                    "f16 and bf16, storage = canonical";
  if (!encoding.hasInnerLevel() && problem.bitmap)
    return error << " of " << getElementTypeOrSelf(op.getX())
                 << " has no schedule: " << problem.bitmap->rows
                 << " rows of its windows, which keep "
                 << problem.bitmap->values
                 << ", make a tile of bitmaps, and code for each value of such "
                    "a tile would be too long; legal are shorter windows, and "
                    "such whose rows divide by 8 and whose kept rows fill "
                    "pieces of 16 bytes, as 128:256 does, or, for f32, f16 and "
                    "bf16, storage = canonical";
  if (problem.valuesKMajor)
    return error << " has no schedule for " << target.name
                 << ": weights stored as k_major are multiplied on sm_90a, "
                    "with activations that are feature-major or may become "
                    "so; legal are storage = auto with layout = auto, or "
                    "storage = bitmap";
  if (!encoding.hasInnerLevel())
    return error << ": no schedule fits the " << target.sharedBytes
                 << " bytes of shared memory of " << target.name;
  return error << (problem.bitmap ? "" : " in its canonical form")
               << " has no schedule for " << target.name
               << ": weights of two levels are multiplied on sm_90a, where "
                  "they are 2:4 of f16 or bf16 in panels of a multiple of "
                  "64 outputs and stored as bitmaps; legal is embed = auto, "
                  "by which others are stored by their elements";
}
