//===- TensorMapUsers.cpp - launches that take tensor maps ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TensorMapUsers.h"

#include "TensorMapKernel.h"
#include "nm_sparse/GPU/Support/Buffers.h"
#include "nm_sparse/GPU/Support/KernelArguments.h"

using namespace mlir;
using namespace mlir::nm_sparse;
using nvgpu::TmaCreateDescriptorOp;

//===----------------------------------------------------------------------===//
// Users
//===----------------------------------------------------------------------===//

llvm::SetVector<Operation *>
nm_sparse::getMapLaunches(TmaCreateDescriptorOp map) {
  llvm::SetVector<Operation *> launches;
  for (Operation *cast : map->getUsers())
    for (Operation *user : cast->getUsers())
      launches.insert(user);
  return launches;
}

LogicalResult nm_sparse::checkMapUsers(TmaCreateDescriptorOp map,
                                       SymbolTableCollection &symbols) {
  for (Operation *cast : map->getUsers())
    if (!isa<UnrealizedConversionCastOp>(cast))
      return cast->emitError("uses a tensor map and launches no kernel");
  for (Operation *user : getMapLaunches(map)) {
    auto launch = dyn_cast<gpu::LaunchFuncOp>(user);
    if (!launch)
      return user->emitError("uses a tensor map and launches no kernel");
    if (!findLoweredKernel(launch, symbols))
      return failure();
    if (launch->getBlock() != map->getBlock())
      return launch.emitError("takes a tensor map of another block");
  }
  return success();
}

LogicalResult nm_sparse::checkMapArguments(Operation *module,
                                           SymbolTableCollection &symbols) {
  llvm::DenseMap<Operation *,
                 std::pair<gpu::LaunchFuncOp, SmallVector<unsigned>>>
      known;
  WalkResult result = module->walk([&](gpu::LaunchFuncOp launch) {
    Operation *kernel = symbols.lookupNearestSymbolFrom<LLVM::LLVMFuncOp>(
        launch, launch.getKernelAttr());
    if (!kernel)
      return WalkResult::advance();
    SmallVector<unsigned> numbers;
    unsigned number = 0;
    for (Value operand : launch.getKernelOperands()) {
      if (getTensorMap(operand))
        numbers.push_back(number);
      number += countArguments(operand.getType());
    }
    auto [place, isNew] = known.try_emplace(kernel, launch, numbers);
    if (isNew || place->second.second == numbers)
      return WalkResult::advance();
    InFlightDiagnostic error = launch.emitError()
                               << "passes tensor maps as other arguments of "
                               << launch.getKernelAttr()
                               << " than another launch does";
    error.attachNote(place->second.first.getLoc()) << "which is here";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

SmallVector<MapGroup>
nm_sparse::groupMaps(ArrayRef<TmaCreateDescriptorOp> maps) {
  auto before = [](Operation *a, Operation *b) {
    return a->isBeforeInBlock(b);
  };
  SmallVector<MapGroup> groups;
  llvm::DenseMap<std::pair<Block *, Value>, unsigned> latest;
  for (TmaCreateDescriptorOp map : maps) {
    llvm::SetVector<Operation *> launches = getMapLaunches(map);
    auto first = cast<gpu::LaunchFuncOp>(*llvm::min_element(launches, before));
    auto last = cast<gpu::LaunchFuncOp>(*llvm::max_element(launches, before));
    Value tensor = getMappedTensor(map);
    auto isKnownBefore = [&](Operation *launch) {
      Operation *op = tensor.getDefiningOp();
      return !op || op->getBlock() != map->getBlock() ||
             op->isBeforeInBlock(launch);
    };
    auto [place, isNew] = latest.try_emplace(
        {map->getBlock(), getBufferOf(tensor)}, groups.size());
    if (!isNew) {
      MapGroup &group = groups[place->second];
      if (before(first, group.first) || isKnownBefore(group.first)) {
        group.maps.push_back(map);
        group.first = before(first, group.first) ? first : group.first;
        group.last = before(group.last, last) ? last : group.last;
        continue;
      }
      place->second = groups.size();
    }
    groups.push_back({{map}, first, last});
  }
  return groups;
}
