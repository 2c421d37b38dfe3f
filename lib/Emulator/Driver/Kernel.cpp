//===- Kernel.cpp - compiled kernels and their launches -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Driver/Kernel.h"

#include "Machine/BankConflicts.h"
#include "mlir/Dialect/DLTI/DLTI.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "nm_sparse/Emulator/FloatSymbols.h"
#include "nm_sparse/Emulator/HostCompiler.h"
#include "nm_sparse/Support/ErrorCollector.h"
#include "llvm/ADT/SetVector.h"
#include <cstring>

using namespace mlir;
using namespace mlir::nm_sparse::emulator;

//===----------------------------------------------------------------------===//
// Functions that compiled kernels call
//===----------------------------------------------------------------------===//

static void *accessMemory(const Site *site, uint64_t address) {
  Thread &thread = getCurrentThread();
  thread.site = site;
  if (site->polls)
    thread.yield([] { return std::string("it polls memory"); },
                 /*isGlobal=*/true);
  char *where = thread.access(address, site->space, site->bytes,
                              site->alignment, site->kind);
  if (site->kind != AccessKind::Atomic)
    countBanks(thread, reads(site->kind) ? SharedOp::Load : SharedOp::Store,
               address, site->space, site->bytes, site->alignment);
  return where;
}

static void runOp(const Site *site, void **operands, void **results) {
  Thread &thread = getCurrentThread();
  thread.site = site;
  site->handler(thread, operands, results);
}

static llvm::orc::SymbolMap getSymbols(llvm::orc::MangleAndInterner mangle) {
  llvm::orc::SymbolMap symbols = nm_sparse::getFloatSymbols(mangle);
  auto add = [&](StringRef name, auto *function) {
    symbols[mangle(name)] = {llvm::orc::ExecutorAddr::fromPtr(function),
                             llvm::JITSymbolFlags::Exported};
  };
  add("nmsEmulatorAccess", &accessMemory);
  add("nmsEmulatorOp", &runOp);
  return symbols;
}

//===----------------------------------------------------------------------===//
// Modules
//===----------------------------------------------------------------------===//

KernelModule::KernelModule() : context(MLIRContext::Threading::DISABLED) {
  DialectRegistry registry;
  registry.insert<DLTIDialect, gpu::GPUDialect, LLVM::LLVMDialect,
                  NVVM::NVVMDialect>();
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  context.appendDialectRegistry(registry);
  // Attributes of other dialects say how a kernel came about; nothing here
  // reads them.
  context.allowUnregisteredDialects();
  context.loadAllAvailableDialects();
}

KernelModule::~KernelModule() = default;

unsigned Kernel::getStaticSharedBytes() const {
  return module->host.staticSharedBytes;
}

const Kernel *KernelModule::lookup(StringRef name) const {
  for (const auto &kernel : kernels)
    if (kernel->getName() == name)
      return kernel.get();
  return nullptr;
}

llvm::Expected<std::unique_ptr<KernelModule>>
KernelModule::create(StringRef text, GlobalMemory &memory) {
  std::unique_ptr<KernelModule> result(new KernelModule());
  ErrorCollector errors(&result->context);
  result->original =
      parseSourceString<ModuleOp>(text, ParserConfig(&result->context));
  if (!result->original)
    return llvm::createStringError(errors.getFirst());
  auto modules = result->original->getOps<gpu::GPUModuleOp>();
  if (!llvm::hasSingleElement(modules))
    return llvm::createStringError("the image is not one gpu.module");
  FailureOr<HostModule> host = lowerForHost(*modules.begin());
  if (failed(host))
    return llvm::createStringError(errors.getFirst());
  result->host = std::move(*host);

  for (const KernelSignature &signature : result->host.kernels) {
    auto kernel = std::make_unique<Kernel>();
    kernel->signature = signature;
    kernel->module = result.get();
    result->kernels.push_back(std::move(kernel));
  }
  if (llvm::Error error = result->placeGlobals(memory))
    return std::move(error);
  return std::move(result);
}

/// Globals have one address for all kernels, so these are compiled together.
llvm::Error KernelModule::placeGlobals(GlobalMemory &memory) {
  if (host.globals.empty())
    return llvm::Error::success();
  auto engine = compile(*host.module);
  if (!engine)
    return engine.takeError();
  for (auto &[name, bytes] : host.globals) {
    auto address = (*engine)->lookup(name);
    if (!address)
      return address.takeError();
    memory.adopt(*address, bytes);
  }
  for (const auto &kernel : kernels)
    if (llvm::Error error = findEntry(**engine, *kernel))
      return error;
  return llvm::Error::success();
}

