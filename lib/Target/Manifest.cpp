//===- Manifest.cpp - how to launch the kernels ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One object for each host function: its arguments, the buffers that it needs
// in between, and its launches in order. Everything comes from the host IR.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "nm_sparse/Commit.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "nm_sparse/Target/Target.h"
#include "nm_sparse/Version.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::nm_sparse;
using llvm::json::Array;
using llvm::json::Object;

namespace {

template <typename T>
std::string print(T value) {
  std::string text;
  llvm::raw_string_ostream(text) << value;
  return text;
}

/// Names of the buffers of one function.
class FunctionWriter {
public:
  explicit FunctionWriter(func::FuncOp function) : function(function) {}

  Object write() {
    Array arguments, launches;
    for (BlockArgument argument : function.getArguments())
      arguments.push_back(writeArgument(argument));
    function.walk([&](gpu::LaunchFuncOp launch) {
      launches.push_back(writeLaunch(launch));
    });
    Array results;
    function.walk([&](func::ReturnOp op) {
      for (Value result : op.getOperands())
        results.push_back(Object{{"type", print(result.getType())},
                                 {"buffer", getName(getRoot(result))}});
    });
    return Object{{"name", function.getSymName()},
                  {"arguments", std::move(arguments)},
                  {"buffers", std::move(buffers)},
                  {"launches", std::move(launches)},
                  {"results", std::move(results)}};
  }

private:
  static Value getRoot(Value value) {
    while (auto view = value.getDefiningOp<ViewLikeOpInterface>())
      value = view.getViewSource();
    return value;
  }

  /// argN, or bufferN for memory that the host allocates.
  std::string getName(Value root) {
    if (auto argument = dyn_cast<BlockArgument>(root))
      return llvm::formatv("arg{0}", argument.getArgNumber());
    auto [it, isNew] = names.try_emplace(root, "");
    if (!isNew)
      return it->second;
    it->second = llvm::formatv("buffer{0}", names.size() - 1).str();
    Array sizes;
    if (auto type = dyn_cast<MemRefType>(root.getType())) {
      OperandRange dynamic(nullptr, 0);
      if (auto alloc = root.getDefiningOp<memref::AllocOp>())
        dynamic = alloc.getDynamicSizes();
      else if (auto alloc = root.getDefiningOp<gpu::AllocOp>())
        dynamic = alloc.getDynamicSizes();
      auto next = dynamic.begin();
      for (int64_t extent : type.getShape())
        if (!ShapedType::isDynamic(extent))
          sizes.push_back(std::to_string(extent));
        else
          sizes.push_back(next == dynamic.end() ? std::string("?")
                                                : describeExpression(*next++));
    }
    std::string name = it->second;
    Object object{{"name", name},
                  {"type", print(root.getType())},
                  {"sizes", std::move(sizes)}};
    for (Operation *user : root.getUsers())
      if (auto memset = dyn_cast<gpu::MemsetOp>(user))
        object["initial"] = describeExpression(memset.getValue());
    buffers.push_back(std::move(object));
    return name;
  }

  Object writeArgument(BlockArgument argument) {
    unsigned position = argument.getArgNumber();
    Object object{{"name", getName(argument)},
                  {"type", print(argument.getType())}};
    auto values =
        function.getArgAttrOfType<PackedAttr>(position, "nm_sparse.values");
    auto index =
        function.getArgAttrOfType<PackedAttr>(position, "nm_sparse.index");
    PackedAttr packed = values ? values : index;
    object["role"] = values ? "values" : index ? "index" : "data";
    if (packed) {
      object["encoding"] = print(Attribute(packed.getEncoding()));
      object["weight_shape"] = Array(packed.getShape());
      object["packed_layout"] = 1;
    }
    return object;
  }

  /// The parameters of the kernel: a memref is passed field by field.
  Array writeParameters(gpu::LaunchFuncOp launch) {
    Array parameters;
    // JSON values refer to a StringRef's text, and copy that of a string.
    auto add = [&](const std::string &type, const std::string &source,
                   const std::string &field) {
      parameters.push_back(
          Object{{"type", type}, {"source", source}, {"field", field}});
    };
    for (Value operand : launch.getKernelOperands()) {
      auto type = dyn_cast<MemRefType>(operand.getType());
      if (auto map = getTensorMap(operand)) {
        parameters.push_back(writeTensorMap(map));
        continue;
      }
      if (!type) {
        std::string scalar =
            operand.getType().isIndex() ? "i64" : print(operand.getType());
        add(scalar, describeExpression(operand), "value");
        continue;
      }
      std::string name = getName(getRoot(operand));
      add("ptr", name, "allocated");
      add("ptr", name, "aligned");
      add("i64", name, "offset");
      for (StringRef field : {"size", "stride"})
        for (int64_t dim = 0; dim < type.getRank(); ++dim)
          add("i64", name, llvm::formatv("{0}[{1}]", field, dim));
    }
    return parameters;
  }

