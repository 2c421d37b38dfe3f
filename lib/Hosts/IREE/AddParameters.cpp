//===- AddParameters.cpp - parameters of a model in its manifest ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One program may serve many weights, so the manifest's functions do not say
// which weights of the model there are. These entries do.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Hosts/IREE/IREEModule.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace mlir::nm_sparse;
namespace json = llvm::json;

llvm::Expected<std::string>
nm_sparse::addParameters(StringRef manifest,
                         ArrayRef<IREEParameter> parameters) {
  llvm::Expected<json::Value> parsed = json::parse(manifest);
  if (!parsed)
    return parsed.takeError();
  json::Array entries;
  for (const IREEParameter &parameter : parameters) {
    json::Object entry{{"key", parameter.key},
                       {"type", parameter.type},
                       {"argument", parameter.argument}};
    if (!parameter.component.empty()) {
      entry["component"] = parameter.component;
      entry["function"] = parameter.function;
      entry["weight"] = parameter.weight;
    }
    entries.push_back(std::move(entry));
  }
  (*parsed->getAsObject())["parameters"] = std::move(entries);
  return llvm::formatv("{0:2}\n", *parsed).str();
}
