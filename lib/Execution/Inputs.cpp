//===- Inputs.cpp - seeded inputs of a function ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Inputs.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "nm_sparse/Dialect/NMSparse/Utils/Packing.h"
#include "nm_sparse/Pipelines/ErrorCollector.h"
#include "nm_sparse/Runtime/Error.h"
#include "nm_sparse/Runtime/Packing.h"
#include "nm_sparse/Runtime/Random.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

using namespace mlir;
using namespace mlir::nm_sparse;

template <typename T>
static std::string toString(T typeOrAttribute) {
  std::string text;
  llvm::raw_string_ostream(text) << typeOrAttribute;
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

/// Zeros blocks, so that each panel keeps those with the least of a random
/// number: a count of its own, at most 30 % from the share `density` of all.
static llvm::Error dropBlocks(HostArray &dense, const NmsPackSpec &spec,
                              double density, uint64_t seed) {
  const NmsPackLevel &level = spec.levels[0];
  auto rows = int64_t(llvm::divideCeil(spec.k, level.bk));
  int64_t panels = llvm::divideCeil(spec.outputs, level.bn);
  int64_t bytes = nmsKindBytes(spec.kind);
  std::vector<float> numbers(rows + 1);
  for (int64_t panel = 0; panel < spec.batch * panels; ++panel) {
    if (nmsRandomNormal(NMS_F32, numbers.data(), rows + 1, seed, panel))
      return llvm::createStringError(nmsLastError());
    double share = density * (1 + 0.3 * std::clamp(numbers.back(), -1.f, 1.f));
    auto count =
        std::clamp<int64_t>(std::llround(share * double(rows)), 0, rows);
    std::vector<int64_t> order(rows);
    std::iota(order.begin(), order.end(), 0);
    llvm::stable_sort(
        order, [&](int64_t a, int64_t b) { return numbers[a] < numbers[b]; });
    int64_t first = panel % panels * level.bn;
    for (int64_t row : ArrayRef(order).drop_front(count))
      for (int64_t k = row * level.bk;
           k < std::min(spec.k, (row + 1) * level.bk); ++k)
        for (int64_t n = first; n < std::min(spec.outputs, first + level.bn);
             ++n)
          std::memset(dense.data.data() +
                          (panel / panels * spec.strideB + k * spec.strideK +
                           n * spec.strideN) *
                              bytes,
                      0, bytes);
  }
  return llvm::Error::success();
}

/// Orders of outputs at random, one for each batch entry.
static std::vector<uint32_t> makePerm(const NmsPackSpec &spec, uint64_t seed) {
  std::vector<uint32_t> perm(spec.batch * spec.outputs);
  std::mt19937_64 random(seed);
  for (int64_t batch = 0; batch < spec.batch; ++batch)
    for (int64_t place = 0; place < spec.outputs; ++place) {
      uint32_t *row = perm.data() + batch * spec.outputs;
      row[place] = place;
      std::swap(row[place], row[random() % (place + 1)]);
    }
  return perm;
}

/// An argument with these numbers.
static Argument makePermArgument(const WeightComponent &component,
                                 ArrayRef<uint32_t> perm) {
  Argument argument{makeArray(component, NMS_I32)};
  std::memcpy(argument.array.data.data(), perm.data(),
              perm.size() * sizeof(uint32_t));
  return argument;
}

/// Drops blocks of `dense`, and appends its ragged panels to `packed`.
static llvm::Error packRagged(HostArray &dense, RankedTensorType type,
                              EncodingAttr encoding, int64_t density,
                              uint64_t seed, std::vector<Argument> &packed) {
  NmsPackSpec spec = getPackSpec(type, encoding);
  auto ragged = cast<RaggedAttr>(encoding.getDefaultStorage());
  SmallVector<WeightComponent> components = ragged.getComponents(type);
  if (encoding.getOrder() == OutputOrder::Shuffled) {
    std::vector<uint32_t> perm = makePerm(spec, seed);
    SmallVector<int64_t> shape = {spec.k, spec.outputs};
    if (type.getRank() == 3)
      shape.insert(shape.begin(), spec.batch);
    HostArray ordered(dense.kind, shape);
    if (nmsPutInOrder(&spec, perm.data(), dense.data.data(),
                      ordered.data.data()))
      return llvm::createStringError(nmsLastError());
    auto inOrder =
        EncodingAttr::get(type.getContext(), encoding.getLevels(),
                          /*dim=*/type.getRank() - 2, OutputOrder::Identity);
    if (llvm::Error error = packRagged(
            ordered, RankedTensorType::get(shape, type.getElementType()),
            inOrder, density, seed, packed))
      return error;
    packed.push_back(makePermArgument(components.back(), perm));
    if (nmsPutBack(&spec, perm.data(), ordered.data.data(), dense.data.data()))
      return llvm::createStringError(nmsLastError());
    return llvm::Error::success();
  }
  if (llvm::Error error = dropBlocks(dense, spec, double(density) / 100, seed))
    return error;
  int64_t size = nmsCountRagged(&spec, ragged.getRows(), dense.data.data());
  if (size < 0)
    return llvm::createStringError(nmsLastError());
  Argument values{HostArray(dense.kind, {size, encoding.getBlockN()})};
  Argument index{HostArray(NMS_I32, {size / encoding.getBlockK(), 1})};
  Argument panels{makeArray(components.back(), dense.kind)};
  auto words = [](Argument &argument) {
    return reinterpret_cast<uint32_t *>(argument.array.data.data());
  };
  if (nmsPackRagged(&spec, ragged.getRows(), dense.data.data(),
                    values.array.data.data(), words(index), words(panels)))
    return llvm::createStringError(nmsLastError());
  for (Argument *component : {&values, &index, &panels})
    packed.push_back(std::move(*component));
  return llvm::Error::success();
}

/// Prunes `dense` to a share of its elements, in percent, and appends their
/// bitmaps to `packed`.
static llvm::Error packFree(HostArray &dense, RankedTensorType type,
                            EncodingAttr encoding, int64_t density,
                            std::vector<Argument> &packed) {
  NmsPackSpec spec = getPackSpec(type, encoding);
  if (nmsPruneFree(&spec, double(density) / 100, dense.data.data(),
                   dense.data.data()))
    return llvm::createStringError(nmsLastError());
  int64_t size = nmsCountFreeBitmap(&spec, dense.data.data());
  if (size < 0)
    return llvm::createStringError(nmsLastError());
  Argument components[] = {
      {HostArray(dense.kind, {size})},
      {makeArray(encoding.getDefaultStorage().getComponents(type).back(),
                 dense.kind)}};
  if (nmsPackFreeBitmap(
          &spec, dense.data.data(), components[0].array.data.data(),
          reinterpret_cast<uint32_t *>(components[1].array.data.data())))
    return llvm::createStringError(nmsLastError());
  for (Argument &component : components)
    packed.push_back(std::move(component));
  return llvm::Error::success();
}

/// As below, with the outputs in a random order: what a search finds in random
/// numbers is worth no time.
static llvm::Error packShuffled(HostArray &dense, RankedTensorType type,
                                EncodingAttr encoding, uint64_t seed,
                                std::vector<Argument> &packed) {
  NmsPackSpec spec = getPackSpec(type, encoding);
  std::vector<uint32_t> perm = makePerm(spec, seed);
  if (nmsPruneShuffled(&spec, /*density=*/0, /*seed=*/0, perm.data(),
                       dense.data.data(), dense.data.data()))
    return llvm::createStringError(nmsLastError());
  size_t first = packed.size();
  for (const WeightComponent &component : encoding.getComponents(type))
    packed.push_back({makeArray(component, dense.kind)});
  SmallVector<void *> arrays;
  for (Argument &component : llvm::drop_begin(packed, first))
    arrays.push_back(component.array.data.data());
  llvm::copy(perm, static_cast<uint32_t *>(arrays.back()));
  if (nmsPackShuffled(&spec, /*isGiven=*/1, dense.data.data(), arrays.data(),
                      static_cast<uint32_t *>(arrays.back())))
    return llvm::createStringError(nmsLastError());
  return llvm::Error::success();
}

/// Prunes `dense` to the pattern, and appends its components to `packed`.
static llvm::Error packWeight(HostArray &dense, RankedTensorType type,
                              EncodingAttr encoding, int64_t density,
                              uint64_t seed, std::vector<Argument> &packed) {
  if (isa<RaggedAttr>(encoding.getDefaultStorage()))
    return packRagged(dense, type, encoding, density, seed, packed);
  if (encoding.isFree())
    return packFree(dense, type, encoding, density, packed);
  if (encoding.getOrder() == OutputOrder::Shuffled)
    return packShuffled(dense, type, encoding, seed, packed);
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

namespace {
class InputMaker {
public:
  InputMaker(func::FuncOp function, uint64_t seed, int64_t density)
      : function(function), seed(seed), density(density) {}
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
  HostArray dense(*getRuntimeKind(type.getElementType()), type.getShape());
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
  if (llvm::Error error = fillNormal(dense.array, 1, seed, position))
    return error;
  addToBoth(std::move(dense));
  return llvm::Error::success();
}

llvm::Expected<Inputs> nm_sparse::makeInputs(func::FuncOp function,
                                             const Extents &extents,
                                             uint64_t seed, int64_t density) {
  InputMaker maker(function, seed, density);
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
  bool isRagged = isa<RaggedAttr>(component.getPacked().getStorage());
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
