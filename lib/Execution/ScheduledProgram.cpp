//===- ScheduledProgram.cpp - a program under a given schedule ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScheduledProgram.h"

#include "RunInput.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "nm_sparse/Execution/CompareSchedules.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace mlir::nm_sparse;

ScheduledProgram::ScheduledProgram(const RunRequest &request)
    : context(makeRegistry(request), MLIRContext::Threading::DISABLED) {
  context.loadAllAvailableDialects();
}

std::string nm_sparse::hashKernels(ModuleOp module) {
  std::string code;
  module.walk([&](gpu::BinaryOp binary) {
    for (Attribute object : binary.getObjects())
      code += cast<gpu::ObjectAttr>(object).getObject().getValue();
  });
  return llvm::formatv("{0:x-16}", llvm::xxh3_64bits(code)).str();
}

llvm::Expected<Lowered> ScheduledProgram::lower(RunRequest request,
                                                StringRef chip, StringRef gpu,
                                                StringRef schedule,
                                                StringRef format) {
  request.tunedSchedule = schedule.str();
  auto read = RunInput::read(context, request);
  if (!read)
    return read.takeError();
  auto lowered = lowerForGPU(*read->module, read->entry.getSymName(), chip, gpu,
                             request, format);
  if (lowered && (lowered->schedules.size() != 1 ||
                  lowered->schedules.front() != schedule))
    return llvm::createStringError("another schedule was taken: " +
                                   llvm::join(lowered->schedules, "; "));
  return lowered;
}

llvm::Expected<std::string> nm_sparse::hashCode(const RunRequest &request,
                                                StringRef chip, StringRef gpu,
                                                StringRef schedule) {
  ScheduledProgram own(request);
  auto lowered = own.lower(request, chip, gpu, schedule, "isa");
  if (!lowered)
    return lowered.takeError();
  return hashKernels(*lowered->module);
}
