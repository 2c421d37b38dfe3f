//===- HostCode.cpp - what a manifest can say of the host's code ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A manifest lists launches. Whatever else the host does would be lost, so it
// is found here and refused: loops, calls, copies, and linalg operations that
// did not become kernels.
//
//===----------------------------------------------------------------------===//

#include "HostCode.h"
#include "PackChecks.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "nm_sparse/Base/Expression.h"
#include "nm_sparse/GPU/Support/Buffers.h"
#include "nm_sparse/Target/Target.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::nm_sparse;
using nms::Function;
using nms::Quantity;
using nms::writeCall;

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

bool nm_sparse::isWhole(Value value) {
  while (auto cast = value.getDefiningOp<memref::CastOp>())
    value = cast.getSource();
  return value == getBufferOf(value);
}

static std::string describe(OpFoldResult value) {
  if (auto attribute = dyn_cast<Attribute>(value))
    return std::to_string(cast<IntegerAttr>(attribute).getInt());
  return describeExpression(cast<Value>(value));
}

/// The description from the type alone; "?" for unknown numbers.
static ViewDescription describeType(MemRefType type) {
  auto print = [](int64_t number) {
    return ShapedType::isDynamic(number) ? std::string("?")
                                         : std::to_string(number);
  };
  ViewDescription result{"?", {}, {}};
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(type.getStridesAndOffset(strides, offset))) {
    strides.assign(type.getRank(), ShapedType::kDynamic);
    offset = ShapedType::kDynamic;
  }
  result.offset = print(offset);
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    result.sizes.push_back(print(type.getDimSize(dim)));
    result.strides.push_back(print(strides[dim]));
  }
  return result;
}

static ViewDescription describe(Value value, StringRef name);

static std::string multiply(const std::string &lhs, const std::string &rhs) {
  return lhs == "1"   ? rhs
         : rhs == "1" ? lhs
                      : writeCall(Function::Mul, {lhs, rhs});
}

static ViewDescription describeSubView(memref::SubViewOp view, StringRef name) {
  ViewDescription source = describe(view.getSource(), name);
  ViewDescription result = {source.offset, {}, {}};
  llvm::SmallBitVector dropped = view.getDroppedDims();
  for (int64_t dim = 0, e = source.sizes.size(); dim < e; ++dim) {
    std::string start = describe(view.getMixedOffsets()[dim]);
    if (start != "0")
      result.offset =
          writeCall(Function::Add,
                    {result.offset,
                     writeCall(Function::Mul, {start, source.strides[dim]})});
    if (dropped[dim])
      continue;
    result.sizes.push_back(describe(view.getMixedSizes()[dim]));
    result.strides.push_back(
        multiply(describe(view.getMixedStrides()[dim]), source.strides[dim]));
  }
  return result;
}

/// Neighbouring dimensions as one. Those of size 1 may have any stride.
static ViewDescription describeCollapse(memref::CollapseShapeOp view,
                                        StringRef name) {
  ViewDescription source = describe(view.getSrc(), name);
  ViewDescription result = {source.offset, {}, {}};
  for (const ReassociationIndices &group : view.getReassociationIndices()) {
    std::string size = "1", stride = "1";
    for (int64_t dim : group) {
      if (source.sizes[dim] == "1")
        continue;
      size = multiply(size, source.sizes[dim]);
      stride = source.strides[dim];
    }
    result.sizes.push_back(size);
    result.strides.push_back(stride);
  }
  return result;
}

/// One dimension as several.
static ViewDescription describeExpand(memref::ExpandShapeOp view,
                                      StringRef name) {
  ViewDescription source = describe(view.getSrc(), name);
  ViewDescription result = {source.offset, {}, {}};
  for (OpFoldResult size : view.getMixedOutputShape())
    result.sizes.push_back(describe(size));
  result.strides.resize(result.sizes.size());
  for (auto [dim, group] : llvm::enumerate(view.getReassociationIndices())) {
    std::string stride = source.strides[dim];
    for (int64_t inner : llvm::reverse(group)) {
      result.strides[inner] = stride;
      stride = multiply(stride, result.sizes[inner]);
    }
  }
  return result;
}

