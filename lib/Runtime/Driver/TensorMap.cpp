//===- TensorMap.cpp - Tensor maps for bulk tensor copies -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The driver rejects a bad tensor map with CUDA_ERROR_INVALID_VALUE and no
// more, so the rules are checked here first.
//
//===----------------------------------------------------------------------===//

#include "TensorMap.h"

#include "../Support/Memref.h"
#include "Context.h"
#include "RelaxedCapture.h"
#include "nm_sparse/Runtime/MGPU.h"

#include <cstring>
#include <map>
#include <mutex>
#include <string>

using namespace nms;

namespace {

/// Bytes of an element of a CUtensorMapDataType, 0 for an unknown one.
int64_t dataTypeBytes(int64_t dataType) {
  static constexpr int64_t bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
  return dataType >= 0 && dataType < 13 ? bytes[dataType] : 0;
}

/// Innermost first, as CUDA counts.
struct Encoding {
  uint64_t sizes[5];
  uint64_t strideBytes[5]; // of all dimensions but the innermost
  uint32_t box[5];         // im2col: channels and pixels
  uint32_t elementStrides[5];
  int lower[kIm2colPixelRank], upper[kIm2colPixelRank]; // im2col alone
  void *base;
};

bool describeTensor(const char *entry, const MemrefView &view,
                    int64_t elementBytes, int64_t interleave, Encoding &out) {
  out.base = static_cast<char *>(view.aligned) + view.offset * elementBytes;
  int64_t alignment = interleave == 2 ? 32 : 16;
  if (reinterpret_cast<uintptr_t>(out.base) % alignment != 0)
    return !fail("%s: the memref starts at %p, which is no multiple of %lld "
                 "bytes: change its offset",
                 entry, out.base, static_cast<long long>(alignment));
  for (int64_t i = 0; i < view.rank; ++i) {
    int64_t dim = view.rank - 1 - i;
    int64_t size = view.sizes[dim], stride = view.strides[dim];
    if (size < 1 || size > (int64_t(1) << 32))
      return !fail("%s: dimension %lld has size %lld, must be 1 to 2^32", entry,
                   static_cast<long long>(dim), static_cast<long long>(size));
    out.sizes[i] = static_cast<uint64_t>(size);
    out.elementStrides[i] = 1;
    if (i == 0) {
      if (stride != 1 && size != 1)
        return !fail("%s: the innermost stride is %lld elements, must be 1: "
                     "copy or transpose the memref first",
                     entry, static_cast<long long>(stride));
      continue;
    }
    int64_t bytes = stride * elementBytes;
    if (bytes < 0 || bytes % alignment != 0 || bytes >= (int64_t(1) << 40))
      return !fail("%s: the stride of dimension %lld is %lld bytes, must be a "
                   "multiple of %lld below 2^40: pad the rows",
                   entry, static_cast<long long>(dim),
                   static_cast<long long>(bytes),
                   static_cast<long long>(alignment));
    out.strideBytes[i - 1] = static_cast<uint64_t>(bytes);
  }
  return true;
}

bool checkBoxRow(const char *entry, int64_t box, int64_t elementBytes,
                 int64_t interleave) {
  return interleave != 0 || box * elementBytes % 16 == 0 ||
         !fail("%s: the innermost box dimension is %lld elements of %lld "
               "bytes, must be a multiple of 16 bytes",
               entry, static_cast<long long>(box),
               static_cast<long long>(elementBytes));
}

bool describeBox(const char *entry, int64_t rank, int64_t elementBytes,
                 const TensorMapFormat &format, Encoding &out) {
  for (int64_t i = 0; i < rank; ++i) {
    int64_t dim = rank - 1 - i, box = format.boxDims[dim];
    if (box < 1 || box > 256)
      return !fail("%s: box dimension %lld is %lld, must be 1 to 256: use a "
                   "smaller tile or several copies",
                   entry, static_cast<long long>(dim),
                   static_cast<long long>(box));
    out.box[i] = static_cast<uint32_t>(box);
  }
  return checkBoxRow(entry, out.box[0], elementBytes, format.interleave);
}

/// The pixels and channels of a copy, and which pixels it goes over.
bool describePixels(const char *entry, int64_t rank, int64_t elementBytes,
                    const TensorMapFormat &format, Encoding &out) {
  if (rank != static_cast<int64_t>(kIm2colRank))
    return !fail("%s: a tensor map in mode im2col is of rank %lld, must be 4: "
                 "images of (h, w, channels)",
                 entry, static_cast<long long>(rank));
  auto check = [&](const char *what, int64_t number, Im2colRange legal) {
    return legal.contains(number) ||
           !fail("%s: the %s of a tensor map in mode im2col is %lld, must be "
                 "%lld to %lld",
                 entry, what, static_cast<long long>(number),
                 static_cast<long long>(legal.least),
                 static_cast<long long>(legal.most));
  };
  int64_t pixels = format.boxDims[0], channels = format.boxDims[1];
  if (!check("number of pixels", pixels, kIm2colCopiedPixels) ||
      !check("number of channels", channels, kIm2colCopiedChannels) ||
      !checkBoxRow(entry, channels, elementBytes, format.interleave))
    return false;
  out.box[0] = static_cast<uint32_t>(channels);
  out.box[1] = static_cast<uint32_t>(pixels);
  for (size_t i = 0; i < kIm2colPixelRank; ++i) {
    size_t dim = kIm2colPixelRank - 1 - i;
    int64_t lower = format.im2col->lower[dim],
            upper = format.im2col->upper[dim],
            stride = format.im2col->strides[dim];
    if (!check("lower corner", lower, kIm2colCorners) ||
        !check("upper corner", upper, kIm2colCorners) ||
        !check("stride", stride, kIm2colStrides))
      return false;
    auto last = static_cast<int64_t>(out.sizes[i + 1]) - 1 + upper;
    if (last < lower)
      return !fail("%s: dimension %zu has no pixel from %lld to %lld: its size "
                   "is smaller than the window",
                   entry, dim + 1, static_cast<long long>(lower),
                   static_cast<long long>(last));
    out.lower[i] = static_cast<int>(lower);
    out.upper[i] = static_cast<int>(upper);
    out.elementStrides[i + 1] = static_cast<uint32_t>(stride);
  }
  return true;
}

cuda::Result encode(const Context &cu, int64_t rank, const Encoding &encoding,
                    const TensorMapFormat &format, cuda::TensorMap &map) {
  auto dataType = static_cast<int>(format.dataType);
  auto interleave = static_cast<int>(format.interleave);
  auto swizzle = static_cast<int>(format.swizzle);
  auto promotion = static_cast<int>(format.l2Promotion);
  auto fill = static_cast<int>(format.oobFill);
  auto dims = static_cast<uint32_t>(rank);
  if (format.im2col)
    return cu->tensorMapEncodeIm2col(
        &map, dataType, dims, encoding.base, encoding.sizes,
        encoding.strideBytes, encoding.lower, encoding.upper, encoding.box[0],
        encoding.box[1], encoding.elementStrides, interleave, swizzle,
        promotion, fill);
  return cu->tensorMapEncodeTiled(&map, dataType, dims, encoding.base,
                                  encoding.sizes, encoding.strideBytes,
                                  encoding.box, encoding.elementStrides,
                                  interleave, swizzle, promotion, fill);
}

/// Device memory for the maps of one device, taken in blocks: memory is
/// allocated while a CUDA graph is captured, too, which is the slow path.
struct MapBlocks {
  static constexpr size_t kBlockBytes = size_t(64) << 10;
  cuda::DevicePtr next = 0;
  size_t left = 0;
  cuda::Stream stream = nullptr;

