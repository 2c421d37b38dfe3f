//===- ImmediateLowering.cpp - weights in the code of a kernel ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each warp branches to the code of its panel of outputs and of its share of
// that: loads of rows and FFMAs, one after the other, that nothing but the
// warp's tokens can change. Rows are read a batch ahead, so that a warp waits
// for several at once. Warps that divide the elements of a panel then divide
// its outputs: each adds what all of them have of its own, in their order.
//
//===----------------------------------------------------------------------===//

#include "../ActivationReader.h"
#include "../ProductAttrs.h"
#include "CodePlan.h"
#include "RowLoader.h"
#include "nm_sparse/Conversion/TileToThreads/ProductLowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// Activations that a lane reads ahead of those that it multiplies.
static constexpr int64_t kActivationsAhead = 16;

static constexpr int64_t kLanes = 32;

/// Rows of the activations, or of the patches of an image that they are.
static int64_t countRows(TileMatmulOp op) {
  auto type = cast<MemRefType>(op.getLhs().getType());
  if (std::optional<PatchesAttr> patches = op.getPatches())
    return llvm::product_of(
        patches->getRowExtents(type.getDimSize(patches->getImageDim('c'))));
  return type.getDimSize(0);
}

/// The weight of `op`, all of which is its K step.
static FailureOr<DenseWeight> findWeight(TileMatmulOp op) {
  if (op.getLhsOrder() != MajorOrder::MN)
    return op.emitOpError("has a schedule with product = immediate, which "
                          "reads feature-major activations, but ")
           << op.getLhs().getType() << " is token-major";
  DenseElementsAttr constant = op.getForm().getConstant();
  if (!constant)
    return op.emitOpError("has a schedule with product = immediate, whose "
                          "weight is code, but reads one of ")
           << op.getForm();
  int64_t rows = countRows(op);
  if (ShapedType::isDynamic(rows) || rows > op.getSchedule().getTileRows())
    return op.emitOpError("has a schedule with product = immediate, whose K "
                          "step is all rows of the weight, but tile = [")
           << op.getSchedule().getTile() << "] and activations "
           << op.getLhs().getType();
  DenseWeight weight = DenseWeight::get(constant);
  if (weight.rows != rows)
    return op.emitOpError("has activations with ")
           << rows << " rows, but its code is of a weight with " << weight.rows;
  return weight;
}

namespace {
/// Emits the code of one section.
class SectionEmitter {
public:
  SectionEmitter(OpBuilder &b, Location loc, RowLoader &loader,
                 MutableArrayRef<Value> sums)
      : b(b), loc(loc), loader(loader), sums(sums) {}

  void emit(const CodeSection &section, int64_t tokens);

private:
  using Activations = SmallVector<SmallVector<Value>>;

  Activations load(ArrayRef<CodeRow> rows);
  void multiply(ArrayRef<CodeRow> rows, const Activations &activations);

  OpBuilder &b;
  Location loc;
  RowLoader &loader;
  MutableArrayRef<Value> sums;
};
} // namespace

SectionEmitter::Activations SectionEmitter::load(ArrayRef<CodeRow> rows) {
  Activations activations;
  for (const CodeRow &row : rows)
    activations.push_back(loader.load(row.row));
  return activations;
}

void SectionEmitter::multiply(ArrayRef<CodeRow> rows,
                              const Activations &activations) {
  for (auto [row, tokens] : llvm::zip_equal(rows, activations))
    for (const CodeRow::Element &element : row.elements) {
      Value weight =
          arith::ConstantOp::create(b, loc, b.getF32FloatAttr(element.value));
      for (auto [token, activation] : llvm::enumerate(tokens)) {
        Value &sum = sums[element.output * tokens.size() + token];
        sum = math::FmaOp::create(b, loc, activation, weight, sum);
      }
    }
}

void SectionEmitter::emit(const CodeSection &section, int64_t tokens) {
  size_t count = std::max<int64_t>(1, kActivationsAhead / tokens);
  ArrayRef<CodeRow> rest = section;
  ArrayRef<CodeRow> rows = rest.take_front(count);
  Activations activations = load(rows);
  while (!rows.empty()) {
    rest = rest.drop_front(rows.size());
    ArrayRef<CodeRow> next = rest.take_front(count);
    Activations ahead = load(next);
    multiply(rows, activations);
    rows = next;
    activations = std::move(ahead);
  }
}

