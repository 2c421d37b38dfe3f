//===- MergeLaunches.cpp - several products, one launch -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A product of few tokens takes as long as its weights take to come from
// memory, a few microseconds, and two launches that follow one another lose
// about as much as one of them takes to start and to run dry. Products of the
// same activations, such as query, key and value, need not follow one another:
// their CTAs become those of one launch, and each looks at its number for the
// product that it works on. Which launches can be one is in LaunchGroups.cpp.
//
//===----------------------------------------------------------------------===//

#include "Launch/LaunchGroups.h"
#include "nm_sparse/GPU/Support/EqualCode.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_NMSPARSEMERGELAUNCHESPASS
#include "nm_sparse/Dialect/NMTile/Transforms/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

/// Launches of one kernel with one grid: they share a copy of its body.
struct Part {
  gpu::GPUFuncOp kernel;
  SmallVector<gpu::LaunchFuncOp> launches;
  int64_t begin = 0, ctas = 0; ///< First CTA; CTAs of each launch.

  int64_t getEnd() const {
    return begin + static_cast<int64_t>(launches.size()) * ctas;
  }
};

/// Makes one launch of the launches of a group.
class Merger {
public:
  Merger(const LaunchGroup &group, SymbolTableCollection &symbols)
      : group(group), b(group.launches.front()),
        loc(b.getFusedLoc(
            llvm::map_to_vector(group.launches, [](gpu::LaunchFuncOp launch) {
              return launch.getLoc();
            }))) {
    for (gpu::LaunchFuncOp launch : group.launches) {
      operands.insert_range(launch.getKernelOperands());
      addToPart(launch, symbols.lookupNearestSymbolFrom<gpu::GPUFuncOp>(
                            launch, launch.getKernelAttr()));
    }
    for (Part &part : parts) {
      part.begin = ctas;
      ctas = part.getEnd();
    }
  }

  gpu::GPUFuncOp createKernel();
  void createLaunch(gpu::GPUFuncOp kernel);

private:
  /// gpu.block_id and gpu.grid_dim of a launch, as far as they are not those of
  /// the one launch.
  struct Place {
    std::array<Value, 3> ids, sizes;
  };

  void addToPart(gpu::LaunchFuncOp launch, gpu::GPUFuncOp kernel);
  IRMapping selectArguments(Part part, Value local);
  Place getPlace(gpu::LaunchFuncOp launch, Value local);
  void emitParts(ArrayRef<Part> parts);
  void emitPart(Part part);

  Value index(int64_t number) {
    return arith::ConstantIndexOp::create(b, loc, number);
  }
  /// The argument that is what `launch` has for `argument` of its kernel.
  Value getArgument(gpu::LaunchFuncOp launch, BlockArgument argument) {
    Value operand = launch.getKernelOperand(argument.getArgNumber());
    return merged.getArgument(llvm::find(operands, operand) - operands.begin());
  }

  const LaunchGroup &group;
  OpBuilder b;
  Location loc;
  SmallVector<Part> parts;
  int64_t ctas = 0;
  /// The operands of all kernels, each once.
  llvm::SetVector<Value> operands;
  gpu::GPUFuncOp merged;
  /// The number of the CTA, among those of all parts.
  Value number;
};

void Merger::addToPart(gpu::LaunchFuncOp launch, gpu::GPUFuncOp kernel) {
  auto getGrid = [](gpu::LaunchFuncOp launch) {
    return std::tuple(getStaticSize(launch.getGridSizeX()),
                      getStaticSize(launch.getGridSizeY()),
                      getStaticSize(launch.getGridSizeZ()));
  };
  for (Part &part : parts)
    if (part.kernel == kernel &&
        getGrid(part.launches.front()) == getGrid(launch))
      return part.launches.push_back(launch);
  parts.push_back({kernel, {launch}, 0, group.countCtas(launch)});
}

/// The arguments of the kernel of `part`, for the CTA that is number `local` of
/// its launches.
IRMapping Merger::selectArguments(Part part, Value local) {
  IRMapping mapping;
  for (BlockArgument argument : part.kernel.getArguments())
    mapping.map(argument, getArgument(part.launches.front(), argument));
  for (size_t i = 1; i < part.launches.size(); ++i) {
    Value isBehind =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge, local,
                              index(static_cast<int64_t>(i) * part.ctas));
    for (BlockArgument argument : part.kernel.getArguments()) {
      Value own = getArgument(part.launches[i], argument);
      Value before = mapping.lookup(argument);
      if (own != before)
        mapping.map(argument,
                    arith::SelectOp::create(b, loc, isBehind, own, before));
    }
  }
  return mapping;
}

/// Where CTA number `local` of `launch` is in its grid.
Merger::Place Merger::getPlace(gpu::LaunchFuncOp launch, Value local) {
  Place place;
  Value grid[] = {launch.getGridSizeX(), launch.getGridSizeY(),
                  launch.getGridSizeZ()};
  int first = group.keepsX ? 1 : 0, last = 2;
  while (last > first && getStaticSize(grid[last]) == 1)
    --last;
  for (int dim = first; dim < 3; ++dim) {
    place.sizes[dim] = index(*getStaticSize(grid[dim]));
    if (dim >= last) {
      place.ids[dim] = dim == last ? local : index(0);
      continue;
    }
    Value size = place.sizes[dim];
    place.ids[dim] = arith::RemUIOp::create(b, loc, local, size);
    local = arith::DivUIOp::create(b, loc, local, size);
  }
  return place;
}

