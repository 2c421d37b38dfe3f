//===- Schedule.cpp - schedules, pipelines, grids -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScheduleFields.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "nm_sparse/Dialect/NMTile/IR/Schedule.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::nm_sparse;

using EmitErrorFn = function_ref<InFlightDiagnostic()>;

/// Threads of a warp, and the warps that a CTA has at most.
static constexpr int64_t kWarpThreads = 32, kMostWarps = 32;

/// Rows of a tile at most that is read from global memory.
static constexpr int64_t kMostDirectRows = 1 << 20;

//===----------------------------------------------------------------------===//
// Pipelines
//===----------------------------------------------------------------------===//

static LogicalResult verifyStages(EmitErrorFn emitError, int64_t stages) {
  if (stages < 2 || stages > 8)
    return emitError() << "stages must be in [2, 8], got " << stages;
  return success();
}

int64_t SequentialAttr::getNumStages() const { return 1; }

Attribute AsyncGroupsAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  int64_t stages = 0;
  if (parseFieldsInAngles(parser, getMnemonic(),
                          {countField(parser, "stages", "K steps", stages)}))
    return {};
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(),
                    stages);
}

void AsyncGroupsAttr::print(AsmPrinter &printer) const {
  printer << "<stages = " << getStages() << ">";
}

LogicalResult AsyncGroupsAttr::verify(EmitErrorFn emitError, int64_t stages) {
  return verifyStages(emitError, stages);
}

int64_t AsyncGroupsAttr::getNumStages() const { return getStages(); }

Attribute RingAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  int64_t stages = 0, producers = 0;
  if (parseFieldsInAngles(
          parser, getMnemonic(),
          {countField(parser, "stages", "K steps", stages),
           countField(parser, "producers", "warps", producers)}))
    return {};
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(),
                    stages, producers);
}

void RingAttr::print(AsmPrinter &printer) const {
  printer << "<stages = " << getStages() << ", producers = " << getProducers()
          << ">";
}

LogicalResult RingAttr::verify(EmitErrorFn emitError, int64_t stages,
                               int64_t producers) {
  if (producers < 1 || producers >= kMostWarps)
    return emitError() << "producers must be in [1, " << kMostWarps - 1
                       << "], got " << producers
                       << "; without warps that only copy, the pipeline is "
                          "async_groups";
  return verifyStages(emitError, stages);
}

int64_t RingAttr::getNumStages() const { return getStages(); }
int64_t RingAttr::getProducerWarps() const { return getProducers(); }

//===----------------------------------------------------------------------===//
// Grids
//===----------------------------------------------------------------------===//

/// CTAs of the largest cluster that every chip with clusters can launch.
static constexpr int64_t kMostClusterCTAs = 8;

/// `parts` along the contraction, and CTAs of a cluster.
static LogicalResult verifyShared(EmitErrorFn emitError, int64_t splitK,
                                  int64_t cluster) {
  if (splitK < 1 || splitK > 64)
    return emitError() << "split_k must be in [1, 64], got " << splitK;
  if (cluster < 1 || cluster > kMostClusterCTAs ||
      !llvm::isPowerOf2_64(cluster))
    return emitError() << "cluster must be 1, 2, 4 or 8, got " << cluster;
  if (cluster > 1 && splitK > 1)
    return emitError() << "cluster = " << cluster
                       << " needs split_k = 1, got split_k = " << splitK;
  return success();
}

/// Fields that are not their defaults, in angles where there are any.
static void printGridFields(AsmPrinter &printer, int64_t splitK, bool inCluster,
                            bool streamK, int64_t cluster) {
  SmallVector<std::string> fields;
  if (splitK != 1)
    fields.push_back("split_k = " + std::to_string(splitK));
  if (inCluster)
    fields.push_back("in_cluster = true");
  if (streamK)
    fields.push_back("stream_k = true");
  if (cluster != 1)
    fields.push_back("cluster = " + std::to_string(cluster));
  if (!fields.empty())
    printer << "<" << llvm::join(fields, ", ") << ">";
}

Attribute FlatGridAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  int64_t splitK = 1, cluster = 1;
  bool inCluster = false;
  if (parseFieldsInAngles(
          parser, getMnemonic(),
          {countField(parser, "split_k", "CTAs", splitK, /*isRequired=*/false),
           flagField(parser, "in_cluster", inCluster),
           countField(parser, "cluster", "CTAs", cluster,
                      /*isRequired=*/false)}))
    return {};
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(),
                    splitK, inCluster, cluster);
}