static ViewDescription describeTranspose(memref::TransposeOp view,
                                         StringRef name) {
  ViewDescription source = describe(view.getIn(), name);
  ViewDescription result = {source.offset, {}, {}};
  for (AffineExpr dim : view.getPermutation().getResults()) {
    unsigned position = cast<AffineDimExpr>(dim).getPosition();
    result.sizes.push_back(source.sizes[position]);
    result.strides.push_back(source.strides[position]);
  }
  return result;
}

/// Fills in what the types on the way do not say.
static ViewDescription describe(Value value, StringRef name) {
  ViewDescription result = describeType(cast<MemRefType>(value.getType()));
  ViewDescription known = result;
  if (auto view = value.getDefiningOp<memref::SubViewOp>()) {
    known = describeSubView(view, name);
  } else if (auto view = value.getDefiningOp<memref::CollapseShapeOp>()) {
    known = describeCollapse(view, name);
  } else if (auto view = value.getDefiningOp<memref::ExpandShapeOp>()) {
    known = describeExpand(view, name);
  } else if (auto view = value.getDefiningOp<memref::TransposeOp>()) {
    known = describeTranspose(view, name);
  } else if (auto cast = value.getDefiningOp<memref::CastOp>();
             cast && isa<MemRefType>(cast.getSource().getType())) {
    known = describe(cast.getSource(), name);
  } else if (value == getBufferOf(value)) {
    auto write = [&](Quantity::Field field, int64_t dim) {
      return Quantity{name.str(), field, dim}.write();
    };
    known.offset = write(Quantity::Field::Offset, 0);
    for (int64_t dim = 0, e = known.sizes.size(); dim < e; ++dim) {
      known.sizes[dim] = write(Quantity::Field::Size, dim);
      known.strides[dim] = write(Quantity::Field::Stride, dim);
    }
  }
  auto fill = [](std::string &text, const std::string &other) {
    if (text == "?")
      text = other;
  };
  fill(result.offset, known.offset);
  for (auto [text, other] : llvm::zip(result.sizes, known.sizes))
    fill(text, other);
  for (auto [text, other] : llvm::zip(result.strides, known.strides))
    fill(text, other);
  return result;
}

std::optional<ViewDescription> nm_sparse::describeView(Value value,
                                                       StringRef name) {
  ViewDescription result = describe(value, name);
  auto isUnknown = [](StringRef text) { return text.contains('?'); };
  if (isUnknown(result.offset) || llvm::any_of(result.sizes, isUnknown) ||
      llvm::any_of(result.strides, isUnknown))
    return std::nullopt;
  return result;
}

