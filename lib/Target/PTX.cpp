//===- PTX.cpp - gpu.module to PTX and cubin ------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "nm_sparse/GPU/Codegen.h"
#include "nm_sparse/Support/ErrorCollector.h"
#include "nm_sparse/Target/Target.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Object/ELF.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/Regex.h"
#include <chrono>

using namespace mlir;
using namespace mlir::nm_sparse;

llvm::Expected<std::string> nm_sparse::translateToPTX(ModuleOp module) {
  SmallVector<gpu::GPUModuleOp> kernels(module.getOps<gpu::GPUModuleOp>());
  if (kernels.empty())
    return std::string();
  if (kernels.size() > 1)
    return llvm::createStringError(
        llvm::formatv(
            "{0} gpu.modules, expected one: PTX files cannot be joined, so run "
            "--nm-sparse-merge-kernels before the kernels are lowered",
            kernels.size())
            .str());
  ErrorCollector errors(module.getContext());
  FailureOr<std::string> text = compileToPTX(kernels.front());
  if (failed(text))
    return llvm::createStringError(errors.getFirst());
  return std::move(*text);
}

std::string nm_sparse::findPtxas() {
  for (const char *variable : {"CUDA_HOME", "CUDA_ROOT", "CUDA_PATH"})
    if (std::optional<std::string> root =
            llvm::sys::Process::GetEnv(variable)) {
      SmallString<128> path(*root);
      llvm::sys::path::append(path, "bin", "ptxas");
      if (llvm::sys::fs::can_execute(path))
        return path.str().str();
    }
  if (auto found = llvm::sys::findProgramByName("ptxas"))
    return *found;
  StringRef usual = "/usr/local/cuda/bin/ptxas";
  return llvm::sys::fs::can_execute(usual) ? usual.str() : std::string();
}

/// Reads the report of `ptxas -v`.
static ResourceMap parseResources(StringRef report) {
  ResourceMap resources;
  llvm::Regex entry("Compiling entry function '([^']*)'");
  llvm::Regex spills("([0-9]+) bytes spill stores, ([0-9]+) bytes spill loads");
  llvm::Regex registers("Used ([0-9]+) registers");
  llvm::Regex shared("([0-9]+) bytes smem");
  KernelResources *current = nullptr;
  SmallVector<StringRef> lines, match;
  report.split(lines, '\n');
  for (StringRef line : lines) {
    if (entry.match(line, &match))
      current = &resources[match[1].str()];
    if (!current)
      continue;
    if (spills.match(line, &match)) {
      match[1].getAsInteger(10, current->spillStoreBytes);
      match[2].getAsInteger(10, current->spillLoadBytes);
    }
    if (registers.match(line, &match))
      match[1].getAsInteger(10, current->registers);
    if (shared.match(line, &match))
      match[1].getAsInteger(10, current->staticSharedBytes);
  }
  return resources;
}

/// Adds the sizes of the code in `cubin`, which has a section for each kernel.
static void addCodeBytes(StringRef cubin, ResourceMap &resources) {
  auto file = llvm::object::ELF64LEFile::create(cubin);
  if (!file)
    return llvm::consumeError(file.takeError());
  auto sections = file->sections();
  if (!sections)
    return llvm::consumeError(sections.takeError());
  for (const auto &section : *sections) {
    auto name = file->getSectionName(section);
    if (!name) {
      llvm::consumeError(name.takeError());
      continue;
    }
    if (name->consume_front(".text."))
      if (auto found = resources.find(name->str()); found != resources.end())
        found->second.codeBytes = int64_t(section.sh_size);
  }
}

llvm::Expected<Assembled> nm_sparse::assemblePTX(StringRef ptx,
                                                 StringRef chip) {
  std::string ptxas = findPtxas();
  if (ptxas.empty())
    return llvm::createStringError("no ptxas found: install the CUDA toolkit, "
                                   "put ptxas on the PATH, or set "
                                   "CUDA_HOME");
  SmallString<64> input, output, log;
  int descriptor;
  if (llvm::sys::fs::createTemporaryFile("nm-sparse", "ptx", descriptor,
                                         input) ||
      llvm::sys::fs::createTemporaryFile("nm-sparse", "cubin", output) ||
      llvm::sys::fs::createTemporaryFile("nm-sparse", "log", log))
    return llvm::createStringError("cannot create temporary files");
  llvm::scope_exit cleanup([&] {
    for (StringRef path : {input.str(), output.str(), log.str()})
      llvm::sys::fs::remove(path);
  });
  {
    llvm::raw_fd_ostream stream(descriptor, /*shouldClose=*/true);
    stream << ptx;
  }
  std::string arch = ("-arch=" + chip).str();
  StringRef arguments[] = {ptxas, "-v", arch, input, "-o", output};
  std::optional<StringRef> redirects[] = {StringRef(), log.str(), log.str()};
  auto start = std::chrono::steady_clock::now();
  int status =
      llvm::sys::ExecuteAndWait(ptxas, arguments, std::nullopt, redirects);
  auto report = llvm::MemoryBuffer::getFile(log);
  StringRef text = report ? (*report)->getBuffer() : StringRef();
  if (status != 0)
    return llvm::createStringError(("ptxas rejects the kernel for " + chip +
                                    ": " + text.take_until([](char c) {
                                      return c == '\n';
                                    })).str());
  auto cubin = llvm::MemoryBuffer::getFile(output);
  if (!cubin)
    return llvm::createStringError("cannot read what ptxas wrote");
  Assembled result{(*cubin)->getBuffer().str(), parseResources(text)};
  result.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  addCodeBytes(result.cubin, result.resources);
  return result;
}