void FlatGridAttr::print(AsmPrinter &printer) const {
  printGridFields(printer, getSplitK(), getInCluster(), /*streamK=*/false,
                  getCluster());
}

LogicalResult FlatGridAttr::verify(EmitErrorFn emitError, int64_t splitK,
                                   bool inCluster, int64_t cluster) {
  if (inCluster && (splitK < 2 || splitK > kMostClusterCTAs))
    return emitError() << "in_cluster = true needs split_k in [2, "
                       << kMostClusterCTAs << "], got " << splitK;
  return verifyShared(emitError, splitK, cluster);
}

int64_t FlatGridAttr::getParts() const { return getSplitK(); }
int64_t FlatGridAttr::getClusterCTAs() const { return getCluster(); }
bool FlatGridAttr::exchangesInCluster() const { return getInCluster(); }

Attribute PersistentGridAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  int64_t splitK = 1, cluster = 1;
  bool streamK = false;
  if (parseFieldsInAngles(
          parser, getMnemonic(),
          {countField(parser, "split_k", "CTAs", splitK, /*isRequired=*/false),
           flagField(parser, "stream_k", streamK),
           countField(parser, "cluster", "CTAs", cluster,
                      /*isRequired=*/false)}))
    return {};
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(),
                    splitK, streamK, cluster);
}

void PersistentGridAttr::print(AsmPrinter &printer) const {
  printGridFields(printer, getSplitK(), /*inCluster=*/false, getStreamK(),
                  getCluster());
}

LogicalResult PersistentGridAttr::verify(EmitErrorFn emitError, int64_t splitK,
                                         bool streamK, int64_t cluster) {
  if (streamK && splitK > 1)
    return emitError() << "stream_k = true needs split_k = 1, got split_k = "
                       << splitK;
  if (streamK && cluster > 1)
    return emitError() << "stream_k = true needs cluster = 1, got cluster = "
                       << cluster;
  return verifyShared(emitError, splitK, cluster);
}

int64_t PersistentGridAttr::getParts() const { return getSplitK(); }
int64_t PersistentGridAttr::getClusterCTAs() const { return getCluster(); }
bool PersistentGridAttr::isPersistentGrid() const { return true; }
bool PersistentGridAttr::streamsContraction() const { return getStreamK(); }

//===----------------------------------------------------------------------===//
// ScheduleAttr
//===----------------------------------------------------------------------===//

Attribute ScheduleAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  MLIRContext *context = parser.getContext();
  SmallVector<int64_t> tile;
  ProductAttrInterface product;
  TransfersAttr transfers =
      TransfersAttr::getNamed(context, "gather", "copy", "resident");
  PipelineAttrInterface pipeline;
  GridAttrInterface grid = FlatGridAttr::get(context, 1);
  auto parseTransfers = [&]() -> ParseResult {
    transfers = cast_or_null<TransfersAttr>(TransfersAttr::parse(parser, {}));
    return success(transfers != nullptr);
  };
  ScheduleField fields[] = {
      listField(parser, "tile", tile),
      partField(parser, "product", "a product, such as mma<warps = [2, 4]>",
                product),
      {"transfers", parseTransfers, /*isRequired=*/false},
      partField(parser, "pipeline",
                "sequential, async_groups<...> or ring<...>", pipeline),
      partField(parser, "grid", "flat or persistent", grid,
                /*isRequired=*/false)};
  if (parser.parseLess() || parseFields(parser, "a schedule", fields) ||
      parser.parseGreater())
    return {};
  if (!transfers) {
    parser.emitError(loc) << "a schedule needs transfers in this build, which "
                             "lacks one of the default, {x = gather, values = "
                             "copy, index = resident}";
    return {};
  }
  return getChecked([&] { return parser.emitError(loc); }, context,
                    ArrayRef<int64_t>(tile), product, transfers, pipeline,
                    grid);
}

void ScheduleAttr::print(AsmPrinter &printer) const {
  printer << "<tile = [" << getTile() << "], product = ";
  printPart(printer, getProduct());
  printer << ", transfers = ";
  getTransfers().print(printer);
  printer << ", pipeline = ";
  printPart(printer, getPipeline());
  printer << ", grid = ";
  printPart(printer, getGrid());
  printer << ">";
}

