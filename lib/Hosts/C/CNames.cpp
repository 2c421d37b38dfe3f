//===- CNames.cpp - names and types of C ----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CFunction.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// Words of C and C++, and names that their headers and compilers define.
static constexpr llvm::StringLiteral kReserved =
    "INT32_MAX NULL alignas alignof and and_eq asm auto bitand bitor bool "
    "break case catch char char16_t char32_t char8_t class co_await "
    "co_return co_yield compl concept const const_cast consteval constexpr "
    "constinit continue decltype default delete do double dynamic_cast else "
    "enum explicit export extern false float for friend goto if inline int "
    "int32_t int64_t linux long main mutable namespace new noexcept not "
    "not_eq nullptr operator or or_eq private protected public register "
    "reinterpret_cast requires restrict return short signed size_t sizeof "
    "static static_assert static_cast struct switch template this "
    "thread_local throw true try typedef typeid typename typeof "
    "typeof_unqual uint32_t uintptr_t union unix unsigned using virtual "
    "void volatile wchar_t while xor xor_eq";

static bool isReserved(StringRef name) {
  SmallVector<StringRef> words;
  kReserved.split(words, ' ');
  return llvm::is_contained(words, name);
}

bool nm_sparse::hasCLetters(StringRef name) {
  return !name.empty() && llvm::all_of(name, [](char c) {
    return llvm::isAlnum(c) || c == '_';
  });
}

bool nm_sparse::isCName(StringRef name) {
  // The file's own names begin with nms_, those of CUDA with cu or CU.
  bool isTaken =
      name.starts_with_insensitive("nms_") || name.starts_with("CU") ||
      (name.starts_with("cu") && name.size() > 2 && llvm::isUpper(name[2])) ||
      name.starts_with("__") ||
      (name.size() > 1 && name[0] == '_' && llvm::isUpper(name[1]));
  return hasCLetters(name) && !llvm::isDigit(name.front()) && !isTaken &&
         !isReserved(name);
}

StringRef nm_sparse::getNumberType(StringRef type) {
  return type == "f32"                      ? "float"
         : type == "f64"                    ? "double"
         : type == "index" || type == "i64" ? "int64_t"
         : type == "i32"                    ? "int32_t"
                                            : "";
}
