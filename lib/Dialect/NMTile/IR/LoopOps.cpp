//===- LoopOps.cpp - loops and roles of one CTA ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/OpImplementation.h"
#include "nm_sparse/Dialect/NMTile/IR/NMTile.h"

using namespace mlir;
using namespace mlir::nm_sparse;

//===----------------------------------------------------------------------===//
// Common parts of both loops
//===----------------------------------------------------------------------===//

/// Three bounds come before the values that a loop carries.
static constexpr unsigned kNumBounds = 3;

static void buildLoop(OpBuilder &b, OperationState &state, Value lower,
                      Value upper, Value step, ValueRange inits) {
  state.addOperands({lower, upper, step});
  state.addOperands(inits);
  state.addTypes(inits.getTypes());
  OpBuilder::InsertionGuard guard(b);
  Block *body = b.createBlock(state.addRegion());
  body->addArgument(b.getIndexType(), state.location);
  for (Value init : inits)
    body->addArgument(init.getType(), init.getLoc());
}

/// `%k = %lower to %upper step %step`
static ParseResult parseBounds(OpAsmParser &parser, OperationState &state,
                               OpAsmParser::Argument &variable) {
  Type index = parser.getBuilder().getIndexType();
  variable.type = index;
  OpAsmParser::UnresolvedOperand lower, upper, step;
  return failure(parser.parseArgument(variable) || parser.parseEqual() ||
                 parser.parseOperand(lower) || parser.parseKeyword("to") ||
                 parser.parseOperand(upper) || parser.parseKeyword("step") ||
                 parser.parseOperand(step) ||
                 parser.resolveOperand(lower, index, state.operands) ||
                 parser.resolveOperand(upper, index, state.operands) ||
                 parser.resolveOperand(step, index, state.operands));
}

/// `iter_args(%a = %init) -> (type) { ... } {attributes}`
static ParseResult parseBody(OpAsmParser &parser, OperationState &state,
                             const OpAsmParser::Argument &variable) {
  SmallVector<OpAsmParser::Argument> arguments = {variable};
  SmallVector<OpAsmParser::UnresolvedOperand> inits;
  if (succeeded(parser.parseOptionalKeyword("iter_args"))) {
    SMLoc where = parser.getCurrentLocation();
    if (parser.parseAssignmentList(arguments, inits) ||
        parser.parseArrowTypeList(state.types))
      return failure();
    if (inits.size() != state.types.size())
      return parser.emitError(where, "carries ")
             << inits.size() << " values, but has " << state.types.size()
             << " results";
    for (auto [argument, init, type] :
         llvm::zip_equal(llvm::drop_begin(arguments), inits, state.types)) {
      argument.type = type;
      if (parser.resolveOperand(init, type, state.operands))
        return failure();
    }
  }
  return failure(parser.parseRegion(*state.addRegion(), arguments) ||
                 parser.parseOptionalAttrDict(state.attributes));
}

template <typename LoopOp>
static void printBounds(OpAsmPrinter &p, LoopOp loop) {
  p << ' ' << loop.getInductionVar() << " = " << loop.getLowerBound() << " to "
    << loop.getUpperBound() << " step " << loop.getStep();
}

template <typename LoopOp>
static void printBody(OpAsmPrinter &p, LoopOp loop,
                      ArrayRef<StringRef> printed = {}) {
  if (!loop.getInitArgs().empty()) {
    p << " iter_args(";
    llvm::interleaveComma(
        llvm::zip_equal(loop.getRegionIterArgs(), loop.getInitArgs()), p,
        [&](auto pair) {
          p << std::get<0>(pair) << " = " << std::get<1>(pair);
        });
    p << ") -> (" << loop.getResultTypes() << ')';
  }
  p << ' ';
  p.printRegion(loop.getBody(), /*printEntryBlockArgs=*/false);
  p.printOptionalAttrDict(loop->getAttrs(), printed);
}

template <typename LoopOp>
static LogicalResult verifyLoop(LoopOp loop) {
  // The interface checks the values that it carries.
  if (loop.getBody().getNumArguments() != loop.getInitArgs().size() + 1 ||
      !loop.getInductionVar().getType().isIndex())
    return loop.emitOpError("needs an index and ")
           << loop.getInitArgs().size()
           << " carried values as arguments of its body, got "
           << loop.getBody().getArgumentTypes();
  if (!isa<YieldOp>(loop.getBody().front().getTerminator()))
    return loop.emitOpError("must end with nm_tile.yield");
  auto isPosition = [](Type type) { return isa<RingPositionType>(type); };
  if (llvm::count_if(loop.getResultTypes(), isPosition) > 1)
    return loop.emitOpError("carries more than one position in a ring");
  return success();
}