LogicalResult
ScheduleAttr::verify(EmitErrorFn emitError, ArrayRef<int64_t> tile,
                     ProductAttrInterface product, TransfersAttr transfers,
                     PipelineAttrInterface pipeline, GridAttrInterface grid) {
  if (tile.size() != 3 || llvm::any_of(tile, [](int64_t v) { return v < 1; }))
    return emitError() << "tile must be three positive extents, [tokens, "
                          "outputs, rows]";
  // Rows that are read from global memory need no room: see checkSchedule().
  bool hasRoom = transfers.getX().getUse().isDirect;
  if (tile[0] > kMostExtent || tile[1] > kMostExtent ||
      tile[2] > (hasRoom ? kMostDirectRows : kMostExtent))
    return emitError() << "tile extents must be at most " << kMostExtent
                       << ", got [" << tile << "]";
  int64_t warps = product.getNumWarps();
  int64_t producers = pipeline.getProducerWarps();
  if (producers + warps > kMostWarps)
    return emitError() << "producers must be in [0, " << kMostWarps - warps
                       << "] beside the " << warps << " warps of the product, "
                       << "got " << producers;
  if (grid.isPersistentGrid() && producers == 0)
    return emitError() << "persistent CTAs need producers, which fetch the "
                          "next tile; legal is pipeline = ring<...>";
  // Copies of a K step need a stage of shared memory to overlap with.
  if (transfers.areDirect() != (pipeline.getNumStages() == 1))
    return emitError() << "pipeline = sequential is for products that read "
                          "global memory: legal with it is transfers = {x = "
                          "direct, values = direct, index = direct}, and it "
                          "alone is legal with them";
  for (OperandRole role :
       {OperandRole::Positions, OperandRole::Activations, OperandRole::Values})
    if (failed(transfers.get(role).verifyBeside(emitError, role, transfers,
                                                producers)))
      return failure();
  if (failed(product.verifyTile(emitError, tile[0], tile[1])))
    return failure();
  return product.verifyTransfers(emitError, transfers, producers);
}

int64_t ScheduleAttr::getTileWindows(EncodingAttr encoding) const {
  return llvm::divideCeil(getTileRows(), encoding.getInnermost().getKeptRows());
}

bool ScheduleAttr::hasWholeWindows(EncodingAttr encoding) const {
  return getTileRows() % encoding.getInnermost().getKeptRows() == 0;
}

int64_t ScheduleAttr::getStepRows() const {
  return llvm::alignTo(getTileRows(), getOperandTiles().rowUnit);
}

bool ScheduleAttr::isPanelAligned(EncodingAttr encoding) const {
  return encoding.getBlockN() % getTileOutputs() == 0 ||
         getTileOutputs() % encoding.getBlockN() == 0;
}

int64_t ScheduleAttr::getTilePanels(EncodingAttr encoding) const {
  int64_t panels = llvm::divideCeil(getTileOutputs(), encoding.getBlockN());
  return isPanelAligned(encoding) ? panels : panels + 1;
}

OperandTiles ScheduleAttr::getOperandTiles() const {
  return getProduct().getOperandTiles();
}

SumOwners ScheduleAttr::getSumOwners(EncodingAttr encoding) const {
  return getProduct().getSumOwners(*this, encoding);
}

RingUse ScheduleAttr::getRingUse() const {
  return getProduct().getRingUse(*this);
}

int64_t ScheduleAttr::getStages() const { return getPipeline().getNumStages(); }

int64_t ScheduleAttr::getProducers() const {
  return getPipeline().getProducerWarps();
}

int64_t ScheduleAttr::getNumThreads() const {
  return getProduct().getNumWarps() * kWarpThreads;
}

int64_t ScheduleAttr::getBlockThreads() const {
  return getNumThreads() + getProducers() * kWarpThreads;
}

int64_t ScheduleAttr::getSplitK() const { return getGrid().getParts(); }

bool ScheduleAttr::isPersistent() const { return getGrid().isPersistentGrid(); }

bool ScheduleAttr::isStreamK() const { return getGrid().streamsContraction(); }

ScheduleAttr ScheduleAttr::withGrid(GridAttrInterface grid) const {
  return get(getContext(), getTile(), getProduct(), getTransfers(),
             getPipeline(), grid);
}

LogicalResult ScheduleAttr::verifyConfig(Operation *op) const {
  if (isa<MatmulOp, linalg::LinalgOp>(op))
    return success();
  return op->emitError("has #nm_tile.schedule, which belongs to an "
                       "nm_sparse.matmul or to a linalg contraction with an "
                       "encoded weight");
}

ScheduleAttr nm_sparse::getSchedule(MatmulOp op) {
  return dyn_cast_or_null<ScheduleAttr>(op.getConfigAttr());
}
