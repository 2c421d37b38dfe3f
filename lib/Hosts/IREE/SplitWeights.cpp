//===- SplitWeights.cpp - weights of a model as their components ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SplitWeights.h"

#include "mlir/AsmParser/AsmParser.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "nm_sparse/Support/MakeError.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <tuple>

using namespace mlir;
using namespace mlir::nm_sparse;
using nms::ManifestArgument;
using nms::ManifestFunction;

/// The name of `argument` in the text that it was read from, or its number.
static std::string getName(BlockArgument argument) {
  if (auto name = dyn_cast<NameLoc>(argument.getLoc()))
    return name.getName().str();
  return "arg" + std::to_string(argument.getArgNumber());
}

namespace {

class WeightSplitter {
public:
  WeightSplitter(ModuleOp model, StringRef programs,
                 const nms::Manifest &manifest, const IREEOptions &options)
      : model(model), programs(programs), manifest(manifest), options(options) {
  }

  llvm::Expected<SplitResult> run();

private:
  /// The components of one weight: from `first` on among a program's arguments.
  struct Place {
    const ManifestFunction *program;
    unsigned first, count;
    const ManifestArgument &get(unsigned i) const {
      return program->arguments[first + i];
    }
    /// By which the weight is stored: the compiler may take one of several.
    StringRef getEncoding() const {
      for (const nms::ManifestWeight &weight : program->weights)
        if (count > 0 && weight.number == get(0).weight)
          return weight.encoding;
      return {};
    }
  };

  /// Refuses parameters that no function has.
  llvm::Error checkNames();
  const ManifestFunction *findProgram(func::CallOp call) const;
  llvm::Error splitFunction(func::FuncOp function);
  void splitCall(func::CallOp call, const ManifestFunction &program);
  llvm::Error splitArgument(func::FuncOp function, BlockArgument weight);
  /// The components of `weight` in each program that it is passed to.
  llvm::Expected<SmallVector<Place>> findPlaces(BlockArgument weight) const;
  llvm::Error addParameters(BlockArgument weight, ArrayRef<Place> places);
  llvm::Error loadParameter(func::FuncOp function, BlockArgument argument);
  /// The global of a parameter.
  llvm::Expected<std::string> addParameter(const IREEParameter &parameter);

  ModuleOp model;
  StringRef programs;
  const nms::Manifest &manifest;
  const IREEOptions &options;
  SplitResult result;
  /// The components of weights: arguments or globals.
  llvm::DenseMap<Value, SmallVector<Value>> components;
  llvm::DenseMap<Value, SmallVector<std::string>> globals;
};

} // namespace

const ManifestFunction *WeightSplitter::findProgram(func::CallOp call) const {
  StringRef name = call.getCallee();
  if (!name.consume_front(programs) || !name.consume_front("."))
    return nullptr;
  for (const ManifestFunction &function : manifest.functions)
    if (function.name == name)
      return &function;
  return nullptr;
}

llvm::Expected<SmallVector<WeightSplitter::Place>>
WeightSplitter::findPlaces(BlockArgument weight) const {
  SmallVector<Place> places;
  for (OpOperand &use : weight.getUses()) {
    auto call = dyn_cast<func::CallOp>(use.getOwner());
    const ManifestFunction *program = call ? findProgram(call) : nullptr;
    if (!program)
      return makeError("weight %{0} is used by '{1}', which is no program",
                       getName(weight), use.getOwner()->getName());
    // Each encoded operand before it has its components there.
    unsigned number = 0;
    auto countComponents = [&](unsigned from) {
      unsigned count = 0;
      while (from + count < program->arguments.size() &&
             !program->arguments[from + count].component.empty() &&
             program->arguments[from + count].weight ==
                 program->arguments[from].weight)
        ++count;
      return count;
    };
    for (Value before : call.getOperands().take_front(use.getOperandNumber()))
      number += getEncoding(before.getType()) ? countComponents(number) : 1;
    places.push_back({program, number, countComponents(number)});
  }
  for (const Place &place : places)
    for (unsigned i = 0; i < place.count; ++i)
      if (place.count != places.front().count ||
          place.getEncoding() != places.front().getEncoding() ||
          place.get(i).component != places.front().get(i).component ||
          place.get(i).type.text != places.front().get(i).type.text)
        return makeError("weight %{0} is stored in two ways, as {1} and {2} "
                         "read it: pass it to one product, or choose one "
                         "--storage",
                         getName(weight), places.front().program->name,
                         place.program->name);
  return places;
}