template <typename LoopOp>
static std::optional<unsigned> findPosition(LoopOp loop) {
  for (auto [i, type] : llvm::enumerate(loop.getResultTypes()))
    if (isa<RingPositionType>(type))
      return i;
  return std::nullopt;
}

template <typename LoopOp>
static OpOperand *getRingInitOf(LoopOp loop) {
  std::optional<unsigned> at = findPosition(loop);
  return at ? &loop->getOpOperand(kNumBounds + *at) : nullptr;
}

template <typename LoopOp>
static BlockArgument getRingPositionOf(LoopOp loop) {
  std::optional<unsigned> at = findPosition(loop);
  return at ? loop.getBody().getArgument(1 + *at) : BlockArgument();
}

template <typename LoopOp>
static OpResult getRingResultOf(LoopOp loop) {
  std::optional<unsigned> at = findPosition(loop);
  return at ? loop->getResult(*at) : OpResult();
}

/// From the operation and from the end of its body alike, the body may run or
/// the loop be over.
template <typename LoopOp>
static void getSuccessors(LoopOp loop,
                          SmallVectorImpl<RegionSuccessor> &regions) {
  regions.emplace_back(&loop.getBody(), loop.getRegionIterArgs());
  regions.emplace_back(loop.getOperation(), loop.getResults());
}

// Methods of the interfaces, the same for both.
#define NM_TILE_LOOP_METHODS(LoopOp)                                           \
  OpOperand *LoopOp::getRingInit() { return getRingInitOf(*this); }            \
  BlockArgument LoopOp::getRingPosition() { return getRingPositionOf(*this); } \
  OpResult LoopOp::getRingResult() { return getRingResultOf(*this); }          \
  SmallVector<Region *> LoopOp::getLoopRegions() { return {&getBody()}; }      \
  std::optional<SmallVector<Value>> LoopOp::getLoopInductionVars() {           \
    return SmallVector<Value>{getInductionVar()};                              \
  }                                                                            \
  std::optional<SmallVector<OpFoldResult>> LoopOp::getLoopLowerBounds() {      \
    return SmallVector<OpFoldResult>{OpFoldResult(getLowerBound())};           \
  }                                                                            \
  std::optional<SmallVector<OpFoldResult>> LoopOp::getLoopUpperBounds() {      \
    return SmallVector<OpFoldResult>{OpFoldResult(getUpperBound())};           \
  }                                                                            \
  std::optional<SmallVector<OpFoldResult>> LoopOp::getLoopSteps() {            \
    return SmallVector<OpFoldResult>{OpFoldResult(getStep())};                 \
  }                                                                            \
  MutableArrayRef<OpOperand> LoopOp::getInitsMutable() {                       \
    return getOperation()->getOpOperands().drop_front(kNumBounds);             \
  }                                                                            \
  Block::BlockArgListType LoopOp::getRegionIterArgs() {                        \
    return getBody().getArguments().drop_front();                              \
  }                                                                            \
  std::optional<ResultRange> LoopOp::getLoopResults() { return getResults(); } \
  std::optional<MutableArrayRef<OpOperand>>                                    \
  LoopOp::getYieldedValuesMutable() {                                          \
    return getBody().front().getTerminator()->getOpOperands();                 \
  }                                                                            \
  OperandRange LoopOp::getEntrySuccessorOperands(RegionSuccessor) {            \
    return getInitArgs();                                                      \
  }                                                                            \
  void LoopOp::getSuccessorRegions(                                            \
      RegionBranchPoint, SmallVectorImpl<RegionSuccessor> &regions) {          \
    getSuccessors(*this, regions);                                             \
  }

NM_TILE_LOOP_METHODS(KLoopOp)
NM_TILE_LOOP_METHODS(TileLoopOp)
#undef NM_TILE_LOOP_METHODS

//===----------------------------------------------------------------------===//
// KLoopOp
//===----------------------------------------------------------------------===//

LogicalResult KLoopOp::verify() {
  // One tile is copied while another one is multiplied.
  if (getStages() && (*getStages() < 2 || *getStages() > 8))
    return emitOpError("stages must be in [2, 8], got ")
           << static_cast<int64_t>(*getStages());
  return verifyLoop(*this);
}

void KLoopOp::build(OpBuilder &b, OperationState &state, Value lower,
                    Value upper, Value step, ValueRange inits,
                    IntegerAttr stages) {
  buildLoop(b, state, lower, upper, step, inits);
  if (stages)
    state.addAttribute(getStagesAttrName(state.name), stages);
}