/// Emits all `sections`, and the branch of a warp to its own, which adds to
/// `sums` of all outputs of the tile.
static void emitSections(OpBuilder &b, TileMatmulOp op,
                         const ThreadLayout &layout, RowLoader &loader,
                         ArrayRef<CodeSection> sections,
                         MutableArrayRef<Value> sums) {
  Location loc = op.getLoc();
  IndexMath math(b, loc);
  auto product = cast<ImmediateAttr>(op.getSchedule().getProduct());
  Value panel = op->getParentOfType<gpu::LaunchOp>().getBlockIds().y;
  Value share = math.div(layout.threadId, kLanes * product.getTokenWarps());
  Value number = math.add(math.mul(panel, product.getShares()), share);
  auto cases = llvm::to_vector(
      llvm::seq<int64_t>(0, static_cast<int64_t>(sections.size()) - 1));
  SmallVector<Value> before(sums);
  auto switchOp = scf::IndexSwitchOp::create(
      b, loc, TypeRange(ValueRange(before)), number, cases, cases.size());
  OpBuilder::InsertionGuard guard(b);
  for (auto [i, section] : llvm::enumerate(sections)) {
    bool isLast = i == cases.size();
    Region &region =
        isLast ? switchOp.getDefaultRegion() : switchOp.getCaseRegions()[i];
    b.setInsertionPointToStart(&region.emplaceBlock());
    llvm::copy(before, sums.begin());
    loader.startSection();
    SectionEmitter(b, loc, loader, sums)
        .emit(section, layout.accumulator.getRun(TileDim::Tokens));
    scf::YieldOp::create(b, loc, ValueRange(sums));
  }
  llvm::copy(switchOp.getResults(), sums.begin());
}

/// Adds to `accumulators`, the thread's outputs, what each share has of them.
static void addShares(OpBuilder &b, TileMatmulOp op, const ThreadLayout &layout,
                      ArrayRef<Value> shares,
                      MutableArrayRef<Value> accumulators) {
  Location loc = op.getLoc();
  IndexMath math(b, loc);
  auto product = cast<ImmediateAttr>(op.getSchedule().getProduct());
  int64_t warps = product.getTokenWarps();
  auto count = static_cast<int64_t>(accumulators.size());
  // A lane's neighbours lie beside it, in other banks.
  Value buffer = memref::AllocOp::create(
      b, loc,
      MemRefType::get({product.getWarps(), product.getShares(), count, kLanes},
                      b.getF32Type(), MemRefLayoutAttrInterface(),
                      gpu::AddressSpaceAttr::get(
                          b.getContext(), gpu::AddressSpace::Workgroup)));
  Value warp = math.div(layout.threadId, kLanes);
  for (auto [i, share] : llvm::enumerate(shares))
    memref::StoreOp::create(b, loc, share, buffer,
                            ValueRange{warp, math.constant(i / count),
                                       math.constant(i % count), layout.lane});
  gpu::BarrierOp::create(b, loc);
  Value own = math.div(warp, warps), first = math.rem(warp, warps);
  for (int64_t share = 0; share < product.getShares(); ++share)
    for (auto [i, sum] : llvm::enumerate(accumulators)) {
      Value part =
          memref::LoadOp::create(b, loc, buffer,
                                 ValueRange{math.add(first, share * warps), own,
                                            math.constant(i), layout.lane});
      sum = arith::AddFOp::create(b, loc, sum, part);
    }
}

namespace {
struct ImmediateLowering
    : public ProductLoweringInterface::ExternalModel<ImmediateLowering,
                                                     ImmediateAttr> {
  FailureOr<AccumulatorAttr> layOut(Attribute attribute,
                                    TileMatmulOp op) const {
    // Before anything is converted.
    if (failed(findWeight(op)))
      return failure();
    auto product = cast<ImmediateAttr>(attribute);
    ScheduleAttr schedule = op.getSchedule();
    int64_t warps = product.getTokenWarps(), shares = product.getShares();
    int64_t tokens = schedule.getTileTokens() / warps;
    int64_t outputs = schedule.getTileOutputs() / shares;
    return makeAccumulator(
        op.getContext(), {{TileDim::Tokens, kLanes, tokens / kLanes}},
        {{TileDim::Tokens, warps, tokens}, {TileDim::Outputs, shares, outputs}},
        {{TileDim::Tokens, tokens / kLanes, 1},
         {TileDim::Outputs, outputs, 1}});
  }

  LogicalResult emit(Attribute attribute, OpBuilder &b, TileMatmulOp op,
                     const ThreadLayout &layout,
                     MutableArrayRef<Value> accumulators) const {
    FailureOr<DenseWeight> weight = findWeight(op);
    if (failed(weight))
      return failure();
    int64_t shares = cast<ImmediateAttr>(attribute).getShares();
    std::unique_ptr<RowLoader> loader = RowLoader::create(b, op, layout);
    CodePlan plan(*weight, loader->getOrder(weight->rows), layout.tileOutputs,
                  shares);
    if (shares == 1) {
      emitSections(b, op, layout, *loader, plan.getSections(), accumulators);
      return success();
    }
    Value zero =
        arith::ConstantOp::create(b, op.getLoc(), b.getF32FloatAttr(0));
    SmallVector<Value> sums(accumulators.size() * shares, zero);
    emitSections(b, op, layout, *loader, plan.getSections(), sums);
    addShares(b, op, layout, sums, accumulators);
    return success();
  }
};
} // namespace

void nm_sparse::registerImmediateLowering(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, NMTileDialect *) {
    ImmediateAttr::attachInterface<ImmediateLowering>(*context);
  });
}
