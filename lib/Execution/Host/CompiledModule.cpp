//===- CompiledModule.cpp - run a lowered module in this process ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Execution/Host/CompiledModule.h"

#include "Host/Symbols.h"
#include "nm_sparse/Emulator/HostCompiler.h"
#include <cstdlib>

using namespace mlir;
using namespace mlir::nm_sparse;

CompiledModule::CompiledModule() = default;
CompiledModule::~CompiledModule() = default;

llvm::Expected<std::unique_ptr<CompiledModule>>
CompiledModule::create(ModuleOp module, unsigned optLevel) {
  auto engine = compileForHost(module, optLevel, getRuntimeSymbols);
  if (!engine)
    return engine.takeError();
  std::unique_ptr<CompiledModule> result(new CompiledModule());
  result->engine = std::move(*engine);
  return result;
}

llvm::Expected<std::vector<HostArray>>
CompiledModule::call(StringRef function, MutableArrayRef<Argument> arguments,
                     ArrayRef<ResultType> results) {
  // The results come first, as one structure of descriptors.
  size_t resultWords = 0;
  for (ResultType result : results)
    resultWords += MemRefDescriptor::getNumWords(result.rank);
  std::vector<int64_t> returned(resultWords, 0);

  std::vector<std::vector<int64_t>> descriptors;
  std::vector<void *> values;
  values.reserve(arguments.size() + 1);
  if (!results.empty())
    values.push_back(returned.data());
  for (Argument &argument : arguments) {
    if (argument.isScalar) {
      values.push_back(nullptr);
      continue;
    }
    descriptors.emplace_back(
        MemRefDescriptor::getNumWords(argument.array.shape.size()));
    MemRefDescriptor::fill(argument.array, descriptors.back().data());
    values.push_back(descriptors.back().data());
  }
  std::vector<void *> packed;
  packed.reserve(values.size());
  for (void *&value : values)
    packed.push_back(static_cast<void *>(&value));
  for (auto [position, argument] : llvm::enumerate(arguments))
    if (argument.isScalar)
      packed[position + !results.empty()] = argument.array.data.data();

  if (llvm::Error error =
          engine->invokePacked(("_mlir_ciface_" + function).str(), packed))
    return std::move(error);

  std::vector<HostArray> arrays;
  llvm::SmallPtrSet<void *, 4> owned;
  const int64_t *words = returned.data();
  for (ResultType result : results) {
    arrays.push_back(MemRefDescriptor::read(result.kind, result.rank, words));
    auto *allocated = reinterpret_cast<void *>(words[0]);
    bool borrowed = llvm::any_of(arguments, [&](Argument &argument) {
      return allocated == argument.array.data.data();
    });
    if (!borrowed && ownsAllocation(allocated))
      owned.insert(allocated);
    words += MemRefDescriptor::getNumWords(result.rank);
  }
  for (void *allocation : owned)
    releaseAllocation(allocation);
  return arrays;
}
