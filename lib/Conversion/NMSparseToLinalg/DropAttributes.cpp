//===- DropAttributes.cpp - programs without words of ours ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A compiler that does not know our dialects cannot even parse their
// attributes. None of them changes what a converted program computes.
//
//===----------------------------------------------------------------------===//

#include "DropAttributes.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace mlir::nm_sparse;

static bool isOurs(StringAttr name) {
  return name.strref().starts_with("nm_sparse.") ||
         name.strref().starts_with("nm_tile.");
}

void nm_sparse::dropAttributes(Operation *root) {
  auto isForeign = [](NamedAttribute attribute) {
    return !isOurs(attribute.getName());
  };
  root->walk([&](Operation *op) {
    op->setDiscardableAttrs(
        llvm::filter_to_vector(op->getDiscardableAttrs(), isForeign));
    auto function = dyn_cast<FunctionOpInterface>(op);
    if (!function)
      return;
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      function.setArgAttrs(
          i, llvm::filter_to_vector(function.getArgAttrs(i), isForeign));
    for (unsigned i = 0; i < function.getNumResults(); ++i)
      function.setResultAttrs(
          i, llvm::filter_to_vector(function.getResultAttrs(i), isForeign));
  });
}