/// The body of `part`, for a CTA that belongs to it.
void Merger::emitPart(Part part) {
  Value local = number;
  if (part.begin > 0)
    local = arith::SubIOp::create(b, loc, number, index(part.begin));
  // Which launch of the kernel it is decides on the arguments alone.
  IRMapping mapping = selectArguments(part, local);
  if (part.launches.size() > 1)
    local = arith::RemUIOp::create(b, loc, local, index(part.ctas));
  Place place = getPlace(part.launches.front(), local);

  auto replace = [&](Operation *op) {
    if (isa<HintsOp>(op))
      return op->erase();
    Value known;
    if (auto id = dyn_cast<gpu::BlockIdOp>(op))
      known = place.ids[static_cast<int>(id.getDimension())];
    if (auto size = dyn_cast<gpu::GridDimOp>(op))
      known = place.sizes[static_cast<int>(size.getDimension())];
    if (known) {
      op->replaceAllUsesWith(ValueRange(known));
      op->erase();
    }
  };
  SmallVector<Operation *> clones;
  for (Operation &op : part.kernel.getBody().front().without_terminator())
    clones.push_back(b.clone(op, mapping));
  for (Operation *clone : clones)
    clone->walk(replace);
}

/// Branches to the part that the CTA belongs to, in their order.
void Merger::emitParts(ArrayRef<Part> parts) {
  if (parts.size() == 1)
    return emitPart(parts.front());
  Value isHere = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                       number, index(parts.front().getEnd()));
  auto choice = scf::IfOp::create(b, loc, isHere, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(choice.thenBlock());
  emitPart(parts.front());
  b.setInsertionPointToStart(choice.elseBlock());
  emitParts(parts.drop_front());
}

gpu::GPUFuncOp Merger::createKernel() {
  OpBuilder::InsertionGuard guard(b);
  gpu::GPUFuncOp first = parts.front().kernel;
  b.setInsertionPointAfter(first);
  std::string name = (first.getName() + "_merged").str();
  merged = gpu::GPUFuncOp::create(
      b, loc, name,
      b.getFunctionType(TypeRange(operands.getArrayRef()), TypeRange()));
  // They agree in what they say of registers and of the size of a CTA.
  for (NamedAttribute attribute : first->getDialectAttrs())
    merged->setAttr(attribute.getName(), attribute.getValue());
  merged.setKnownBlockSizeAttr(first.getKnownBlockSizeAttr());
  gpu::LaunchFuncOp launch = group.launches.front();
  std::optional<int64_t> x = getStaticSize(launch.getGridSizeX());
  if (!group.keepsX || (x && llvm::isInt<32>(*x)))
    merged.setKnownGridSizeAttr(b.getDenseI32ArrayAttr(
        {static_cast<int32_t>(group.keepsX ? *x : ctas),
         static_cast<int32_t>(group.keepsX ? ctas : 1), 1}));

  b.setInsertionPointToStart(&merged.getBody().front());
  number = gpu::BlockIdOp::create(
      b, loc, group.keepsX ? gpu::Dimension::y : gpu::Dimension::x);
  emitParts(parts);
  gpu::ReturnOp::create(b, loc);
  return merged;
}

void Merger::createLaunch(gpu::GPUFuncOp kernel) {
  gpu::LaunchFuncOp first = group.launches.front();
  b.setInsertionPoint(group.launches.back());
  std::optional<int64_t> shared;
  for (gpu::LaunchFuncOp launch : group.launches)
    if (Value size = launch.getDynamicSharedMemorySize())
      shared = std::max(shared.value_or(0), *getStaticSize(size));
  Value bytes =
      shared ? arith::ConstantIntOp::create(b, loc, *shared, 32) : Value();
  Value one = index(1), all = index(ctas);
  gpu::KernelDim3 grid = {group.keepsX ? first.getGridSizeX() : all,
                          group.keepsX ? all : one, one};
  auto launch = gpu::LaunchFuncOp::create(b, loc, kernel, grid,
                                          first.getBlockSizeOperandValues(),
                                          bytes, operands.getArrayRef());
  Operation *last = launch;
  for (Operation *release : group.releases) {
    // Another group may have moved it behind its own launch.
    if (!release->isBeforeInBlock(last))
      continue;
    release->moveAfter(last);
    last = release;
  }
  for (gpu::LaunchFuncOp separate : group.launches)
    separate.erase();
}

struct MergeLaunches
    : public nm_sparse::impl::NMSparseMergeLaunchesPassBase<MergeLaunches> {
  using Base::Base;

  void runOnOperation() override {
    const Chip *target = findChip(chip, gpu);
    if (!target)
      return;
    SymbolTableCollection symbols;
    SmallVector<LaunchGroup> groups;
    for (auto function : getOperation().getOps<func::FuncOp>())
      function.walk([&](Block *block) {
        llvm::append_range(
            groups, findLaunchGroups(*block, *target, maxWaves, symbols));
      });

    // Layers that are alike make kernels that are equal.
    EqualFunctions<gpu::GPUFuncOp> known;
    llvm::SetVector<Operation *> replaced;
    for (const LaunchGroup &group : groups) {
      for (gpu::LaunchFuncOp launch : group.launches)
        replaced.insert(
            symbols.lookupNearestSymbolFrom(launch, launch.getKernelAttr()));
      Merger merger(group, symbols);
      gpu::GPUFuncOp kernel = merger.createKernel();
      gpu::GPUFuncOp first = known.findOrAdd(kernel);
      if (first == kernel)
        symbols.getSymbolTable(kernel->getParentOp()).insert(kernel);
      else
        kernel.erase();
      merger.createLaunch(first);
    }
    getOperation().walk([&](gpu::LaunchFuncOp launch) {
      replaced.remove(
          symbols.lookupNearestSymbolFrom(launch, launch.getKernelAttr()));
    });
    for (Operation *kernel : replaced)
      symbols.getSymbolTable(kernel->getParentOp()).erase(kernel);
  }
};

} // namespace
