//===- FunctionWriter.cpp - a host function for the manifest --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FunctionWriter.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "nm_sparse/Base/Expression.h"
#include "nm_sparse/GPU/Support/Buffers.h"
#include "nm_sparse/Packing/Packing.h"
#include "nm_sparse/Target/Target.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::nm_sparse;
using llvm::json::Array;
using llvm::json::Object;

template <typename T>
static std::string print(T value) {
  std::string text;
  llvm::raw_string_ostream(text) << value;
  return text;
}

/// Which function to call for the tokens after those of the case before.
static Array writeCases(const TokenSelection &selection) {
  Array cases;
  TokenClassOp classOf = selection.classOf;
  for (auto [i, number] : llvm::enumerate(classOf.getClasses())) {
    Object entry{{"function", selection.functions[number]}};
    if (i < classOf.getLast().size())
      entry["at_most"] = classOf.getLast()[i];
    cases.push_back(std::move(entry));
  }
  return cases;
}

std::string FunctionWriter::getAdvice() const {
  return ("leave out " + option +
          " and run the host's code too (--emit nvvm shows it, "
          "docs/Runtime.md says how)")
      .str();
}

FailureOr<Object> FunctionWriter::write() {
  Array arguments, weights, launches;
  for (Operation *op : collectHostOps(function))
    return op->emitError() << "'" << op->getName()
                           << "' stays on the host, and "
                           << (option.starts_with("--emit")
                                   ? option + " writes"
                                   : "a manifest describes")
                           << " launches alone: " << getAdvice()
                           << ", or leave the operation out of the program";
  for (BlockArgument argument : function.getArguments())
    arguments.push_back(writeArgument(argument));
  for (BlockArgument argument : function.getArguments())
    if (ComponentAttr component = getComponent(argument);
        component && component.getComponent().role == ComponentRole::Values)
      weights.push_back(writeWeight(component));
  Object object{{"name", function.getSymName()},
                {"arguments", std::move(arguments)},
                {"weights", std::move(weights)}};
  if (std::optional<TokenSelection> selection = findTokenSelection(function)) {
    current = selection->classOf;
    object["tokens"] = describe(selection->classOf.getTokens());
    object["cases"] = writeCases(*selection);
    return finish(std::move(object));
  }
  for (auto launch : function.getOps<gpu::LaunchFuncOp>()) {
    current = launch;
    launches.push_back(writeLaunch(launch));
  }
  Array results, checked;
  for (const PackCheck &check : checks)
    checked.push_back(describePackCheck(check, getName(check.found)));
  if (!checked.empty())
    object["checks"] = std::move(checked);
  current = function.getBody().front().getTerminator();
  for (Value result : current->getOperands())
    results.push_back(writeResult(result));
  object["buffers"] = std::move(buffers);
  object["launches"] = std::move(launches);
  object["results"] = std::move(results);
  return finish(std::move(object));
}

void FunctionWriter::refuse(const std::string &what) {
  if (succeeded(described))
    current->emitError() << what
                         << " cannot be told by a manifest: " << getAdvice();
  described = failure();
}

FailureOr<Object> FunctionWriter::finish(Object object) {
  if (failed(described))
    return failure();
  return object;
}

std::string FunctionWriter::describe(Value value) {
  std::string text = describeExpression(value);
  nms::Expression parsed;
  if (!nms::Expression::parse(text, parsed))
    refuse("a value that is no expression over the arguments' sizes");
  return text;
}

Object FunctionWriter::writeResult(Value result) {
  std::string name = getName(getBufferOf(result));
  Object object{{"type", print(result.getType())}, {"buffer", name}};
  addView(object, result, name);
  return object;
}

void FunctionWriter::addView(Object &object, Value value, StringRef name) {
  if (isWhole(value))
    return;
  ViewDescription view = getView(value, name);
  object["offset"] = view.offset;
  object["sizes"] = Array(view.sizes);
  object["strides"] = Array(view.strides);
}

ViewDescription FunctionWriter::getView(Value value, StringRef name) {
  if (std::optional<ViewDescription> view = describeView(value, name))
    return *view;
  refuse("a view that is no expression over the arguments' sizes");
  return {};
}

std::string FunctionWriter::getName(Value root) {
  if (auto argument = dyn_cast<BlockArgument>(root))
    return getArgumentName(argument);
  if (!isa<memref::AllocOp, gpu::AllocOp>(root.getDefiningOp()))
    refuse("memory that '" +
           root.getDefiningOp()->getName().getStringRef().str() + "' makes");
  auto [it, isNew] = names.try_emplace(root, "");
  if (!isNew)
    return it->second;
  it->second = llvm::formatv("buffer{0}", names.size() - 1).str();
  Array sizes;
  if (auto type = dyn_cast<MemRefType>(root.getType())) {
    OperandRange dynamic(nullptr, 0);
    if (auto alloc = root.getDefiningOp<memref::AllocOp>())
      dynamic = alloc.getDynamicSizes();
    else if (auto alloc = root.getDefiningOp<gpu::AllocOp>())
      dynamic = alloc.getDynamicSizes();
    auto next = dynamic.begin();
    for (int64_t extent : type.getShape())
      if (!ShapedType::isDynamic(extent))
        sizes.push_back(std::to_string(extent));
      else
        sizes.push_back(next == dynamic.end() ? std::string("?")
                                              : describe(*next++));
  }
  std::string name = it->second;
  Object object{{"name", name},
                {"type", print(root.getType())},
                {"sizes", std::move(sizes)}};
  for (Operation *user : root.getUsers())
    if (auto memset = dyn_cast<gpu::MemsetOp>(user))
      object["initial"] = describe(memset.getValue());
  if (llvm::any_of(checks, [&](const PackCheck &c) { return c.found == root; }))
    object["initial"] = std::to_string(NMS_PACKED_NOTHING_FOUND);
  buffers.push_back(std::move(object));
  return name;
}

Object FunctionWriter::writeArgument(BlockArgument argument) {
  Object object{{"name", getName(argument)},
                {"type", print(argument.getType())}};
  if (auto name = dyn_cast<NameLoc>(argument.getLoc()))
    object["label"] = name.getName().getValue();
  ComponentAttr component = getComponent(argument);
  if (!component) {
    object["role"] = "data";
    return object;
  }
  object["role"] = stringifyComponentRole(component.getComponent().role);
  object["component"] = component.getName();
  object["weight"] = component.getWeight();
  return object;
}

ComponentAttr FunctionWriter::getComponent(BlockArgument argument) {
  return function.getArgAttrOfType<ComponentAttr>(
      argument.getArgNumber(),
      NMSparseDialect::ComponentAttrHelper::getNameStr());
}

Object FunctionWriter::writeWeight(ComponentAttr values) {
  PackedAttr packed = values.getPacked();
  Array components;
  for (const WeightComponent &component : packed.getComponents())
    for (BlockArgument argument : function.getArguments())
      if (ComponentAttr found = getComponent(argument);
          found && found.getWeight() == values.getWeight() &&
          found.getName() == component.name)
        components.push_back(
            Object{{"name", component.name},
                   {"role", stringifyComponentRole(component.role)},
                   {"argument", getName(argument)}});
  return Object{{"number", values.getWeight()},
                {"encoding", print(Attribute(packed.getEncoding()))},
                {"shape", Array(packed.getShape())},
                {"element_type", print(packed.getElementType())},
                {"packed_layout", packed.getLayoutVersion()},
                {"components", std::move(components)}};
}
