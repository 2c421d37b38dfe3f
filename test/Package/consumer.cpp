//===- consumer.cpp - a host that uses the installed dialect --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Parses a function whose argument carries an encoding, and reads it back with
// the C++ API: headers, libraries and their dependencies all come from the
// installed package.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Parser/Parser.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "nm_sparse/InitAll.h"

static const char source[] =
    "func.func private @f(tensor<64x32xf16, #nm_sparse.encoding<2:4>>)";

int main() {
  mlir::DialectRegistry registry;
  mlir::nm_sparse::registerAllDialects(registry);
  mlir::MLIRContext context(registry);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(source, &context);
  if (!module)
    return 1;

  auto function = *module->getOps<mlir::FunctionOpInterface>().begin();
  auto type =
      llvm::cast<mlir::RankedTensorType>(function.getArgumentTypes().front());
  auto encoding = mlir::nm_sparse::getEncoding(type);
  if (!encoding)
    return 1;
  llvm::outs() << encoding << " packs into";
  for (const auto &component : encoding.getComponents(type))
    llvm::outs() << " " << component.name << " " << component.type;
  llvm::outs() << "\n";
  return 0;
}
