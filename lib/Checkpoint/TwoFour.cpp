//===- TwoFour.cpp - 2:4 along the inputs of a linear layer ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Checkpoint/TwoFour.h"
#include "nm_sparse/Support/QuoteName.h"

#include "llvm/ADT/bit.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>

using namespace mlir;
using namespace mlir::nm_sparse;

static constexpr int64_t kWindow = 4, kKept = 2;

std::string TwoFourPattern::describe() const {
  if (isTwoFour())
    return "2:4";
  if (!isNearlyTwoFour())
    return "dense";
  return llvm::formatv("nearly 2:4, but for {0} of {1} windows; the first is "
                       "window {2} of output {3}",
                       violations, windows, firstWindow, firstOutput);
}

/// The same for elements that are as wide as `Bits`; `sign` is 0 where there is
/// no negative zero.
template <typename Bits>
static void check(const char *data, int64_t outputs, int64_t inputs, Bits sign,
                  TwoFourPattern &pattern) {
  const Bits digits = static_cast<Bits>(~sign);
  for (int64_t output = 0; output < outputs; ++output) {
    for (int64_t first = 0; first < inputs; first += kWindow) {
      int64_t live = 0, last = std::min(first + kWindow, inputs);
      for (int64_t input = first; input < last; ++input) {
        Bits bits;
        std::memcpy(&bits, data + (output * inputs + input) * sizeof(Bits),
                    sizeof(Bits));
        live += (bits & digits) != 0;
      }
      if (live <= kKept)
        continue;
      if (pattern.violations++ == 0) {
        pattern.firstOutput = output;
        pattern.firstWindow = first / kWindow;
      }
    }
  }
}

TwoFourPattern nm_sparse::checkTwoFour(llvm::ArrayRef<char> data,
                                       int64_t outputs, int64_t inputs,
                                       const StoredType &type) {
  TwoFourPattern pattern;
  pattern.windows = outputs * llvm::divideCeilSigned(inputs, kWindow);
  bool isInteger = type.element.starts_with("i");
  if (type.bits == 8)
    check<uint8_t>(data.data(), outputs, inputs, isInteger ? 0 : 0x80, pattern);
  else if (type.bits == 16)
    check<uint16_t>(data.data(), outputs, inputs, 0x8000, pattern);
  else
    check<uint32_t>(data.data(), outputs, inputs, 0x80000000, pattern);
  return pattern;
}

static std::string print(llvm::ArrayRef<int64_t> shape) {
  return llvm::formatv("[{0:$[, ]}]",
                       llvm::make_range(shape.begin(), shape.end()));
}

static llvm::Error fail(const TensorInfo &tensor, const llvm::Twine &found,
                        const llvm::Twine &legal) {
  return llvm::createStringError("tensor " + quoteName(tensor.name) + " " +
                                 found + ": legal is " + legal);
}

llvm::Expected<std::pair<int64_t, int64_t>>
nm_sparse::readBitmaskShape(const BitmaskParts &parts) {
  const TensorInfo &shape = *parts.shape, &compressed = *parts.compressed,
                   &bitmask = *parts.bitmask;
  bool isLong = shape.type->name == "I64";
  if ((!isLong && shape.type->name != "I32") ||
      shape.data.size() != static_cast<size_t>(2 * shape.type->bits / 8))
    return fail(shape,
                "is " + shape.type->name + " of shape " + print(shape.shape),
                "two numbers of I64 or I32");
  int64_t sizes[2];
  for (int i = 0; i < 2; ++i)
    sizes[i] =
        isLong ? llvm::support::endian::read<int64_t, llvm::endianness::little>(
                     shape.data.data() + i * 8)
               : llvm::support::endian::read<int32_t, llvm::endianness::little>(
                     shape.data.data() + i * 4);
  auto [outputs, inputs] = sizes;
  if (outputs < 1 || inputs < 1 || inputs % kWindow != 0)
    return fail(shape, "is " + print(sizes),
                "[outputs, inputs] from 1 up with inputs a multiple of 4");
  if (compressed.type->element.empty() || compressed.shape.size() != 2)
    return fail(compressed,
                "is " + compressed.type->name + " of shape " +
                    print(compressed.shape),
                "a matrix of F32, F16, BF16, F8_E4M3, F8_E5M2 or I8");
  const int64_t legalValues[] = {outputs, inputs / 2},
                legalBits[] = {outputs, inputs / 8 + (inputs % 8 != 0)};
  std::string weight = llvm::formatv(" for {0} x {1}", outputs, inputs);
  if (llvm::ArrayRef(legalValues) != llvm::ArrayRef<int64_t>(compressed.shape))
    return fail(compressed, "has shape " + print(compressed.shape),
                print(legalValues) + weight);
  if (bitmask.type->name != "U8" ||
      llvm::ArrayRef(legalBits) != llvm::ArrayRef<int64_t>(bitmask.shape))
    return fail(bitmask,
                "is " + bitmask.type->name + " of shape " +
                    print(bitmask.shape),
                "U8 of " + print(legalBits) + weight);
  return std::pair(outputs, inputs);
}

llvm::Expected<std::vector<char>>
nm_sparse::decodeBitmask(const BitmaskParts &parts) {
  auto sizes = readBitmaskShape(parts);
  if (!sizes)
    return sizes.takeError();
  auto [outputs, inputs] = *sizes;
  const TensorInfo &bitmask = *parts.bitmask;
  int64_t width = parts.compressed->type->bits / 8;
  int64_t rowBytes = llvm::divideCeilSigned(inputs, 8);
  const char *value = parts.compressed->data.data();
  std::vector<char> dense(outputs * inputs * width);
  char *target = dense.data();
  for (int64_t output = 0; output < outputs; ++output) {
    const char *row = bitmask.data.data() + output * rowBytes;
    for (int64_t window = 0; window < rowBytes * 2; ++window) {
      auto byte = static_cast<unsigned char>(row[window / 2]);
      unsigned bits = window % 2 == 0 ? byte & 0xf : byte >> 4;
      bool isPast = window * kWindow >= inputs;
      if (isPast && bits != 0)
        return fail(bitmask,
                    llvm::formatv("has bits past input {0} in output {1}",
                                  inputs, output)
                        .str(),
                    "0");
      if (isPast)
        continue;
      if (llvm::popcount(bits) != kKept)
        return fail(bitmask,
                    llvm::formatv("has {0} bits in window {1} of output {2}",
                                  llvm::popcount(bits), window, output)
                        .str(),
                    "2 of 4");
      for (int64_t input = 0; input < kWindow; ++input, target += width) {
        if (((bits >> input) & 1) == 0)
          continue;
        std::memcpy(target, value, width);
        value += width;
      }
    }
  }
  return dense;
}
