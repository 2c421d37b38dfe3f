//===- BindWeights.cpp - arguments that become constants ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The IR keeps no names of arguments, but reading a module puts them in their
// locations.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Checkpoint/BindWeights.h"
#include "nm_sparse/Checkpoint/TensorFile.h"
#include "nm_sparse/Support/MakeError.h"
#include "nm_sparse/Support/QuoteName.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::nm_sparse;

llvm::Expected<WeightBinding> WeightBinding::parse(StringRef text) {
  auto [argument, rest] = text.split('=');
  argument.consume_front("%");
  WeightBinding binding;
  binding.argument = argument.str();
  // A path may have colons; a tensor comes behind the end of the file's name.
  StringRef suffix = ".safetensors:";
  size_t end = rest.rfind(suffix);
  if (end == StringRef::npos) {
    binding.file = rest.str();
  } else {
    binding.file = rest.take_front(end + suffix.size() - 1).str();
    binding.tensor = rest.drop_front(end + suffix.size()).str();
  }
  if (argument.empty() || rest.empty())
    return makeError("'{0}' binds no argument to a file; expected "
                     "NAME=FILE.safetensors or NAME=FILE.safetensors:TENSOR",
                     text);
  return binding;
}

/// The name of `argument` in the text that it was read from; empty where there
/// is none.
static StringRef getName(BlockArgument argument) {
  auto name = dyn_cast<NameLoc>(argument.getLoc());
  return name ? name.getName().getValue() : StringRef();
}

static llvm::Expected<unsigned> findArgument(func::FuncOp entry,
                                             StringRef wanted) {
  std::string names;
  for (BlockArgument argument : entry.getArguments()) {
    std::string name = getName(argument).str();
    if (name.empty())
      name = std::to_string(argument.getArgNumber());
    if (name == wanted || std::to_string(argument.getArgNumber()) == wanted)
      return argument.getArgNumber();
    names += (names.empty() ? "" : ", ") + name;
  }
  return makeError("@{0} has no argument '{1}' to bind; it has {2}",
                   entry.getSymName(), wanted, names.empty() ? "none" : names);
}

static llvm::Expected<TensorInfo> findTensor(const TensorFile &file,
                                             StringRef wanted) {
  std::string names;
  for (const TensorInfo &tensor : file.getTensors()) {
    if (wanted.empty() ? file.getTensors().size() == 1 : tensor.name == wanted)
      return tensor;
    names += (names.empty() ? "" : ", ") + quoteName(tensor.name);
  }
  return makeError("{0} has {1}; it has {2}", file.getPath(),
                   wanted.empty()
                       ? "no single tensor: say which, as FILE:TENSOR"
                       : "no tensor " + quoteName(wanted),
                   names.empty() ? "none" : names);
}

llvm::Error nm_sparse::bindWeight(func::FuncOp entry,
                                  const WeightBinding &binding) {
  auto uses = SymbolTable::getSymbolUses(entry, entry->getParentOp());
  if (!uses || !uses->empty())
    return makeError(
        "@{0} is called in its module, so that no argument of it "
        "can be bound; bind those of a function that nothing calls",
        entry.getSymName());
  auto number = findArgument(entry, binding.argument);
  if (!number)
    return number.takeError();
  auto file = TensorFile::open(binding.file);
  if (!file)
    return file.takeError();
  auto tensor = findTensor(*file, binding.tensor);
  if (!tensor)
    return tensor.takeError();

  BlockArgument argument = entry.getArgument(*number);
  auto type = dyn_cast<RankedTensorType>(argument.getType());
  std::string element;
  if (type)
    llvm::raw_string_ostream(element) << type.getElementType();
  if (!type || !type.hasStaticShape() || element != tensor->type->element ||
      type.getShape() != ArrayRef<int64_t>(tensor->shape)) {
    std::string own;
    llvm::raw_string_ostream(own) << argument.getType();
    return makeError(
        "argument '{0}' of @{1} is {2}, but {3} of {4} is {5} x "
        "[{6}]; both must be equal",
        binding.argument, entry.getSymName(), own, quoteName(tensor->name),
        file->getPath(), tensor->type->name,
        llvm::join(llvm::map_range(tensor->shape,
                                   [](int64_t d) { return std::to_string(d); }),
                   ", "));
  }
  OpBuilder b(entry.getContext());
  b.setInsertionPointToStart(&entry.getBody().front());
  auto data = DenseElementsAttr::getFromRawBuffer(type, tensor->data);
  argument.replaceAllUsesWith(
      arith::ConstantOp::create(b, argument.getLoc(), data));
  if (failed(entry.eraseArgument(*number)))
    return makeError("@{0} cannot lose argument '{1}'", entry.getSymName(),
                     binding.argument);
  return llvm::Error::success();
}

llvm::Error nm_sparse::bindWeights(ModuleOp module,
                                   ArrayRef<WeightBinding> bindings) {
  if (bindings.empty())
    return llvm::Error::success();
  SmallVector<func::FuncOp> functions;
  for (auto function : module.getOps<func::FuncOp>())
    if (function.isPublic() && !function.isExternal())
      functions.push_back(function);
  if (functions.size() != 1)
    return makeError("arguments of the only public function can be bound, but "
                     "the module has {0}",
                     functions.size());
  for (const WeightBinding &binding : bindings)
    if (llvm::Error error = bindWeight(functions.front(), binding))
      return error;
  return llvm::Error::success();
}