ParseResult KLoopOp::parse(OpAsmParser &parser, OperationState &state) {
  OpAsmParser::Argument variable;
  if (parseBounds(parser, state, variable))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("stages"))) {
    IntegerAttr stages;
    if (parser.parseEqual() ||
        parser.parseAttribute(stages, parser.getBuilder().getI64Type(),
                              getStagesAttrName(state.name), state.attributes))
      return failure();
  }
  return parseBody(parser, state, variable);
}

void KLoopOp::print(OpAsmPrinter &p) {
  printBounds(p, *this);
  if (std::optional<uint64_t> stages = getStages())
    p << " stages = " << *stages;
  printBody(p, *this, getStagesAttrName().getValue());
}

TileMatmulOp KLoopOp::getProduct() {
  auto products = getBody().getOps<TileMatmulOp>();
  return products.empty() ? TileMatmulOp() : *products.begin();
}

//===----------------------------------------------------------------------===//
// TileLoopOp
//===----------------------------------------------------------------------===//

LogicalResult TileLoopOp::verify() { return verifyLoop(*this); }

void TileLoopOp::build(OpBuilder &b, OperationState &state, Value lower,
                       Value upper, Value step, ValueRange inits) {
  buildLoop(b, state, lower, upper, step, inits);
}

ParseResult TileLoopOp::parse(OpAsmParser &parser, OperationState &state) {
  OpAsmParser::Argument variable;
  return failure(parseBounds(parser, state, variable) ||
                 parseBody(parser, state, variable));
}

void TileLoopOp::print(OpAsmPrinter &p) {
  printBounds(p, *this);
  printBody(p, *this);
}

KLoopOp TileLoopOp::getKLoop() {
  auto loops = getBody().getOps<KLoopOp>();
  return llvm::hasSingleElement(loops) ? *loops.begin() : KLoopOp();
}

//===----------------------------------------------------------------------===//
// WarpSpecializeOp
//===----------------------------------------------------------------------===//

void WarpSpecializeOp::build(OpBuilder &b, OperationState &state,
                             int64_t consumers, int64_t producers,
                             IntegerAttr consumerRegisters,
                             IntegerAttr producerRegisters) {
  Properties &properties = state.getOrAddProperties<Properties>();
  properties.consumers = b.getI64IntegerAttr(consumers);
  properties.producers = b.getI64IntegerAttr(producers);
  properties.consumer_registers = consumerRegisters;
  properties.producer_registers = producerRegisters;
  for (int role = 0; role < 2; ++role)
    ensureTerminator(*state.addRegion(), b, state.location);
}

LogicalResult WarpSpecializeOp::verify() {
  auto consumers = static_cast<int64_t>(getConsumers());
  auto producers = static_cast<int64_t>(getProducers());
  for (int64_t threads : {consumers, producers})
    if (threads < 32 || threads % 32 != 0)
      return emitOpError("needs whole warps in both roles, got ")
             << threads << " threads";
  if (consumers + producers > 1024)
    return emitOpError("has ")
           << consumers + producers << " threads, a CTA at most 1024";
  if (getConsumerRegisters().has_value() != getProducerRegisters().has_value())
    return emitOpError("needs registers for both roles, or for none: what one "
                       "gives, the other takes");
  if (!getConsumerRegisters())
    return success();
  for (uint64_t registers : {*getConsumerRegisters(), *getProducerRegisters()})
    if (registers < 24 || registers > 256 || registers % 8 != 0)
      return emitOpError("registers of a thread must be a multiple of 8 in "
                         "[24, 256], got ")
             << registers;
  for (int64_t threads : {consumers, producers})
    if (threads % 128 != 0)
      return emitOpError("with registers needs whole warpgroups of 128 "
                         "threads in both roles, got ")
             << threads;
  return success();
}

void WarpSpecializeOp::getSuccessorRegions(
    RegionBranchPoint point, SmallVectorImpl<RegionSuccessor> &regions) {
  if (!point.isParent()) {
    regions.emplace_back(getOperation(), getOperation()->getResults());
    return;
  }
  regions.emplace_back(&getConsumerBody());
  regions.emplace_back(&getProducerBody());
}

//===----------------------------------------------------------------------===//
// RoleBarrierOp
//===----------------------------------------------------------------------===//

LogicalResult RoleBarrierOp::verify() {
  if (!(*this)->getParentOfType<WarpSpecializeOp>())
    return emitOpError("must be in a role of nm_tile.warp_specialize");
  return success();
}