/// A module of `entry`, a function of `module`, and of all that it reaches.
static OwningOpRef<ModuleOp> extract(ModuleOp module, StringRef entry) {
  SymbolTable table(module);
  llvm::SetVector<Operation *> reached;
  reached.insert(table.lookup(entry));
  for (size_t i = 0; i < reached.size(); ++i)
    if (auto uses = SymbolTable::getSymbolUses(reached[i]))
      for (SymbolTable::SymbolUse use : *uses)
        if (Operation *symbol =
                table.lookup(use.getSymbolRef().getRootReference()))
          reached.insert(symbol);
  OwningOpRef<ModuleOp> part = cast<ModuleOp>(module->cloneWithoutRegions());
  part->getBodyRegion().emplaceBlock();
  for (Operation *symbol : reached)
    part->push_back(symbol->clone());
  return part;
}

llvm::Expected<ExecutionEngine *> KernelModule::compile(ModuleOp module) {
  // Kernels are run a few times, so little is optimized.
  auto engine = compileForHost(module, 1, getSymbols);
  if (!engine)
    return engine.takeError();
  engines.push_back(std::move(*engine));
  return engines.back().get();
}

llvm::Error KernelModule::findEntry(ExecutionEngine &engine,
                                    const Kernel &kernel) {
  auto entry = engine.lookup(kernel.signature.entry);
  if (!entry)
    return entry.takeError();
  entries[kernel.getName()] = reinterpret_cast<Entry>(*entry);
  return llvm::Error::success();
}

llvm::Expected<KernelModule::Entry>
KernelModule::getEntry(const Kernel &kernel) {
  std::lock_guard<std::mutex> lock(mutex);
  if (Entry entry = entries.lookup(kernel.getName()))
    return entry;
  auto engine = compile(*extract(*host.module, kernel.signature.entry));
  if (!engine)
    return engine.takeError();
  if (llvm::Error error = findEntry(**engine, kernel))
    return std::move(error);
  return entries.lookup(kernel.getName());
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

struct mlir::nm_sparse::emulator::KernelLaunch {
  /// Copies arguments that kernels address in place to where they may be read.
  static SmallVector<void *> copyInPlace(const Kernel &kernel, void **arguments,
                                         GlobalMemory &memory) {
    SmallVector<void *> copies;
    const KernelSignature &signature = kernel.signature;
    for (size_t i = 0; i < signature.argumentBytes.size(); ++i) {
      if (!signature.argumentIsInPlace[i])
        continue;
      size_t bytes = signature.argumentBytes[i];
      void *copy = memory.allocate(bytes);
      memory.access(reinterpret_cast<uint64_t>(copy), bytes, AccessKind::Write);
      std::memcpy(copy, arguments[i], bytes);
      memory.protect(copy);
      copies.push_back(copy);
    }
    return copies;
  }

  static std::string run(const Kernel &kernel, const LaunchShape &shape,
                         void **arguments, GlobalMemory &memory, StringRef chip,
                         unsigned jobs, bool lastFirst, BankTable *banks) {
    const KernelSignature &signature = kernel.signature;
    auto entry = kernel.module->getEntry(kernel);
    if (!entry)
      return llvm::toString(entry.takeError());
    SmallVector<void *> values(arguments,
                               arguments + signature.argumentBytes.size());
    SmallVector<void *> copies = copyInPlace(kernel, arguments, memory);
    for (size_t i = 0, next = 0; i < values.size(); ++i)
      if (signature.argumentIsInPlace[i])
        values[i] = copies[next++];

    Launch launch;
    launch.kernelName = signature.name.c_str();
    launch.chip = chip.str();
    llvm::copy(shape.cluster, launch.cluster);
    llvm::copy(shape.grid, launch.grid);
    llvm::copy(shape.block, launch.block);
    launch.staticSharedBytes = kernel.getStaticSharedBytes();
    launch.dynamicSharedBytes = shape.sharedBytes;
    launch.granule = kernel.module->host.granule;
    launch.maxRegisters = signature.maxRegisters;
    launch.memory = &memory;
    launch.banks = banks;
    launch.function = [&] { (*entry)(values.data()); };
    std::string fault = runLaunch(launch, jobs, lastFirst);
    for (void *copy : copies)
      memory.release(copy);
    return fault;
  }
};

std::string nm_sparse::emulator::launch(const Kernel &kernel,
                                        const LaunchShape &shape,
                                        void **arguments, GlobalMemory &memory,
                                        StringRef chip, unsigned jobs,
                                        bool lastFirst, BankTable *banks) {
  return KernelLaunch::run(kernel, shape, arguments, memory, chip, jobs,
                           lastFirst, banks);
}