  /// The tensor map whose address `operand` is, if it is one.
  static nvgpu::TmaCreateDescriptorOp getTensorMap(Value operand) {
    auto cast = operand.getDefiningOp<UnrealizedConversionCastOp>();
    return cast && cast.getNumOperands() == 1
               ? cast.getOperand(0)
                     .getDefiningOp<nvgpu::TmaCreateDescriptorOp>()
               : nvgpu::TmaCreateDescriptorOp();
  }

  /// What cuTensorMapEncodeTiled needs to know beside the buffer's shape.
  Object writeTensorMap(nvgpu::TmaCreateDescriptorOp map) {
    nvgpu::TensorMapDescriptorType type = map.getTensorMap().getType();
    return Object{
        {"type", "ptr"},
        {"source", getName(getRoot(map.getTensor()))},
        {"field", "tensor_map"},
        {"box", Array(type.getTensor().getShape())},
        {"swizzle", nvgpu::stringifyTensorMapSwizzleKind(type.getSwizzle())},
        {"l2_promotion",
         nvgpu::stringifyTensorMapL2PromoKind(type.getL2promo())}};
  }

  Object writeLaunch(gpu::LaunchFuncOp launch) {
    auto dims = [](gpu::KernelDim3 size) {
      return Array{describeExpression(size.x), describeExpression(size.y),
                   describeExpression(size.z)};
    };
    Object object{{"kernel", launch.getKernelName().getValue()},
                  {"grid", dims(launch.getGridSizeOperandValues())},
                  {"block", dims(launch.getBlockSizeOperandValues())},
                  {"parameters", writeParameters(launch)}};
    if (launch.hasClusterSize())
      object["cluster"] = dims(launch.getClusterSizeOperandValues());
    Value shared = launch.getDynamicSharedMemorySize();
    object["dynamic_shared_memory"] =
        shared ? describeExpression(shared) : std::string("0");
    return object;
  }

  func::FuncOp function;
  Array buffers;
  llvm::DenseMap<Value, std::string> names;
};

} // namespace

std::vector<ScheduledProduct> nm_sparse::collectProducts(ModuleOp module) {
  std::vector<ScheduledProduct> products;
  module.walk([&](MatmulOp matmul) {
    ScheduledProduct product;
    if (auto function = matmul->getParentOfType<func::FuncOp>())
      product.function = function.getSymName().str();
    product.encoding = print(Attribute(matmul.getEncoding()));
    if (ScheduleAttr schedule = matmul.getScheduleAttr())
      product.schedule = print(Attribute(schedule));
    product.shape = print(matmul.getX().getType()) + " x " +
                    print(matmul.getValues().getType());
    products.push_back(std::move(product));
  });
  return products;
}

Object nm_sparse::makeManifest(ModuleOp module,
                               ArrayRef<ScheduledProduct> products,
                               const ResourceMap *resources) {
  Object manifest{{"manifest_version", 1},
                  {"packed_layout", 1},
                  {"compiler", Object{{"name", "nm_sparse"},
                                      {"version", NM_SPARSE_VERSION},
                                      {"commit", NM_SPARSE_COMMIT}}}};
  Array kernels, functions, scheduled;
  for (auto kernelModule : module.getOps<gpu::GPUModuleOp>()) {
    if (ArrayAttr targets = kernelModule.getTargetsAttr())
      for (Attribute attribute : targets)
        if (auto target = dyn_cast<NVVM::NVVMTargetAttr>(attribute)) {
          manifest["chip"] = target.getChip();
          manifest["features"] = target.getFeatures();
        }
    for (auto kernel : kernelModule.getOps<LLVM::LLVMFuncOp>()) {
      if (!kernel->hasAttr(gpu::GPUDialect::getKernelFuncAttrName()))
        continue;
      Object object{{"name", kernel.getSymName()}};
      auto found = resources ? resources->find(kernel.getSymName().str())
                             : ResourceMap::const_iterator();
      if (resources && found != resources->end()) {
        object["registers"] = found->second.registers;
        object["spill_bytes"] =
            found->second.spillStoreBytes + found->second.spillLoadBytes;
      }
      kernels.push_back(std::move(object));
    }
  }
  for (auto function : module.getOps<func::FuncOp>())
    if (!function.isExternal())
      functions.push_back(FunctionWriter(function).write());
  for (const ScheduledProduct &product : products)
    scheduled.push_back(Object{{"function", product.function},
                               {"encoding", product.encoding},
                               {"schedule", product.schedule},
                               {"operands", product.shape}});
  manifest["kernels"] = std::move(kernels);
  manifest["functions"] = std::move(functions);
  manifest["products"] = std::move(scheduled);
  return manifest;
}
