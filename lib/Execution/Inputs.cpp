//===- Inputs.cpp - seeded inputs of a function ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Inputs.h"

#include "nm_sparse/Dialect/NMSparse/Utils/Packing.h"
#include "nm_sparse/Pipelines/ErrorCollector.h"
#include "nm_sparse/Runtime/Error.h"
#include "nm_sparse/Runtime/Packing.h"
#include "nm_sparse/Runtime/Random.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>
#include <cstring>

using namespace mlir;
using namespace mlir::nm_sparse;

static std::string toString(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

template <typename... Args>
static llvm::Error makeError(const char *format, Args &&...args) {
  return llvm::createStringError(
      llvm::formatv(format, std::forward<Args>(args)...).str());
}

/// Standard normal numbers times `scale`.
static llvm::Error fillNormal(HostArray &array, double scale, uint64_t seed,
                              uint64_t stream) {
  bool integer = array.kind == NMS_I8 || array.kind == NMS_I32;
  int failed = 0;
  if (integer || scale == 1) {
    failed = nmsRandomNormal(array.kind, array.data.data(), array.size(), seed,
                             stream);
  } else {
    std::vector<float> numbers(array.size());
    failed =
        nmsRandomNormal(NMS_F32, numbers.data(), array.size(), seed, stream);
    for (float &number : numbers)
      number *= scale;
    failed |= nmsFromFloat(array.kind, numbers.data(), array.data.data(),
                           array.size());
  }
  if (failed)
    return makeError("no random input: {0}", nmsLastError());
  return llvm::Error::success();
}

/// An array for `component` of a weight whose elements have kind `kind`.
static HostArray makeArray(const WeightComponent &component, int32_t kind) {
  if (component.role == ComponentRole::Values)
    return HostArray(kind, component.type.getShape());
  HostArray array;
  array.elementBytes = component.type.getElementTypeBitWidth() / 8;
  array.kind = array.elementBytes == 1 ? NMS_I8 : NMS_I32;
  array.shape.assign(component.type.getShape().begin(),
                     component.type.getShape().end());
  array.data.resize(array.size() * array.elementBytes);
  return array;
}

/// Prunes `dense` to the pattern, and appends its components to `packed`.
static llvm::Error packWeight(HostArray &dense, RankedTensorType type,
                              EncodingAttr encoding,
                              std::vector<Argument> &packed) {
  NmsPackSpec spec = getPackSpec(type, encoding);
  if (nmsPrune(&spec, dense.data.data(), dense.data.data()))
    return llvm::createStringError(nmsLastError());
  size_t first = packed.size();
  for (const WeightComponent &component : encoding.getComponents(type))
    packed.push_back({makeArray(component, dense.kind)});
  SmallVector<void *> arrays;
  for (Argument &component : llvm::drop_begin(packed, first))
    arrays.push_back(component.array.data.data());
  if (nmsPack(&spec, dense.data.data(), arrays.data()))
    return llvm::createStringError(nmsLastError());
  return llvm::Error::success();
}

static llvm::Expected<Argument> makeScalar(Type type, int64_t dynamicSize,
                                           uint64_t seed, uint64_t stream) {
  Argument argument;
  argument.isScalar = true;
  if (type.isIndex() || type.isInteger(64)) {
    argument.array.kind = -1;
    argument.array.data.resize(8);
    std::memcpy(argument.array.data.data(), &dynamicSize, 8);
    return argument;
  }
  std::optional<int32_t> kind = getRuntimeKind(type);
  if (!kind)
    return makeError("it has type {0}, which nm-run has no values for",
                     toString(type));
  argument.array = HostArray(*kind, {});
  if (llvm::Error error = fillNormal(argument.array, 1, seed, stream))
    return std::move(error);
  return argument;
}

static llvm::Error addInput(Type type, int64_t dynamicSize, uint64_t seed,
                            uint64_t stream, Inputs &inputs) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor) {
    if (isa<ShapedType>(type))
      return makeError("it has type {0}; expected a ranked tensor or a number",
                       toString(type));
    auto scalar = makeScalar(type, dynamicSize, seed, stream);
    if (!scalar)
      return scalar.takeError();
    inputs.dense.push_back(*scalar);
    inputs.packed.push_back(*scalar);
    return llvm::Error::success();
  }

  std::optional<int32_t> kind = getRuntimeKind(tensor.getElementType());
  if (!kind)
    return makeError("it has elements of type {0}; nm-run has values for f64, "
                     "f32, f16, bf16, f8E4M3FN, f8E5M2, i32 and i8",
                     toString(tensor.getElementType()));
  SmallVector<int64_t> shape(tensor.getShape());
  for (int64_t &extent : shape)
    if (ShapedType::isDynamic(extent))
      extent = dynamicSize;
  Argument dense;
  dense.array = HostArray(*kind, shape);

  EncodingAttr encoding = getEncoding(tensor);
  if (!encoding) {
    if (llvm::Error error = fillNormal(dense.array, 1, seed, stream))
      return error;
    inputs.packed.push_back(dense);
    inputs.dense.push_back(std::move(dense));
    return llvm::Error::success();
  }
  // Said of types that no operation has met yet.
  ErrorCollector errors(type.getContext());
  if (failed(encoding.verifyPackable(
          [&] { return emitError(UnknownLoc::get(type.getContext())); })))
    return makeError("{0}", errors.getFirst());
  // Keeps products near unit variance, so that f16 results do not overflow and
  // activation functions are used where they bend.
  double kept = std::max(1.0, shape[encoding.getDim()] * encoding.getDensity());
  if (llvm::Error error =
          fillNormal(dense.array, 1 / std::sqrt(kept), seed, stream))
    return error;
  if (llvm::Error error =
          packWeight(dense.array, tensor, encoding, inputs.packed))
    return error;
  inputs.dense.push_back(std::move(dense));
  return llvm::Error::success();
}

