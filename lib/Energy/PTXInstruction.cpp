//===- PTXInstruction.cpp - what one PTX instruction does -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PTXInstruction.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include <limits>

using namespace mlir::nm_sparse;
using llvm::ArrayRef;
using llvm::StringRef;

StringRef mlir::nm_sparse::getName(StringRef text) {
  return text.take_while([](char c) {
    return llvm::isAlnum(c) || c == '_' || c == '$' || c == '%';
  });
}

/// Bits of an element of a type such as b32, f16x2 or e4m3; 0 of no type.
static int64_t getBits(StringRef type) {
  return llvm::StringSwitch<int64_t>(type)
      .Cases({"b8", "u8", "s8", "e4m3", "e5m2"}, 8)
      .Cases({"b16", "u16", "s16", "f16", "bf16", "e4m3x2", "e5m2x2"}, 16)
      .Cases({"b32", "u32", "s32", "f32", "f16x2", "bf16x2", "tf32"}, 32)
      .Cases({"b64", "u64", "s64", "f64"}, 64)
      .Case("b128", 128)
      .Default(0);
}

/// Bytes that a thread accesses: the last type, times the vector's length.
static double getAccessBytes(ArrayRef<StringRef> parts) {
  int64_t bits = 0, length = 1;
  for (StringRef part : parts) {
    if (int64_t found = getBits(part))
      bits = found;
    StringRef digits = part;
    if (digits.consume_front("v") && digits.getAsInteger(10, length))
      length = 1;
  }
  return double(bits) * double(length) / 8;
}

/// Elements of a variable such as `tile[16][2]`; infinite where an extent is no
/// number.
static double countElements(StringRef variable) {
  double elements = 1;
  StringRef rest = variable.drop_front(getName(variable).size()).ltrim();
  while (rest.consume_front("[")) {
    StringRef text = rest.take_until([](char c) { return c == ']'; });
    rest = rest.drop_front(text.size()).drop_front(rest.contains(']')).ltrim();
    uint32_t extent = 0;
    if (!text.trim().empty() && text.trim().getAsInteger(10, extent))
      return std::numeric_limits<double>::infinity();
    elements *= extent;
  }
  return elements;
}

llvm::Expected<int64_t>
mlir::nm_sparse::countDeclaredBytes(StringRef declaration) {
  StringRef variables = declaration.trim();
  llvm::SmallVector<StringRef> types;
  while (variables.consume_front(".")) {
    types.push_back(variables.take_until(llvm::isSpace));
    variables = variables.drop_front(types.back().size()).ltrim();
    if (types.back() == "align")
      variables = variables.drop_until(llvm::isSpace).ltrim();
  }
  llvm::SmallVector<StringRef> names;
  variables.split(names, ',');
  int64_t total = 0;
  for (StringRef name : names) {
    double bytes = countElements(name.ltrim()) * getAccessBytes(types);
    if (!(bytes < 2147483648.0))
      return llvm::createStringError("'" + name.trim() +
                                     "' has no size below 2^31 bytes");
    total += static_cast<int64_t>(bytes);
  }
  return total;
}

/// Products of a tensor core's instruction of shape mMnNkK; 0 without one.
static double getProducts(ArrayRef<StringRef> parts) {
  for (StringRef part : parts) {
    int64_t m = 0, n = 0, k = 0;
    if (part.consume_front("m") && !part.consumeInteger(10, m) &&
        part.consume_front("n") && !part.consumeInteger(10, n) &&
        part.consume_front("k") && !part.consumeInteger(10, k) && part.empty())
      return double(m) * double(n) * double(k);
  }
  return 0;
}

static void countTensorProduct(ArrayRef<StringRef> parts, PTXCounts &counts) {
  double products =
      getProducts(parts) / (parts.front() == "wgmma" ? 128.0 : 32.0);
  bool isSparse = llvm::any_of(parts, [](StringRef part) {
    return part == "sp" || part.starts_with("sp::");
  });
  if (isSparse)
    counts.sparseTensorFlops += products;
  else
    counts.tensorFlops += 2 * products;
}

