//===- PackedInputs.cpp - random weights that have a pattern --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Inputs/PackedInputs.h"
#include "Inputs/Permutations.h"

#include "nm_sparse/Base/Random.h"
#include "nm_sparse/Dialect/NMSparse/Utils/Packing.h"
#include "nm_sparse/Runtime/Error.h"
#include "nm_sparse/Runtime/Packing.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>
#include <cstring>
#include <numeric>

using namespace mlir;
using namespace mlir::nm_sparse;

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
    llvm::sort(order, [&](int64_t a, int64_t b) {
      return numbers[a] != numbers[b] ? numbers[a] < numbers[b] : a < b;
    });
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
  // Whatever the order, the weight is stored as the shuffled one is: elements
  // in the order of their outputs would be bitmaps by themselves.
  auto ragged = RaggedAttr::get(type.getContext(), encoding);
  SmallVector<WeightComponent> components = ragged.getComponents(type);
  if (encoding.getOrder() == OutputOrder::Shuffled) {
    std::vector<uint32_t> perm =
        drawPermutations(spec.batch, spec.outputs, seed);
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
  Argument index{HostArray(NMS_I32, {size / ragged.getBlockRows(), 1})};
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

/// Appends the canonical components of a weight to `packed`; where they are.
static SmallVector<void *> addComponents(RankedTensorType type,
                                         EncodingAttr encoding, int32_t kind,
                                         std::vector<Argument> &packed) {
  size_t first = packed.size();
  for (const WeightComponent &component : encoding.getComponents(type))
    packed.push_back({makeArray(component, kind)});
  SmallVector<void *> arrays;
  for (Argument &component : llvm::drop_begin(packed, first))
    arrays.push_back(component.array.data.data());
  return arrays;
}

/// As below, with the outputs in a random order: what a search finds in random
/// numbers is worth no time.
static llvm::Error packShuffled(HostArray &dense, RankedTensorType type,
                                EncodingAttr encoding, uint64_t seed,
                                std::vector<Argument> &packed) {
  NmsPackSpec spec = getPackSpec(type, encoding);
  std::vector<uint32_t> perm = drawPermutations(spec.batch, spec.outputs, seed);
  if (nmsPruneShuffled(&spec, /*density=*/0, /*seed=*/0, perm.data(),
                       dense.data.data(), dense.data.data()))
    return llvm::createStringError(nmsLastError());
  SmallVector<void *> arrays =
      addComponents(type, encoding, dense.kind, packed);
  llvm::copy(perm, static_cast<uint32_t *>(arrays.back()));
  if (nmsPackShuffled(&spec, /*isGiven=*/1, dense.data.data(), arrays.data(),
                      static_cast<uint32_t *>(arrays.back())))
    return llvm::createStringError(nmsLastError());
  return llvm::Error::success();
}

llvm::Error nm_sparse::packWeight(HostArray &dense, RankedTensorType type,
                                  EncodingAttr encoding, int64_t density,
                                  uint64_t seed,
                                  std::vector<Argument> &packed) {
  if (encoding.getDefaultStorage().getListedPanels())
    return packRagged(dense, type, encoding, density, seed, packed);
  if (encoding.isFree())
    return packFree(dense, type, encoding, density, packed);
  if (encoding.getOrder() == OutputOrder::Shuffled)
    return packShuffled(dense, type, encoding, seed, packed);
  NmsPackSpec spec = getPackSpec(type, encoding);
  if (nmsPrune(&spec, dense.data.data(), dense.data.data()))
    return llvm::createStringError(nmsLastError());
  SmallVector<void *> arrays =
      addComponents(type, encoding, dense.kind, packed);
  if (nmsPack(&spec, dense.data.data(), arrays.data()))
    return llvm::createStringError(nmsLastError());
  return llvm::Error::success();
}