llvm::Expected<Inputs> nm_sparse::makeInputs(func::FuncOp function,
                                             int64_t dynamicSize,
                                             uint64_t seed) {
  Inputs inputs;
  for (auto [position, type] : llvm::enumerate(function.getArgumentTypes()))
    if (llvm::Error error = addInput(type, dynamicSize, seed, position, inputs))
      return makeError("cannot make argument #{0} of @{1}: {2}", position,
                       function.getSymName(), toString(std::move(error)));
  return inputs;
}

llvm::Expected<std::vector<Argument>>
nm_sparse::convertArguments(ArrayRef<Argument> arguments, FunctionType type) {
  if (type.getNumInputs() != arguments.size())
    return makeError("the lowered function takes {0} arguments, expected {1}",
                     type.getNumInputs(), arguments.size());
  std::vector<Argument> converted(arguments.begin(), arguments.end());
  for (auto [argument, input] : llvm::zip(converted, type.getInputs())) {
    std::optional<int32_t> kind = getRuntimeKind(getElementTypeOrSelf(input));
    HostArray &array = argument.array;
    if (!kind || array.kind < 0 || array.kind == *kind)
      continue;
    std::vector<double> numbers(array.size());
    HostArray target(*kind, array.shape);
    if (nmsToDouble(array.kind, array.data.data(), numbers.data(),
                    array.size()) ||
        nmsFromDouble(*kind, numbers.data(), target.data.data(), array.size()))
      return llvm::createStringError(nmsLastError());
    array = std::move(target);
  }
  return converted;
}

llvm::Expected<SmallVector<ResultType>>
nm_sparse::getResultTypes(FunctionType type) {
  SmallVector<ResultType> results;
  for (auto [position, result] : llvm::enumerate(type.getResults())) {
    auto tensor = dyn_cast<RankedTensorType>(result);
    std::optional<int32_t> kind =
        tensor ? getRuntimeKind(tensor.getElementType()) : std::nullopt;
    if (!kind || getEncoding(result))
      return makeError("result #{0} has type {1}; nm-run compares dense ranked "
                       "tensors of f64, f32, f16, bf16, f8E4M3FN, f8E5M2, i32 "
                       "and i8",
                       position, toString(result));
    results.push_back({*kind, tensor.getRank()});
  }
  if (results.empty())
    return makeError("the function returns nothing that could be checked");
  return results;
}