  bool copy(const Context &cu, const cuda::TensorMap &map);
};

/// Copies `map` to `next`. A copy without a stream would wait for the legacy
/// default stream, often that of the caller's kernels, and might return before
/// the map is there, which a kernel on another stream would read too early.
bool MapBlocks::copy(const Context &cu, const cuda::TensorMap &map) {
  const char *what = "copying a tensor map to the device";
  if (!stream &&
      !cu.check(cu->streamCreate(&stream, cuda::streamNonBlocking), "%s", what))
    return false;
  auto from = reinterpret_cast<cuda::DevicePtr>(&map);
  return cu.check(cu->memcpyAsync(next, from, sizeof(map), stream), "%s",
                  what) &&
         cu.check(cu->streamSynchronize(stream), "%s", what);
}

/// A device copy that equal maps share; it is never freed, since kernels may
/// hold on to it.
void *deviceCopy(const Context &cu, const cuda::TensorMap &map) {
  static std::mutex *mutex = new std::mutex;
  static auto *copies =
      new std::map<std::pair<int, std::string>, cuda::DevicePtr>;
  static auto *memory = new std::map<int, MapBlocks>;
  std::lock_guard<std::mutex> lock(*mutex);
  std::string bytes(reinterpret_cast<const char *>(&map), sizeof(map));
  cuda::DevicePtr &copy = (*copies)[{cu.info().ordinal, bytes}];
  if (copy)
    return reinterpret_cast<void *>(copy);
  RelaxedCapture relaxed(cu);
  MapBlocks &block = (*memory)[cu.info().ordinal];
  if (block.left < sizeof(map)) {
    if (!cu.check(cu->memAlloc(&block.next, MapBlocks::kBlockBytes),
                  "allocating %zu bytes for tensor maps",
                  MapBlocks::kBlockBytes))
      return nullptr;
    block.left = MapBlocks::kBlockBytes;
  }
  if (!block.copy(cu, map))
    return nullptr;
  copy = block.next;
  block.next += sizeof(map);
  block.left -= sizeof(map);
  return reinterpret_cast<void *>(copy);
}

/// The same in host memory.
void *hostCopy(const cuda::TensorMap &map) {
  static std::mutex *mutex = new std::mutex;
  static auto *copies = new std::map<std::string, cuda::TensorMap *>;
  std::lock_guard<std::mutex> lock(*mutex);
  std::string bytes(reinterpret_cast<const char *>(&map), sizeof(map));
  cuda::TensorMap *&copy = (*copies)[bytes];
  if (!copy)
    copy = new cuda::TensorMap(map);
  return copy;
}

} // namespace