static void countAccess(ArrayRef<StringRef> parts, PTXCounts &counts) {
  auto is = [&](StringRef space) {
    return llvm::any_of(parts, [&](StringRef part) {
      return part == space || part.starts_with((space + "::").str());
    });
  };
  double bytes = getAccessBytes(parts);
  bool isRead = parts.front() == "ld";
  if (is("shared"))
    (isRead ? counts.sharedRead : counts.sharedWritten) += bytes;
  else if (!is("param") && !is("const") && !is("local"))
    (isRead ? counts.globalRead : counts.globalWritten) += bytes;
}

/// Copies to shared memory: the third operand is their size.
static void countCopy(ArrayRef<StringRef> parts, StringRef operands,
                      PTXCounts &counts) {
  if (parts.size() > 2 && parts[2] == "bulk") {
    if (!llvm::is_contained(parts, "commit_group") &&
        !llvm::is_contained(parts, "wait_group"))
      ++counts.bulkCopies;
    return;
  }
  if (llvm::is_contained(parts, "mbarrier") ||
      llvm::is_contained(parts, "wait_group") ||
      llvm::is_contained(parts, "wait_all"))
    ++counts.barriers;
  if (parts.size() < 3 || (parts[2] != "ca" && parts[2] != "cg"))
    return;
  llvm::SmallVector<StringRef> found;
  operands.split(found, ',');
  int64_t bytes = 0;
  if (found.size() > 2 && !found[2].trim().getAsInteger(10, bytes))
    counts.copied += double(bytes);
}

/// Floating-point arithmetic on CUDA cores.
static bool countFloat(ArrayRef<StringRef> parts, PTXCounts &counts) {
  StringRef type = parts.back(), name = parts.front();
  double operations = llvm::StringSwitch<double>(name)
                          .Cases({"fma", "mad"}, 2)
                          .Cases({"add", "sub", "mul", "neg", "abs"}, 1)
                          .Cases({"min", "max", "setp", "set", "selp"}, 1)
                          .Default(0);
  if (operations == 0)
    return false;
  if (type == "f64")
    counts.f64Flops += operations;
  else if (type == "f32")
    counts.f32Flops += operations;
  else if (type == "f16" || type == "bf16")
    counts.f16Flops += operations;
  else if (type == "f16x2" || type == "bf16x2")
    counts.f16Flops += 2 * operations;
  else
    return false;
  return true;
}

PTXCounts mlir::nm_sparse::countInstruction(StringRef opcode,
                                            StringRef operands) {
  PTXCounts counts;
  counts.instructions = 1;
  llvm::SmallVector<StringRef> parts;
  opcode.split(parts, '.', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  if (parts.empty())
    return counts;
  StringRef name = parts.front();
  bool isFloat =
      parts.back().starts_with("f") || parts.back().starts_with("bf");
  if (name == "mma" || (name == "wgmma" && opcode.contains(".mma_async"))) {
    countTensorProduct(parts, counts);
  } else if (name == "wgmma" || name == "bar" || name == "barrier" ||
             name == "mbarrier" || name == "membar" || name == "fence" ||
             name == "griddepcontrol") {
    ++counts.barriers;
  } else if (name == "ld" || name == "ldu" || name == "st") {
    countAccess(parts, counts);
  } else if (name == "ldmatrix" || name == "stmatrix") {
    // Each thread has 4 bytes of each matrix of 16-bit elements.
    double matrices = opcode.contains(".x4")   ? 4
                      : opcode.contains(".x2") ? 2
                                               : 1;
    (name == "ldmatrix" ? counts.sharedRead : counts.sharedWritten) +=
        4 * matrices;
  } else if (name == "cp") {
    countCopy(parts, operands, counts);
  } else if (name == "atom" || name == "red") {
    ++counts.atomics;
  } else if (name == "bra" || name == "brx" || name == "call" ||
             name == "ret" || name == "exit") {
    ++counts.branches;
  } else if (name == "shfl" || name == "vote" || name == "match" ||
             name == "redux" || name == "movmatrix") {
    ++counts.shuffles;
  } else if (name == "cvt") {
    ++counts.conversions;
  } else if (isFloat && llvm::StringSwitch<bool>(name)
                            .Cases({"ex2", "lg2", "rcp", "rsqrt"}, true)
                            .Cases({"sqrt", "sin", "cos", "tanh", "div"}, true)
                            .Default(false)) {
    ++counts.special;
  } else if (!countFloat(parts, counts) && name != "mov" && name != "cvta") {
    ++counts.integer;
  }
  return counts;
}
