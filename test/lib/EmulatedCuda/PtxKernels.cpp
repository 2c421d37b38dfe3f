//===- PtxKernels.cpp - the kernels that PTX defines ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Only the name and the parameters of a skipped kernel matter:
//
//   .visible .entry name(
//     .param .u64 .ptr .align 16 name_param_0,
//     .param .align 64 .b8 name_param_1[128]
//   )
//
//===----------------------------------------------------------------------===//

#include "EmulatedCuda.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace emulated_cuda;
using llvm::StringRef;

/// The bytes of a type such as .u64; 0 for other words.
static size_t getTypeBytes(StringRef word) {
  unsigned bits = 0;
  if (word.size() < 3 || !word.consume_front(".") ||
      !StringRef("bsuf").contains(word.front()) ||
      word.drop_front().getAsInteger(10, bits))
    return 0;
  return bits / 8;
}

/// Appends what `text`, of one .param, declares.
static void addParameter(Function &function, StringRef text) {
  size_t element = 0, alignment = 0;
  llvm::SmallVector<StringRef> words;
  llvm::SplitString(text, words, " \t\r\n");
  bool isOfPointer = false;
  for (size_t i = 0; i < words.size(); ++i) {
    // The words behind `.ptr` say where the pointer points.
    isOfPointer |= words[i] == ".ptr";
    if (words[i] == ".align" && i + 1 < words.size() && !isOfPointer)
      words[++i].getAsInteger(10, alignment);
    else if (element == 0)
      element = getTypeBytes(words[i]);
  }
  size_t count = 1;
  auto [name, extent] = text.split('[');
  extent.split(']').first.trim().getAsInteger(10, count);
  size_t offset = 0;
  if (!function.parameters.empty())
    offset =
        function.parameters.back().offset + function.parameters.back().bytes;
  alignment = std::max({alignment, element, size_t(1)});
  function.parameters.push_back(
      {llvm::alignTo(offset, alignment), element * count});
}

llvm::SmallVector<std::unique_ptr<Function>>
emulated_cuda::readPtxKernels(StringRef text) {
  llvm::SmallVector<std::unique_ptr<Function>> kernels;
  constexpr StringRef keyword = ".entry ";
  for (size_t at = text.find(keyword); at != StringRef::npos;
       at = text.find(keyword)) {
    text = text.drop_front(at + keyword.size());
    // A kernel without parameters may have no parentheses.
    StringRef header = text.take_until([](char c) { return c == '{'; });
    auto kernel = std::make_unique<Function>();
    kernel->name =
        header.take_until([](char c) { return llvm::isSpace(c) || c == '('; })
            .str();
    llvm::SmallVector<StringRef> parameters;
    header.split('(').second.split(')').first.split(parameters, ',');
    for (StringRef parameter : parameters)
      if (parameter.contains(".param"))
        addParameter(*kernel, parameter);
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}