std::string nm_sparse::describeSize(Value view, int64_t dim) {
  Value buffer = getBufferOf(view);
  auto argument = dyn_cast<BlockArgument>(buffer);
  std::string name = argument ? getArgumentName(argument) : "?";
  return describe(view, name).sizes[dim];
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

/// True when a launch before `memset` uses the buffer, so that its value is not
/// the one that it has in the beginning, or when only a part is set.
static bool isReset(gpu::MemsetOp memset) {
  Value root = getBufferOf(memset.getDst());
  if (root != memset.getDst())
    return true;
  return llvm::any_of(
      memset->getBlock()->getOps<gpu::LaunchFuncOp>(),
      [&](gpu::LaunchFuncOp launch) {
        return launch->isBeforeInBlock(memset) &&
               llvm::any_of(launch.getKernelOperands(), [&](Value operand) {
                 return getBufferOf(operand) == root;
               });
      });
}

/// The function that `region` calls with the arguments of `function`, where it
/// does nothing else; empty otherwise.
static StringRef getOnlyCall(Region &region, func::FuncOp function) {
  auto calls = region.getOps<func::CallOp>();
  auto isViewOrCall = [](Operation &op) {
    return isa<func::CallOp, memref::CastOp, scf::YieldOp>(op);
  };
  if (!llvm::hasSingleElement(calls) ||
      !llvm::all_of(region.front(), isViewOrCall) ||
      !llvm::equal((*calls.begin()).getOperands(), function.getArguments()))
    return "";
  return (*calls.begin()).getCallee();
}

std::optional<TokenSelection>
nm_sparse::findTokenSelection(func::FuncOp function) {
  auto switches = function.getOps<scf::IndexSwitchOp>();
  if (!llvm::hasSingleElement(switches))
    return std::nullopt;
  scf::IndexSwitchOp choice = *switches.begin();
  TokenSelection selection;
  selection.classOf = choice.getArg().getDefiningOp<TokenClassOp>();
  if (!selection.classOf)
    return std::nullopt;
  // Cases are classes, and the default stands for the others.
  ArrayRef<int64_t> cases = choice.getCases();
  int64_t classes = 1 + *llvm::max_element(selection.classOf.getClasses());
  for (int64_t number = 0; number < classes; ++number) {
    auto found = llvm::find(cases, number);
    Region &region = found == cases.end()
                         ? choice.getDefaultRegion()
                         : choice.getCaseRegions()[found - cases.begin()];
    selection.functions.push_back(getOnlyCall(region, function));
    if (selection.functions.back().empty())
      return std::nullopt;
  }
  return selection;
}

SmallVector<Operation *> nm_sparse::collectHostOps(func::FuncOp function) {
  SmallVector<Operation *> found;
  llvm::DenseSet<Operation *> checks;
  for (const PackCheck &check : findPackChecks(function))
    checks.insert_range(check.ops);
  bool isSelection = findTokenSelection(function).has_value();
  for (Operation &op : function.getOps()) {
    if (checks.contains(&op) || (isSelection && isa<scf::IndexSwitchOp>(op)))
      continue;
    if (isa<func::ReturnOp, gpu::LaunchFuncOp, gpu::WaitOp, gpu::AllocOp,
            gpu::DeallocOp, memref::AllocOp, memref::DeallocOp,
            nvgpu::TmaCreateDescriptorOp>(op))
      continue;
    if (auto memset = dyn_cast<gpu::MemsetOp>(op); memset && !isReset(memset))
      continue;
    // Sizes, grids and views. A constant array is not known to who launches.
    if (!op.hasTrait<OpTrait::IsTerminator>() && op.getNumRegions() == 0 &&
        !isa<memref::GetGlobalOp>(op) && isMemoryEffectFree(&op))
      continue;
    found.push_back(&op);
  }
  return found;
}

std::string nm_sparse::describeHostOps(ModuleOp module, bool hostMemory) {
  llvm::MapVector<StringRef, Operation *> names;
  int64_t count = 0;
  for (auto function : module.getOps<func::FuncOp>()) {
    SmallVector<Operation *> ops = collectHostOps(function);
    // The manifest describes these checks, kernels alone do not.
    for (const PackCheck &check : findPackChecks(function))
      ops.push_back(check.call);
    for (Operation *op : ops) {
      if (hostMemory && isa<gpu::MemcpyOp>(op))
        continue;
      ++count;
      names.insert({op->getName().getStringRef(), op});
    }
  }
  if (count == 0)
    return "";
  std::string text =
      llvm::formatv("{0} operation{1} of the host, not in the kernels: ", count,
                    count == 1 ? "" : "s");
  llvm::raw_string_ostream stream(text);
  llvm::interleaveComma(
      names.getArrayRef().take_front(4), stream,
      [&](const std::pair<StringRef, Operation *> &entry) {
        stream << "'" << entry.first << "'";
        if (auto place =
                entry.second->getLoc()->findInstanceOf<FileLineColLoc>())
          stream << " at " << place.getFilename().getValue() << ":"
                 << place.getLine();
      });
  if (names.size() > 4)
    stream << ", ...";
  return text;
}
