//===- QuoteName.cpp - names of strangers in messages ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Support/QuoteName.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::nm_sparse;

std::string nm_sparse::quoteName(llvm::StringRef name) {
  std::string text = "'";
  for (char c : name) {
    auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f)
      text += "\\x" + llvm::utohexstr(byte, /*LowerCase=*/true, /*Width=*/2);
    else
      text += c;
  }
  return text + "'";
}
