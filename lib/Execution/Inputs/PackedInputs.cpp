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
#include "nm_sparse/Support/ErrorCollector.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>
#include <cstring>
#include <numeric>

using namespace mlir;
using namespace mlir::nm_sparse;

HostArray nm_sparse::makeArray(ComponentRole role, int32_t valuesKind,
                               const PackedComponent &component) {
  HostArray array;
  array.elementBytes = component.type.getElementTypeBitWidth() / 8;
  array.kind = role == ComponentRole::Values ? valuesKind
               : array.elementBytes == 1     ? NMS_I8
                                             : NMS_I32;
  array.shape.assign(component.type.getShape().begin(),
                     component.type.getShape().end());
  array.data.assign(component.data.begin(), component.data.end());
  return array;
}

/// Appends the components of `dense` to `packed`.
static llvm::Error appendComponents(const HostArray &dense,
                                    RankedTensorType type,
                                    WeightStorageInterface form,
                                    std::vector<Argument> &packed) {
  MLIRContext *context = type.getContext();
  ErrorCollector errors(context);
  FailureOr<SmallVector<PackedComponent>> components = form.pack(
      type, dense.data, [&] { return emitError(UnknownLoc::get(context)); });
  if (failed(components))
    return llvm::createStringError(errors.getFirst());
  for (auto [own, data] :
       llvm::zip_equal(form.getComponents(type), *components))
    packed.push_back({makeArray(own.role, dense.kind, data)});
  return llvm::Error::success();
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
  PackedComponent data{component.type, {}};
  data.data.resize(perm.size() * sizeof(uint32_t));
  std::memcpy(data.data.data(), perm.data(), data.data.size());
  return {makeArray(component.role, NMS_I32, data)};
}

/// Drops blocks of `dense`, and appends its panels, which list their rows, to
/// `packed`.
static llvm::Error packPanels(HostArray &dense, RankedTensorType type,
                              WeightStorageInterface form, int64_t density,
                              uint64_t seed, std::vector<Argument> &packed) {
  auto encoding = cast<EncodingAttr>(form.getPattern());
  NmsPackSpec spec = getPackSpec(type, encoding);
  if (encoding.getOrder() == OutputOrder::Identity) {
    if (llvm::Error error =
            dropBlocks(dense, spec, double(density) / 100, seed))
      return error;
    return appendComponents(dense, type, form, packed);
  }
  std::vector<uint32_t> perm = drawPermutations(spec.batch, spec.outputs, seed);
  SmallVector<int64_t> shape = {spec.k, spec.outputs};
  if (type.getRank() == 3)
    shape.insert(shape.begin(), spec.batch);
  HostArray ordered(dense.kind, shape);
  if (nmsPutInOrder(&spec, perm.data(), dense.data.data(), ordered.data.data()))
    return llvm::createStringError(nmsLastError());
  // Elements in the order of their outputs are in this form as well.
  Attribute inOrder = form.withPattern(
      EncodingAttr::get(type.getContext(), encoding.getLevels(),
                        /*dim=*/type.getRank() - 2, OutputOrder::Identity));
  if (llvm::Error error = packPanels(
          ordered, RankedTensorType::get(shape, type.getElementType()),
          cast<WeightStorageInterface>(inOrder), density, seed, packed))
    return error;
  packed.push_back(makePermArgument(form.getComponents(type).back(), perm));
  if (nmsPutBack(&spec, perm.data(), ordered.data.data(), dense.data.data()))
    return llvm::createStringError(nmsLastError());
  return llvm::Error::success();
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
  SmallVector<WeightComponent> components = encoding.getComponents(type);
  SmallVector<PackedComponent> data = allocateComponents(components);
  SmallVector<void *> arrays = llvm::map_to_vector(
      data, [](PackedComponent &of) -> void * { return of.data.data(); });
  llvm::copy(perm, static_cast<uint32_t *>(arrays.back()));
  if (nmsPackShuffled(&spec, /*isGiven=*/1, dense.data.data(), arrays.data(),
                      static_cast<uint32_t *>(arrays.back())))
    return llvm::createStringError(nmsLastError());
  for (auto [own, component] : llvm::zip_equal(components, data))
    packed.push_back({makeArray(own.role, dense.kind, component)});
  return llvm::Error::success();
}

llvm::Error nm_sparse::packWeight(HostArray &dense, RankedTensorType type,
                                  EncodingAttr encoding, int64_t density,
                                  uint64_t seed,
                                  std::vector<Argument> &packed) {
  WeightStorageInterface form = encoding.getDefaultStorage();
  if (form.getListedPanels())
    return packPanels(dense, type, form, density, seed, packed);
  if (encoding.getOrder() == OutputOrder::Shuffled)
    return packShuffled(dense, type, encoding, seed, packed);
  NmsPackSpec spec = getPackSpec(type, encoding);
  if (encoding.isFree() ? nmsPruneFree(&spec, double(density) / 100,
                                       dense.data.data(), dense.data.data())
                        : nmsPrune(&spec, dense.data.data(), dense.data.data()))
    return llvm::createStringError(nmsLastError());
  return appendComponents(dense, type, form, packed);
}