void *nms::encodeTensorMap(const char *entry, int64_t rank,
                           const void *descriptor,
                           const TensorMapFormat &format, MapMemory memory) {
  int64_t elementBytes = dataTypeBytes(format.dataType);
  Encoding encoding = {};
  if (rank < 1 || rank > 5) {
    fail("%s: rank %lld is not legal, must be 1 to 5", entry,
         static_cast<long long>(rank));
    return nullptr;
  }
  if (elementBytes == 0) {
    fail("%s: data type %lld is no CUtensorMapDataType, must be 0 to 12", entry,
         static_cast<long long>(format.dataType));
    return nullptr;
  }
  if (!descriptor || !format.boxDims) {
    fail("%s: the descriptor or the box dimensions are null", entry);
    return nullptr;
  }
  Context cu;
  auto describeCopy = format.im2col ? describePixels : describeBox;
  if (!cu ||
      !describeTensor(entry, MemrefView(rank, descriptor), elementBytes,
                      format.interleave, encoding) ||
      !describeCopy(entry, rank, elementBytes, format, encoding))
    return nullptr;
  if (format.im2col ? !cu->tensorMapEncodeIm2col : !cu->tensorMapEncodeTiled) {
    fail("%s: this driver cannot encode tensor maps: install a driver for CUDA "
         "12.0 or newer",
         entry);
    return nullptr;
  }
  cuda::TensorMap map = {};
  if (!cu.check(
          encode(cu, rank, encoding, format, map),
          "encoding a tensor map of rank %lld (innermost box %u x %lld bytes, "
          "swizzle mode %lld)",
          static_cast<long long>(rank), encoding.box[0],
          static_cast<long long>(elementBytes),
          static_cast<long long>(format.swizzle)))
    return nullptr;
  return memory == MapMemory::Host ? hostCopy(map) : deviceCopy(cu, map);
}

/// As encodeTensorMap, for host code.
static void *encodeOrRaise(const char *entry, int64_t rank,
                           const void *descriptor,
                           const TensorMapFormat &format) {
  // Nothing is launched on an empty memref, so no map is needed.
  if (rank > 0 && descriptor && MemrefView(rank, descriptor).elements() == 0)
    return nullptr;
  void *map = encodeTensorMap(entry, rank, descriptor, format);
  if (!map)
    raise();
  return map;
}

extern "C" void *
mgpuTensorMapEncodeTiledMemref(int64_t rank, void *descriptor, int64_t dataType,
                               int64_t interleave, int64_t swizzle,
                               int64_t l2Promotion, int64_t oobFill,
                               const int64_t *boxDims) {
  return encodeOrRaise("mgpuTensorMapEncodeTiledMemref", rank, descriptor,
                       {dataType, interleave, swizzle, l2Promotion, oobFill,
                        boxDims, std::nullopt});
}

extern "C" void *mgpuTensorMapEncodeIm2colMemref(
    int64_t rank, void *descriptor, int64_t dataType, int64_t interleave,
    int64_t swizzle, int64_t l2Promotion, int64_t oobFill,
    const int64_t *boxDims, const int64_t *lower, const int64_t *upper,
    const int64_t *strides) {
  Im2colPixels pixels = {
      {lower[0], lower[1]}, {upper[0], upper[1]}, {strides[0], strides[1]}};
  return encodeOrRaise(
      "mgpuTensorMapEncodeIm2colMemref", rank, descriptor,
      {dataType, interleave, swizzle, l2Promotion, oobFill, boxDims, pixels});
}