llvm::Expected<std::string>
WeightSplitter::addParameter(const IREEParameter &parameter) {
  const std::string &key = parameter.key;
  std::string global = "parameter." + key;
  for (char &c : global)
    if (!llvm::isAlnum(c) && !StringRef("_.$").contains(c))
      c = '_';
  auto [place, isNew] = result.parameters.insert({global, parameter});
  // Functions that call a parameter by one name have one parameter.
  auto identify = [](const IREEParameter &one) {
    return std::tie(one.argument, one.component, one.type, one.encoding);
  };
  if (isNew || identify(place->second) == identify(parameter))
    return global;
  auto describe = [](const IREEParameter &one) {
    return one.type + (one.encoding.empty() ? "" : " of " + one.encoding);
  };
  return makeError("two functions have a parameter {0}, as {1} and as {2}: "
                   "rename an argument, or pass weights as arguments "
                   "(--weights arguments)",
                   key, describe(place->second), describe(parameter));
}

llvm::Error WeightSplitter::addParameters(BlockArgument weight,
                                          ArrayRef<Place> places) {
  for (unsigned i = 0; i < places.front().count; ++i) {
    const ManifestArgument &component = places.front().get(i);
    if (llvm::is_contained(component.type.shape, nms::kDynamicSize))
      return makeError("the {0} of weight %{1} are as many as its elements "
                       "need, and a parameter of IREE has a size: pass it as "
                       "an argument (--weights arguments)",
                       component.component, getName(weight));
    auto global =
        addParameter({getName(weight) + "." + component.component,
                      writeTensorType(component.type), getName(weight),
                      component.component, places.front().program->name,
                      component.weight, places.front().getEncoding().str()});
    if (!global)
      return global.takeError();
    globals[weight].push_back(*global);
  }
  return llvm::Error::success();
}

llvm::Error WeightSplitter::splitArgument(func::FuncOp function,
                                          BlockArgument weight) {
  auto places = findPlaces(weight);
  if (!places)
    return places.takeError();
  if (!places->empty()) {
    if (options.hasParameters) {
      if (llvm::Error error = addParameters(weight, *places))
        return error;
    } else {
      for (unsigned i = 0; i < places->front().count; ++i) {
        const ManifestArgument &component = places->front().get(i);
        Type type =
            parseType(writeTensorType(component.type), model.getContext());
        unsigned at = weight.getArgNumber() + 1 + i;
        Location loc = NameLoc::get(StringAttr::get(
            model.getContext(), getName(weight) + "." + component.component));
        if (failed(function.insertArgument(at, type, {}, loc)))
          return makeError("@{0} cannot take the components of %{1}",
                           function.getSymName(), getName(weight));
        components[weight].push_back(function.getArgument(at));
      }
    }
  }
  return llvm::Error::success();
}

llvm::Error WeightSplitter::loadParameter(func::FuncOp function,
                                          BlockArgument argument) {
  std::string type;
  llvm::raw_string_ostream(type) << argument.getType();
  auto tensor = dyn_cast<RankedTensorType>(argument.getType());
  if (!tensor || !tensor.hasStaticShape())
    return makeError("argument %{0} of @{1} is {2}, and a parameter is a "
                     "tensor whose sizes are known: leave out --parameter {0}",
                     getName(argument), function.getSymName(), type);
  IREEParameter parameter;
  parameter.key = parameter.argument = getName(argument);
  parameter.type = type;
  auto global = addParameter(parameter);
  if (!global)
    return global.takeError();
  std::string name = "load." + *global;
  if (result.loads.insert({name, *global}).second) {
    auto b = OpBuilder::atBlockBegin(model.getBody());
    auto load =
        func::FuncOp::create(b, argument.getLoc(), name,
                             b.getFunctionType({}, {argument.getType()}));
    load.setPrivate();
  }
  auto b = OpBuilder::atBlockBegin(&function.getBody().front());
  auto call = func::CallOp::create(b, argument.getLoc(), name,
                                   TypeRange{argument.getType()});
  argument.replaceAllUsesWith(call.getResult(0));
  return llvm::Error::success();
}

