//===- TensorBox.cpp - what one tensor copy moves -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ops/Memory/TensorBox.h"
#include "Ops/Scalar/Float.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>
#include <limits>

using namespace mlir;
using namespace mlir::nm_sparse;
using namespace mlir::nm_sparse::emulator;

TensorMap emulator::readTensorMap(Thread &thread, uint64_t address) {
  TensorMap map;
  std::memcpy(&map,
              thread.access(address, AddressSpace::Generic, sizeof(map),
                            /*alignment=*/64, AccessKind::Read),
              sizeof(map));
  if (map.magic != TensorMap::expectedMagic)
    thread.fault(llvm::formatv("there is no tensor map at {0:x}: encode one "
                               "with cuTensorMapEncodeTiled or "
                               "cuTensorMapEncodeIm2col, or make one out of "
                               "zeros with tensormap.replace",
                               address));
  if (std::string wrong = checkTensorMap(map); !wrong.empty())
    thread.fault(
        llvm::formatv("the tensor map at {0:x} is wrong: {1}", address, wrong));
  if (map.interleave != TensorMapInterleave::None)
    thread.fault(llvm::formatv("the tensor map at {0:x} interleaves slices of "
                               "16 or 32 bytes, which is not emulated",
                               address));
  return map;
}

/// How many bytes swizzling permutes; without it one chunk.
static uint32_t getSwizzleBytes(const TensorMap &map) {
  return TensorBox::chunkBytes << static_cast<unsigned>(map.swizzle);
}

TensorBox::TensorBox(Thread &thread, uint64_t mapAddress,
                     ArrayRef<int32_t> coordinates, ArrayRef<uint16_t> offsets)
    : map(readTensorMap(thread, mapAddress)) {
  thread.cta.tensorMaps.checkUse(thread, mapAddress);
  if (map.rank != coordinates.size())
    thread.fault(llvm::formatv("has {0} coordinates for a tensor map of rank "
                               "{1}",
                               coordinates.size(), map.rank));
  bool wantsIm2col = !offsets.empty();
  if (wantsIm2col != (map.mode == TensorMapMode::Im2col))
    thread.fault(llvm::formatv(
        "is in mode {0}, but the tensor map at {1:x} was encoded by {2}",
        wantsIm2col ? "im2col" : "tile", mapAddress,
        wantsIm2col ? "cuTensorMapEncodeTiled" : "cuTensorMapEncodeIm2col"));
  llvm::copy(coordinates, start);
  if (wantsIm2col)
    startIm2col(thread, offsets);
  else
    startTile();
  // Without interleaving the innermost dimension has no stride.
  rowBytes = map.box[0] * map.elementBytes;
  pitch = map.swizzle == TensorMapSwizzle::None
              ? rowBytes
              : std::max(rowBytes, getSwizzleBytes(map));
}

void TensorBox::startTile() {
  numRows = 1;
  for (unsigned i = 1; i < map.rank; ++i) {
    uint32_t extent = llvm::divideCeil(map.box[i], map.elementStrides[i]);
    numRows *= extent;
    first[i] = start[i];
    last[i] = start[i] + int64_t(extent - 1) * map.elementStrides[i];
  }
}

void TensorBox::startIm2col(Thread &thread, ArrayRef<uint16_t> offsets) {
  if (offsets.size() != map.getSpatialRank())
    thread.fault(
        llvm::formatv("has {0} im2col offsets for a tensor map of rank "
                      "{1}, which takes {2}",
                      offsets.size(), map.rank, map.getSpatialRank()));
  numRows = map.box[1];
  for (unsigned i = 0; i < offsets.size(); ++i) {
    unsigned dim = i + 1, stride = map.elementStrides[dim];
    first[dim] = map.lower[i];
    last[dim] = map.getLastPixel(i);
    offset[dim] = offsets[i];
    if (offsets[i] >> map.getPixelBits())
      thread.fault(llvm::formatv("its im2col offset {0} is {1}, but a tensor "
                                 "map of rank {2} takes 0 to {3}",
                                 i, offsets[i], map.rank,
                                 (1 << map.getPixelBits()) - 1));
    // PTX does not say where such a copy would go on.
    if (start[dim] < first[dim] || start[dim] > last[dim] ||
        (start[dim] - first[dim]) % stride != 0)
      thread.fault(llvm::formatv("its coordinate {0} is {1}, which is no pixel "
                                 "that the tensor map goes over: {2} to {3} in "
                                 "steps of {4}",
                                 dim, start[dim], first[dim], last[dim],
                                 stride));
  }
  last[map.rank - 1] = std::numeric_limits<int64_t>::max();
}

