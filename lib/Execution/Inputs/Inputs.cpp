//===- Inputs.cpp - seeded inputs of a function ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Inputs/Inputs.h"
#include "Inputs/PackedInputs.h"
#include "Inputs/Permutations.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "nm_sparse/Base/Convert.h"
#include "nm_sparse/Base/Random.h"
#include "nm_sparse/Dialect/NMSparse/Utils/Packing.h"
#include "nm_sparse/Runtime/Error.h"
#include "nm_sparse/Runtime/Packing.h"
#include "nm_sparse/Support/ErrorCollector.h"
#include "nm_sparse/Support/MakeError.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>
#include <cstring>

using namespace mlir;
using namespace mlir::nm_sparse;

template <typename T>
static std::string toString(T typeOrAttribute) {
  std::string text;
  llvm::raw_string_ostream(text) << typeOrAttribute;
  return text;
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

namespace {
class InputMaker {
public:
  InputMaker(func::FuncOp function, uint64_t seed, int64_t density,
             const llvm::DenseSet<unsigned> &permutations, WeightCache *weights)
      : function(function), seed(seed), density(density),
        permutations(permutations), weights(weights) {}
  /// Adds argument `position`, whose extents are `shape`.
  llvm::Error add(unsigned position, ArrayRef<int64_t> shape);
  Inputs take() { return std::move(inputs); }

private:
  llvm::Expected<Argument> makeScalar(Type type, ArrayRef<int64_t> value,
                                      uint64_t stream) const;
  llvm::Expected<HostArray> makeWeight(RankedTensorType type,
                                       EncodingAttr encoding, uint64_t stream,
                                       std::vector<Argument> &packed) const;
  llvm::Error addComponent(ComponentAttr component, uint64_t stream);
  void addToBoth(Argument argument) {
    inputs.dense.push_back(argument);
    inputs.packed.push_back(std::move(argument));
  }

  func::FuncOp function;
  uint64_t seed;
  int64_t density; ///< Percent that weights of free elements keep.
  const llvm::DenseSet<unsigned> &permutations; ///< Arguments, by number.
  WeightCache *weights;                         ///< May be null.
  Inputs inputs;
  /// Components of the weights that the function takes packed, by number.
  DenseMap<int64_t, std::vector<Argument>> packedWeights;
};
} // namespace

llvm::Expected<Argument> InputMaker::makeScalar(Type type,
                                                ArrayRef<int64_t> value,
                                                uint64_t stream) const {
  Argument argument;
  argument.isScalar = true;
  if (!value.empty()) {
    argument.array.kind = -1;
    argument.array.data.resize(sizeof(int64_t));
    std::memcpy(argument.array.data.data(), value.data(), sizeof(int64_t));
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

/// A random dense weight of the pattern, whose components go to `packed`.
llvm::Expected<HostArray>
InputMaker::makeWeight(RankedTensorType type, EncodingAttr encoding,
                       uint64_t stream, std::vector<Argument> &packed) const {
  if (!type.hasStaticShape())
    return makeError("it is a weight of type {0}, whose shape must be static "
                     "to be packed",
                     toString(type));
  // Said of types that no operation has met yet.
  ErrorCollector errors(type.getContext());
  if (failed(encoding.getDefaultStorage().verifyPackable(
          [&] { return emitError(UnknownLoc::get(type.getContext())); })))
    return makeError("{0}", errors.getFirst());
  std::string key;
  if (weights) {
    key = llvm::formatv("{0}, {1} %, {2}, {3}", toString(Type(type)), density,
                        seed, stream);
    if (std::shared_ptr<const RandomWeight> known = weights->find(key)) {
      llvm::append_range(packed, known->packed);
      return known->dense;
    }
  }
  size_t first = packed.size();
  HostArray dense(*getRuntimeKind(type.getElementType()), type.getShape());
  type = flattenWeight(type);
  // Keeps products near unit variance, so that f16 results do not overflow and
  // activation functions are used where they bend.
  double share =
      encoding.isFree() ? double(density) / 100 : encoding.getDensity();
  double kept =
      std::max(1.0, double(type.getDimSize(encoding.getDim())) * share);
  if (llvm::Error error = fillNormal(dense, 1 / std::sqrt(kept), seed, stream))
    return std::move(error);
  if (llvm::Error error =
          packWeight(dense, type, encoding, density, seed + stream, packed))
    return std::move(error);
  if (weights)
    weights->put(
        key, std::make_shared<RandomWeight>(RandomWeight{
                 dense, {packed.begin() + ptrdiff_t(first), packed.end()}}));
  return dense;
}

/// The components of a weight belong together, wherever they are.
llvm::Error InputMaker::addComponent(ComponentAttr component, uint64_t stream) {
  PackedAttr packed = component.getPacked();
  auto [weight, isNew] = packedWeights.try_emplace(component.getWeight());
  if (isNew)
    if (auto dense = makeWeight(packed.getWeightType(), packed.getEncoding(),
                                stream, weight->second);
        !dense)
      return dense.takeError();
  for (auto [own, argument] : llvm::zip(packed.getComponents(), weight->second))
    if (own.name == component.getName())
      addToBoth(argument);
  return llvm::Error::success();
}

llvm::Error InputMaker::add(unsigned position, ArrayRef<int64_t> shape) {
  Type type = function.getArgumentTypes()[position];
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor && isa<ShapedType>(type))
    return makeError("it has type {0}; expected a ranked tensor or a number",
                     toString(type));
  if (!tensor) {
    auto scalar = makeScalar(type, shape, position);
    if (!scalar)
      return scalar.takeError();
    addToBoth(std::move(*scalar));
    return llvm::Error::success();
  }
  std::optional<int32_t> kind = getRuntimeKind(tensor.getElementType());
  if (!kind)
    return makeError("it has elements of type {0}; nm-run has values for f64, "
                     "f32, f16, bf16, f8E4M3FN, f8E5M2, i32 and i8",
                     toString(tensor.getElementType()));
  if (EncodingAttr encoding = getEncoding(tensor)) {
    auto weight = makeWeight(tensor, encoding, position, inputs.packed);
    if (!weight)
      return weight.takeError();
    inputs.dense.push_back({std::move(*weight)});
    return llvm::Error::success();
  }
  if (auto component = getComponent(function, function.getArgument(position)))
    return addComponent(component, position);
  Argument dense;
  dense.array = HostArray(*kind, shape);
  if (permutations.contains(position) && dense.array.size() != 0) {
    std::vector<uint32_t> numbers = drawPermutations(
        dense.array.size() / shape.back(), shape.back(), seed + position);
    std::memcpy(dense.array.data.data(), numbers.data(),
                dense.array.data.size());
  } else if (llvm::Error error = fillNormal(dense.array, 1, seed, position)) {
    return error;
  }
  addToBoth(std::move(dense));
  return llvm::Error::success();
}

llvm::Expected<Inputs> nm_sparse::makeInputs(func::FuncOp function,
                                             func::FuncOp whole,
                                             const Extents &extents,
                                             uint64_t seed, int64_t density,
                                             WeightCache *weights) {
  auto permutations = findPermutations(whole);
  if (!permutations)
    return permutations.takeError();
  InputMaker maker(function, seed, density, *permutations, weights);
  for (auto [position, shape] : llvm::enumerate(extents.arguments))
    if (llvm::Error error = maker.add(position, shape))
      return makeError("cannot make argument #{0} of @{1}: {2}", position,
                       function.getSymName(), llvm::toString(std::move(error)));
  return maker.take();
}

/// Checks that `index` holds the positions of `level` of `encoding`, as far as
/// it is an argument.
static llvm::Error checkIndex(func::FuncOp entry, Value index,
                              EncodingAttr encoding, unsigned level) {
  while (auto cast = index.getDefiningOp<tensor::CastOp>())
    index = cast.getSource();
  auto argument = dyn_cast<BlockArgument>(index);
  if (!argument || argument.getOwner() != &entry.getBody().front())
    return llvm::Error::success();
  ComponentAttr component = getComponent(entry, index);
  StringRef name = NMSparseDialect::ComponentAttrHelper::getNameStr();
  if (!component)
    return makeError(
        "cannot make argument #{0} of @{1}: {2} is the index of a packed "
        "weight with {3}, which random numbers are not; say which weight it "
        "belongs to with the attribute {4}, on its values, too, or take the "
        "dense weight",
        argument.getArgNumber(), entry.getSymName(),
        toString(argument.getType()), toString(encoding), name);
  WeightComponent own = component.getComponent();
  bool isRagged =
      component.getPacked().getStorage().getListedPanels().has_value();
  bool isRead =
      encoding.isFree() && !isRagged
          ? own.role == ComponentRole::Bits
          : own.role == ComponentRole::Positions && own.level == level;
  if (isRead &&
      component.getPacked().getEncoding().getLevels() == encoding.getLevels())
    return llvm::Error::success();
  return makeError(
      "argument #{0} of @{1} is '{2}' of a weight with {3} by its "
      "attribute {4}, but is read as positions of {5}",
      argument.getArgNumber(), entry.getSymName(), component.getName(),
      toString(component.getPacked().getEncoding()), name, toString(encoding));
}

llvm::Error nm_sparse::checkIndexArguments(func::FuncOp entry) {
  struct Use {
    Value index;
    EncodingAttr encoding;
    unsigned level;
  };
  SmallVector<Use> uses;
  entry.walk([&](Operation *op) {
    if (auto matmul = dyn_cast<MatmulOp>(op))
      uses.push_back({matmul.getIndex(), matmul.getEncoding(), 0});
    // Ragged panels have one index, and words that say where its rows are.
    if (auto unpack = dyn_cast<UnpackOp>(op)) {
      for (auto [level, index] : llvm::enumerate(unpack.getComponents().slice(
               1, unpack.getEncoding().getLevels().size())))
        uses.push_back({index, unpack.getEncoding(), unsigned(level)});
    }
  });
  for (const Use &use : uses)
    if (llvm::Error error =
            checkIndex(entry, use.index, use.encoding, use.level))
      return error;
  return llvm::Error::success();
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
    HostArray target(*kind, array.shape);
    std::vector<double> numbers;
    auto *doubles = reinterpret_cast<double *>(target.data.data());
    if (*kind != NMS_F64) {
      numbers.resize(array.size());
      doubles = numbers.data();
    }
    if (nmsToDouble(array.kind, array.data.data(), doubles, array.size()) ||
        (*kind != NMS_F64 &&
         nmsFromDouble(*kind, doubles, target.data.data(), array.size())))
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