void WeightSplitter::splitCall(func::CallOp call,
                               const ManifestFunction &program) {
  ProgramInstance instance;
  instance.program = &program;
  SmallVector<Value> passed;
  unsigned number = 0; // Among the arguments of the program.
  for (Value operand : call.getOperands()) {
    if (!getEncoding(operand.getType())) {
      passed.push_back(operand);
      ++number;
      continue;
    }
    for (Value component : components.lookup(operand)) {
      passed.push_back(component);
      ++number;
    }
    for (const std::string &global : globals.lookup(operand))
      instance.globals[number++] = global;
  }
  // Calls with the same weights are of one instance.
  unsigned others = 0;
  for (const ProgramInstance &known : result.instances) {
    others += known.program == &program;
    if (known.program == &program && known.globals == instance.globals)
      instance.suffix = known.suffix;
  }
  bool isKnown = llvm::any_of(result.instances, [&](const auto &known) {
    return known.program == &program && known.globals == instance.globals;
  });
  if (!isKnown) {
    if (others > 0)
      instance.suffix = ".of_weights_" + std::to_string(others);
    result.instances.push_back(instance);
  }
  call.setCallee((call.getCallee() + instance.suffix).str());
  call.getOperandsMutable().assign(passed);
}

llvm::Error WeightSplitter::splitFunction(func::FuncOp function) {
  SmallVector<BlockArgument> arguments(function.getArguments()), split;
  for (BlockArgument argument : arguments) {
    if (getEncoding(argument.getType())) {
      if (llvm::Error error = splitArgument(function, argument))
        return error;
      split.push_back(argument);
    } else if (options.hasParameters &&
               llvm::is_contained(options.parameters, getName(argument))) {
      if (llvm::Error error = loadParameter(function, argument))
        return error;
      split.push_back(argument);
    }
  }
  function.walk([&](func::CallOp call) {
    if (const ManifestFunction *program = findProgram(call))
      splitCall(call, *program);
  });
  BitVector gone(function.getNumArguments());
  for (BlockArgument argument : split)
    gone.set(argument.getArgNumber());
  if (failed(function.eraseArguments(gone)))
    return makeError("@{0} cannot lose its weights", function.getSymName());
  return llvm::Error::success();
}

llvm::Error WeightSplitter::checkNames() {
  std::vector<std::string> known;
  for (auto function : model.getOps<func::FuncOp>())
    if (!function.isExternal())
      for (BlockArgument argument : function.getArguments())
        known.push_back(getName(argument));
  for (const std::string &name : options.parameters)
    if (!llvm::is_contained(known, name))
      return makeError("--parameter {0} names no argument: legal are {1}", name,
                       llvm::join(known, ", "));
  return llvm::Error::success();
}

llvm::Expected<SplitResult> WeightSplitter::run() {
  if (llvm::Error error = checkNames())
    return std::move(error);
  for (auto function : llvm::to_vector(model.getOps<func::FuncOp>()))
    if (!function.isExternal())
      if (llvm::Error error = splitFunction(function))
        return std::move(error);
  // Their definitions are written with the programs.
  for (auto function : llvm::to_vector(model.getOps<func::FuncOp>()))
    if (function.isExternal())
      function.erase();
  return std::move(result);
}

llvm::Expected<SplitResult>
nm_sparse::splitWeights(ModuleOp model, StringRef programs,
                        const nms::Manifest &manifest,
                        const IREEOptions &options) {
  return WeightSplitter(model, programs, manifest, options).run();
}
