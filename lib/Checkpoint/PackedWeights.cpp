//===- PackedWeights.cpp - files of packed weights ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A file is as docs/Encoding.md says, sections 5 and 6. What a checkpoint says
// of sizes and types was checked when that was opened.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Base/Error.h"
#include "nm_sparse/Checkpoint/LinearLayers.h"
#include "nm_sparse/Dialect/NMSparse/Utils/Packing.h"
#include "nm_sparse/Support/QuoteName.h"
#include "llvm/Support/Alignment.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace mlir::nm_sparse;

using Bytes = std::vector<char>;

/// The metadata of section 5.
static std::string describe(const LinearLayer &layer) {
  PackedAttr packed = layer.packed;
  EncodingAttr encoding = packed.getEncoding();
  auto describe = [](const SparsityLevel &level) {
    return llvm::json::Object{
        {"n", level.n},
        {"m", level.m},
        {"block", llvm::json::Array{level.blockK, level.blockN}}};
  };
  llvm::json::Object keys = describe(encoding.getOuter());
  keys["format"] = "nm_sparse";
  keys["version"] = packed.getLayoutVersion();
  keys["dim"] = encoding.getDim();
  keys["order"] = "identity";
  keys["shape"] = llvm::json::Array(packed.getShape());
  keys["dtype"] = layer.weight->type->element;
  if (encoding.hasInnerLevel())
    keys["inner"] = describe(encoding.getInnermost());
  return llvm::formatv("{0}", llvm::json::Value(std::move(keys)));
}

/// The description of a component in a file.
static TensorSpec describe(const LinearLayer &layer,
                           const WeightComponent &component) {
  const StoredType *type =
      component.role == ComponentRole::Values
          ? layer.weight->type
          : findStoredType(
                "U" + std::to_string(component.type.getElementTypeBitWidth()));
  return {(layer.weight->name + "." + component.name).str(), type,
          llvm::to_vector(component.type.getShape())};
}

static std::vector<Bytes> allocate(ArrayRef<WeightComponent> components) {
  std::vector<Bytes> arrays;
  for (const WeightComponent &component : components)
    arrays.emplace_back(component.type.getNumElements() *
                        component.type.getElementTypeBitWidth() / 8);
  return arrays;
}

/// The components of `layer.packed`, in their order.
static llvm::Expected<std::vector<Bytes>> pack(const LinearLayer &layer,
                                               WeightData data) {
  PackedAttr packed = layer.packed;
  // A tensor may start anywhere in its file; the runtime reads whole elements.
  if (!llvm::isAddrAligned(llvm::Align(layer.weight->type->bits / 8),
                           data.bytes.data())) {
    data.storage.assign(data.bytes.begin(), data.bytes.end());
    data.bytes = data.storage;
  }
  auto fail = [&] {
    return llvm::createStringError(quoteName(layer.weight->name) + ": " +
                                   nmsLastError());
  };
  RankedTensorType type = packed.getWeightType();
  EncodingAttr encoding = packed.getEncoding();
  NmsPackSpec spec = getPackSpec(type, encoding);
  std::vector<Bytes> canonical = allocate(encoding.getComponents(type));
  SmallVector<void *> pointers;
  for (Bytes &array : canonical)
    pointers.push_back(array.data());
  if (nmsPack(&spec, data.bytes.data(), pointers.data()))
    return fail();
  if (packed.getStorage().isKMajor()) {
    // The data obeys its pattern, as it could be packed.
    auto parts = packed.getStorage().pack(
        type, ArrayRef(data.bytes.data(), data.bytes.size()),
        [] { return InFlightDiagnostic(); });
    std::vector<Bytes> arrays;
    for (const PackedComponent &part : *parts)
      arrays.emplace_back(part.data.begin(), part.data.end());
    return arrays;
  }
  if (!packed.getStorage().getStoredTile(type.getElementType()))
    return canonical;
  std::vector<Bytes> bitmaps = allocate(packed.getComponents());
  if (nmsInnermostSpec(&spec, &spec) ||
      nmsPackBitmap(&spec, canonical.front().data(), canonical.back().data(),
                    bitmaps.front().data(),
                    reinterpret_cast<uint32_t *>(bitmaps.back().data())))
    return fail();
  // With two levels, the index of the outer one belongs to both forms.
  if (encoding.hasInnerLevel())
    bitmaps[NMS_INDEX] = canonical[NMS_INDEX];
  return bitmaps;
}

llvm::Error nm_sparse::writePackedWeights(const Checkpoint &checkpoint,
                                          ArrayRef<LinearLayer> layers,
                                          llvm::raw_fd_ostream &file) {
  std::vector<TensorSpec> specs;
  llvm::StringMap<std::string> metadata;
  for (const LinearLayer &layer : layers) {
    for (const WeightComponent &component : layer.packed.getComponents())
      specs.push_back(describe(layer, component));
    metadata[layer.weight->name + ".nm_sparse"] = describe(layer);
    metadata[layer.weight->name + ".function"] = layer.function;
  }
  TensorFileHeader header = makeTensorFileHeader(specs, metadata);
  file << header.bytes;
  size_t number = 0;
  for (const LinearLayer &layer : layers) {
    auto data = checkpoint.read(*layer.weight);
    if (!data)
      return data.takeError();
    auto components = pack(layer, std::move(*data));
    if (!components)
      return components.takeError();
    for (const Bytes &bytes : *components) {
      file.seek(header.offsets[number++]);
      file.write(bytes.data(), bytes.size());
    }
  }
  return llvm::Error::success();
}
