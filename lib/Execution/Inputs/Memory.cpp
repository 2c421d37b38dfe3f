//===- Memory.cpp - what a run needs and what there is --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random inputs of many gigabytes take long to make: what cannot work is
// refused before. Counted in double, which no extents overflow.
//
//===----------------------------------------------------------------------===//

#include "Inputs/Memory.h"

#include "nm_sparse/Runtime/Driver.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include <limits>
#include <sys/resource.h>
#include <unistd.h>

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {
/// Bytes of the arguments and results of a function.
struct Sizes {
  double dense = 0;   ///< The arguments, with dense weights.
  double packed = 0;  ///< The arguments as kernels take them.
  double results = 0; ///< As far as they are known.
  double wide = 0;    ///< Everything in the types of the reference.
};
} // namespace

static double getElementBytes(Type type) {
  return type.isIntOrFloat() ? llvm::divideCeil(type.getIntOrFloatBitWidth(), 8)
                             : sizeof(int64_t);
}

static double getElements(ArrayRef<int64_t> shape) {
  double elements = 1;
  for (int64_t extent : shape)
    elements *= ShapedType::isDynamic(extent) ? 0.0 : double(extent);
  return elements;
}

static Sizes getSizes(func::FuncOp entry, const Extents &extents) {
  Sizes sizes;
  auto measure = [&](RankedTensorType tensor, ArrayRef<int64_t> shape) {
    Type element = tensor.getElementType();
    double elements = getElements(shape), bytes = getElementBytes(element);
    sizes.wide += elements * (isa<FloatType>(element) ? sizeof(double) : bytes);
    return elements * bytes;
  };
  for (auto [type, shape] :
       llvm::zip_equal(entry.getArgumentTypes(), extents.arguments)) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor)
      continue;
    double bytes = measure(tensor, shape);
    // Types that do not pack are refused later. Free elements may all be kept.
    EncodingAttr encoding = getEncoding(tensor);
    sizes.dense += bytes;
    sizes.packed += encoding ? bytes * encoding.getDensity() : bytes;
  }
  for (auto [type, shape] :
       llvm::zip_equal(entry.getResultTypes(), extents.results))
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      sizes.results += measure(tensor, shape);
  return sizes;
}

/// The number in `path`, a file of a control group, or infinity.
static double readLimit(StringRef path) {
  double limit = std::numeric_limits<double>::infinity();
  auto file = llvm::MemoryBuffer::getFileAsStream(path);
  if (file && (*file)->getBuffer().trim().getAsDouble(limit))
    return std::numeric_limits<double>::infinity(); // Such as "max".
  return limit;
}

/// Bytes that this process can have at most.
static double getMachineMemory() {
  double bytes =
      double(sysconf(_SC_PHYS_PAGES)) * double(sysconf(_SC_PAGESIZE));
  rlimit limit{};
  if (!getrlimit(RLIMIT_AS, &limit) && limit.rlim_cur != RLIM_INFINITY)
    bytes = std::min(bytes, double(limit.rlim_cur));
  for (StringRef path : {"/sys/fs/cgroup/memory.max",
                         "/sys/fs/cgroup/memory/memory.limit_in_bytes"})
    bytes = std::min(bytes, readLimit(path));
  return bytes;
}

static llvm::Error check(func::FuncOp entry, double needed, double available,
                         StringRef owner) {
  if (needed <= available)
    return llvm::Error::success();
  return llvm::createStringError(
      llvm::formatv("the arguments and results of @{0} need {1:f1} GB, and {2} "
                    "has {3:f1} GB: choose a smaller --size or smaller types",
                    entry.getSymName(), needed * 1e-9, owner, available * 1e-9)
          .str());
}

llvm::Error nm_sparse::checkMemory(func::FuncOp entry, const Extents &extents,
                                   Device device, bool checks) {
  Sizes sizes = getSizes(entry, extents);
  double onDevice = sizes.packed + sizes.results;
  if (NmsDeviceInfo info; device == Device::CUDA && !nmsDeviceInfo(&info))
    if (llvm::Error error =
            check(entry, onDevice, double(info.memoryBytes), "the GPU"))
      return error;
  // The compiled function works on a copy of its arguments.
  double needed = sizes.dense + 2 * sizes.packed + sizes.results;
  // The emulator keeps a byte for each of its memory's.
  if (device == Device::Emulate)
    needed += 2 * onDevice;
  if (checks)
    needed = std::max(needed, sizes.packed + sizes.results + sizes.wide);
  return check(entry, needed, getMachineMemory(), "this machine");
}