void TensorBox::forEachRow(llvm::function_ref<void(const Row &)> body) const {
  int64_t begin = std::max<int64_t>(start[0], 0);
  int64_t end = std::min<int64_t>(start[0] + map.box[0], map.sizes[0]);
  int64_t place[TensorMap::maxRank];
  llvm::copy(start, place);
  for (uint32_t index = 0; index < numRows; ++index) {
    Row row = {index, map.base + begin * map.elementBytes, 0, 0};
    bool isInside = begin < end;
    for (unsigned i = 1; i < map.rank; ++i) {
      int64_t at = place[i] + offset[i];
      isInside &= at >= 0 && at < static_cast<int64_t>(map.sizes[i]);
      row.address += at * map.strideBytes[i - 1];
    }
    if (isInside) {
      row.before = (begin - start[0]) * map.elementBytes;
      row.bytes = (end - begin) * map.elementBytes;
    }
    body(row);
    for (unsigned i = 1; i < map.rank; ++i) {
      place[i] += map.elementStrides[i];
      if (place[i] <= last[i])
        break;
      place[i] = first[i];
    }
  }
}

void TensorBox::fill(char *where, uint32_t count) const {
  std::memset(where, 0, count);
  if (map.fill == TensorMapFill::Zero)
    return;
  // The same for all types of floats.
  constexpr uint16_t pattern = 0x7ff7;
  for (uint32_t i = 0; i + sizeof(pattern) <= count; i += sizeof(pattern))
    std::memcpy(where + i, &pattern, sizeof(pattern));
}

void TensorBox::convert(char *data, uint32_t count) const {
  if (map.type != TensorMapType::TFloat32 &&
      map.type != TensorMapType::TFloat32FlushToZero)
    return;
  constexpr uint32_t dropped = (1 << 13) - 1;
  for (uint32_t i = 0; i + sizeof(float) <= count; i += sizeof(float)) {
    float value;
    std::memcpy(&value, data + i, sizeof(value));
    uint32_t bits =
        convertToTF32(value, llvm::RoundingMode::NearestTiesToEven) & ~dropped;
    std::memcpy(data + i, &bits, sizeof(bits));
  }
}

uint64_t TensorBox::locate(uint64_t base, uint32_t row, uint32_t offset) const {
  uint64_t address = base + uint64_t(row) * pitch + offset;
  // Within each 128 bytes chunks change places by the number of the 128 bytes.
  uint64_t chunks = (uint64_t(1) << static_cast<unsigned>(map.swizzle)) - 1;
  return address ^ (((address >> 7) & chunks) << 4);
}

bool TensorBox::isRange(uint64_t base) const {
  return rowBytes == pitch && base % getSwizzleBytes(map) == 0 &&
         getBytes() % getSwizzleBytes(map) == 0;
}

void TensorBox::checkStart(Thread &thread) const {
  for (unsigned i = 0; i < map.rank; ++i)
    if (start[i] < 0)
      thread.fault(llvm::formatv("its coordinate {0} is {1}: the hardware "
                                 "writes no box that begins before the tensor",
                                 i, start[i]));
}

void TensorBox::checkAddress(Thread &thread, uint64_t address) {
  constexpr uint32_t alignment = 128;
  if (address % alignment != 0)
    thread.fault(llvm::formatv("misaligned shared memory of a tensor copy at "
                               "{0:x}, which must be a multiple of {1}",
                               address & ((1u << sharedRankShift) - 1),
                               alignment));
}
