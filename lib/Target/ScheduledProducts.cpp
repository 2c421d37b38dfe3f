//===- ScheduledProducts.cpp - the products of a module -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Later stages leave nothing of a schedule, so the manifest's list of products
// is made when each has one.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMTile/IR/Schedule.h"
#include "nm_sparse/GPU/Copies.h"
#include "nm_sparse/Target/Target.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace mlir::nm_sparse;

template <typename T>
static std::string print(T value) {
  std::string text;
  llvm::raw_string_ostream(text) << value;
  return text;
}

std::vector<ScheduledProduct> nm_sparse::collectProducts(ModuleOp module) {
  std::vector<ScheduledProduct> products;
  module.walk([&](MatmulOp matmul) {
    ScheduledProduct product;
    product.encoding = print(Attribute(matmul.getEncoding()));
    if (ScheduleAttr schedule = getSchedule(matmul))
      product.schedule = print(Attribute(schedule));
    DenseElementsAttr code = matmul.getForm().getConstant();
    Type values = code ? code.getType() : matmul.getValues().getType();
    product.shape = print(matmul.getX().getType()) + " x " + print(values);
    auto function = matmul->getParentOfType<func::FuncOp>();
    if (function)
      product.function = function.getSymName().str();
    products.push_back(product);
    if (!function)
      return;
    for (StringRef copy : getCopies(function)) {
      product.function = copy.str();
      products.push_back(product);
    }
  });
  return products;
}
