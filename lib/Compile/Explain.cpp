//===- Explain.cpp - what each stage did ----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Explain.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::nm_sparse;

std::string nm_sparse::printMillijoules(double joules) {
  double value = joules * 1e3;
  if (value < 10)
    return llvm::formatv("{0:f2}", value);
  if (value < 100)
    return llvm::formatv("{0:f1}", value);
  return llvm::formatv("{0:f0}", value);
}

OpCounts nm_sparse::countOps(ModuleOp module) {
  OpCounts counts;
  module.walk([&](Operation *op) {
    if (op != module.getOperation())
      ++counts[op->getName().getDialectNamespace().str()];
  });
  return counts;
}

static int64_t getTotal(const OpCounts &counts) {
  int64_t total = 0;
  for (auto &[dialect, count] : counts)
    total += count;
  return total;
}

void nm_sparse::explainStage(llvm::raw_ostream &os, StringRef stage,
                             const OpCounts &before, const OpCounts &after,
                             double milliseconds) {
  os << llvm::formatv("{0,-10} {1,5} -> {2,-5} ops {3,7:f1} ms ", stage,
                      getTotal(before), getTotal(after), milliseconds);
  OpCounts all = before;
  all.insert(after.begin(), after.end());
  for (auto &[dialect, unused] : all) {
    auto get = [&, name = dialect](const OpCounts &counts) {
      auto found = counts.find(name);
      return found == counts.end() ? 0 : found->second;
    };
    if (get(before) != get(after))
      os << " " << dialect << " " << get(before) << ">" << get(after);
  }
  os << "\n";
}

void nm_sparse::explainClasses(llvm::raw_ostream &os, ModuleOp module) {
  for (auto function : module.getOps<func::FuncOp>())
    function.walk([&](TokenClassOp op) {
      // The cases are the classes, and the default is the last of them.
      SmallVector<StringRef> copies;
      for (Operation *user : op->getUsers())
        if (auto choice = dyn_cast<scf::IndexSwitchOp>(user)) {
          auto add = [&](func::CallOp call) {
            copies.push_back(call.getCallee());
          };
          for (Region &region : choice.getCaseRegions())
            region.walk(add);
          choice.getDefaultRegion().walk(add);
        }
      if (copies.empty())
        return;
      os << "  @" << function.getSymName() << " selects between "
         << copies.size() << " copies\n";
      int64_t first = 0;
      for (auto [i, number] : llvm::enumerate(op.getClasses())) {
        std::string range = llvm::formatv("{0} and more", first);
        if (i < op.getLast().size()) {
          range = llvm::formatv("{0} to {1}", first, op.getLast()[i]);
          first = op.getLast()[i] + 1;
        }
        os << llvm::formatv(
            "    {0,15} tokens: @{1}\n", range,
            copies[std::min<size_t>(number, copies.size() - 1)]);
      }
    });
}

void nm_sparse::explainProducts(llvm::raw_ostream &os,
                                ArrayRef<ScheduledProduct> products) {
  for (const ScheduledProduct &product : products)
    os << "  @" << product.function << ": " << product.shape << "\n    "
       << product.encoding << "\n    "
       << (product.schedule.empty() ? "no schedule" : product.schedule) << "\n";
}

void nm_sparse::explainLaunches(llvm::raw_ostream &os, ModuleOp module) {
  auto describe = [](gpu::KernelDim3 size) {
    return llvm::formatv("[{0}, {1}, {2}]", describeExpression(size.x),
                         describeExpression(size.y), describeExpression(size.z))
        .str();
  };
  module.walk([&](gpu::LaunchFuncOp launch) {
    Value shared = launch.getDynamicSharedMemorySize();
    os << "  kernel " << launch.getKernelName().getValue() << ": grid "
       << describe(launch.getGridSizeOperandValues()) << ", block "
       << describe(launch.getBlockSizeOperandValues()) << ", "
       << (shared ? describeExpression(shared) : "0")
       << " bytes of dynamic shared memory\n";
  });
}

void nm_sparse::explainPTX(llvm::raw_ostream &os, StringRef ptx,
                           const Assembled *assembled) {
  os << llvm::formatv("{0,-10} {1} lines", "ptx", ptx.count('\n'));
  for (StringRef instruction :
       {"mma.sync", "wgmma.mma_async", "fma.rn", "cp.async", "ldmatrix"})
    if (size_t count = ptx.count(instruction))
      os << ", " << instruction << " " << count;
  os << "\n";
  if (!assembled) {
    os << "  registers: not known, no ptxas was found\n";
    return;
  }
  for (auto &[kernel, used] : assembled->resources)
    os << "  " << kernel << ": " << used.registers << " registers, "
       << used.spillStoreBytes << " bytes spill stores, " << used.spillLoadBytes
       << " bytes spill loads, " << used.codeBytes << " bytes of code\n";
  os << llvm::formatv("  assembled in {0:f1} ms\n", 1000 * assembled->seconds);
}
