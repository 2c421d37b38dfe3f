//===- Manifest.cpp - how to launch the kernels ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One object for each host function: its arguments, the buffers that it needs
// in between, and its launches in order. Everything comes from the host IR.
//
//===----------------------------------------------------------------------===//

#include "HostCode.h"
#include "PackChecks.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "nm_sparse/Base/Expression.h"
#include "nm_sparse/Commit.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "nm_sparse/GPU/Copies.h"
#include "nm_sparse/GPU/Support/Buffers.h"
#include "nm_sparse/Packing/Packing.h"
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
  explicit FunctionWriter(func::FuncOp function)
      : function(function), checks(findPackChecks(function)) {}

  FailureOr<Object> write() {
    Array arguments, weights, launches;
    for (Operation *op : collectHostOps(function))
      return op->emitError()
             << "'" << op->getName()
             << "' stays on the host, and a manifest describes launches alone: "
                "leave out --manifest and run the host's code too (--emit nvvm "
                "shows it, docs/Runtime.md says how), or leave the operation "
                "out of the program";
    for (BlockArgument argument : function.getArguments())
      arguments.push_back(writeArgument(argument));
    for (BlockArgument argument : function.getArguments())
      if (ComponentAttr component = getComponent(argument);
          component && component.getComponent().role == ComponentRole::Values)
        weights.push_back(writeWeight(component));
    Object object{{"name", function.getSymName()},
                  {"arguments", std::move(arguments)},
                  {"weights", std::move(weights)}};
    if (std::optional<TokenSelection> selection =
            findTokenSelection(function)) {
      current = selection->classOf;
      object["tokens"] = describe(selection->classOf.getTokens());
      object["cases"] = writeCases(*selection);
      return finish(std::move(object));
    }
    for (auto launch : function.getOps<gpu::LaunchFuncOp>()) {
      current = launch;
      launches.push_back(writeLaunch(launch));
    }
    Array results, checked;
    for (const PackCheck &check : checks)
      checked.push_back(describePackCheck(check, getName(check.found)));
    if (!checked.empty())
      object["checks"] = std::move(checked);
    current = function.getBody().front().getTerminator();
    for (Value result : current->getOperands())
      results.push_back(writeResult(result));
    object["buffers"] = std::move(buffers);
    object["launches"] = std::move(launches);
    object["results"] = std::move(results);
    return finish(std::move(object));
  }

private:
  void refuse(const std::string &what) {
    if (succeeded(described))
      current->emitError()
          << what
          << " cannot be told by a manifest: leave out --manifest and run the "
             "host's code too (--emit nvvm shows it, docs/Runtime.md says how)";
    described = failure();
  }

  FailureOr<Object> finish(Object object) {
    if (failed(described))
      return failure();
    return object;
  }

  /// Which function to call for the tokens after those of the case before.
  static Array writeCases(const TokenSelection &selection) {
    Array cases;
    TokenClassOp classOf = selection.classOf;
    for (auto [i, number] : llvm::enumerate(classOf.getClasses())) {
      Object entry{{"function", selection.functions[number]}};
      if (i < classOf.getLast().size())
        entry["at_most"] = classOf.getLast()[i];
      cases.push_back(std::move(entry));
    }
    return cases;
  }

  std::string describe(Value value) {
    std::string text = describeExpression(value);
    nms::Expression parsed;
    if (!nms::Expression::parse(text, parsed))
      refuse("a value that is no expression over the arguments' sizes");
    return text;
  }

  Object writeResult(Value result) {
    std::string name = getName(getBufferOf(result));
    Object object{{"type", print(result.getType())}, {"buffer", name}};
    addView(object, result, name);
    return object;
  }

  /// Says which part of the buffer `name` `value` is, unless it is all of it.
  void addView(Object &object, Value value, StringRef name) {
    if (isWhole(value))
      return;
    ViewDescription view = getView(value, name);
    object["offset"] = view.offset;
    object["sizes"] = Array(view.sizes);
    object["strides"] = Array(view.strides);
  }

  ViewDescription getView(Value value, StringRef name) {
    if (std::optional<ViewDescription> view = describeView(value, name))
      return *view;
    refuse("a view that is no expression over the arguments' sizes");
    return {};
  }

  /// argN, or bufferN for memory that the host allocates.
  std::string getName(Value root) {
    if (auto argument = dyn_cast<BlockArgument>(root))
      return getArgumentName(argument);
    if (!isa<memref::AllocOp, gpu::AllocOp>(root.getDefiningOp()))
      refuse("memory that '" +
             root.getDefiningOp()->getName().getStringRef().str() + "' makes");
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
                                                : describe(*next++));
    }
    std::string name = it->second;
    Object object{{"name", name},
                  {"type", print(root.getType())},
                  {"sizes", std::move(sizes)}};
    for (Operation *user : root.getUsers())
      if (auto memset = dyn_cast<gpu::MemsetOp>(user))
        object["initial"] = describe(memset.getValue());
    if (llvm::any_of(checks,
                     [&](const PackCheck &c) { return c.found == root; }))
      object["initial"] = std::to_string(NMS_PACKED_NOTHING_FOUND);
    buffers.push_back(std::move(object));
    return name;
  }

  Object writeArgument(BlockArgument argument) {
    Object object{{"name", getName(argument)},
                  {"type", print(argument.getType())}};
    ComponentAttr component = getComponent(argument);
    if (!component) {
      object["role"] = "data";
      return object;
    }
    object["role"] = stringifyComponentRole(component.getComponent().role);
    object["component"] = component.getName();
    object["weight"] = component.getWeight();
    return object;
  }

  ComponentAttr getComponent(BlockArgument argument) {
    return function.getArgAttrOfType<ComponentAttr>(
        argument.getArgNumber(),
        NMSparseDialect::ComponentAttrHelper::getNameStr());
  }

  /// The weight that `values` belongs to; each weight has values once.
  Object writeWeight(ComponentAttr values) {
    PackedAttr packed = values.getPacked();
    Array components;
    for (const WeightComponent &component : packed.getComponents())
      for (BlockArgument argument : function.getArguments())
        if (ComponentAttr found = getComponent(argument);
            found && found.getWeight() == values.getWeight() &&
            found.getName() == component.name)
          components.push_back(
              Object{{"name", component.name},
                     {"role", stringifyComponentRole(component.role)},
                     {"argument", getName(argument)}});
    return Object{{"number", values.getWeight()},
                  {"encoding", print(Attribute(packed.getEncoding()))},
                  {"shape", Array(packed.getShape())},
                  {"element_type", print(packed.getElementType())},
                  {"packed_layout", packed.getLayoutVersion()},
                  {"components", std::move(components)}};
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
        add(scalar, describe(operand), "value");
        continue;
      }
      std::string name = getName(getBufferOf(operand));
      add("ptr", name, "allocated");
      add("ptr", name, "aligned");
      if (!isWhole(operand)) {
        ViewDescription view = getView(operand, name);
        add("i64", view.offset, "value");
        for (ArrayRef<std::string> numbers :
             {ArrayRef(view.sizes), ArrayRef(view.strides)})
          for (const std::string &number : numbers)
            add("i64", number, "value");
        continue;
      }
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

  /// Writes the arguments of cuTensorMapEncodeTiled beside the buffer's shape.
  Object writeTensorMap(nvgpu::TmaCreateDescriptorOp map) {
    nvgpu::TensorMapDescriptorType type = map.getTensorMap().getType();
    // Maps are made of buffers whose type does not say their rank.
    Value tensor = map.getTensor();
    if (auto cast = tensor.getDefiningOp<memref::CastOp>())
      tensor = cast.getSource();
    std::string name = getName(getBufferOf(tensor));
    Object object{
        {"type", "ptr"},
        {"source", name},
        {"field", "tensor_map"},
        {"box", Array(type.getTensor().getShape())},
        {"swizzle", nvgpu::stringifyTensorMapSwizzleKind(type.getSwizzle())},
        {"l2_promotion",
         nvgpu::stringifyTensorMapL2PromoKind(type.getL2promo())}};
    addView(object, tensor, name);
    return object;
  }

  Object writeLaunch(gpu::LaunchFuncOp launch) {
    auto dims = [this](gpu::KernelDim3 size) {
      return Array{describe(size.x), describe(size.y), describe(size.z)};
    };
    Object object{{"kernel", launch.getKernelName().getValue()},
                  {"grid", dims(launch.getGridSizeOperandValues())},
                  {"block", dims(launch.getBlockSizeOperandValues())},
                  {"parameters", writeParameters(launch)}};
    if (launch.hasClusterSize())
      object["cluster"] = dims(launch.getClusterSizeOperandValues());
    Value shared = launch.getDynamicSharedMemorySize();
    object["dynamic_shared_memory"] =
        shared ? describe(shared) : std::string("0");
    return object;
  }

  func::FuncOp function;
  std::vector<PackCheck> checks;
  Operation *current = nullptr; ///< The op that is being described.
  LogicalResult described = success();
  Array buffers;
  llvm::DenseMap<Value, std::string> names;
};

} // namespace

FailureOr<Object> nm_sparse::makeManifest(ModuleOp module,
                                          ArrayRef<ScheduledProduct> products,
                                          const ResourceMap *resources) {
  Object manifest{{"compiler", Object{{"name", "nm_sparse"},
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
        object["code_bytes"] = found->second.codeBytes;
      }
      kernels.push_back(std::move(object));
    }
  }
  // Version 3 has functions with `cases`, version 4 also `checks`.
  int64_t version = 2;
  for (auto function : module.getOps<func::FuncOp>())
    if (!function.isExternal()) {
      FailureOr<Object> written = FunctionWriter(function).write();
      if (failed(written))
        return failure();
      version = std::max<int64_t>(version, written->get("checks")  ? 4
                                           : written->get("cases") ? 3
                                                                   : 2);
      functions.push_back(std::move(*written));
    }
  for (const ScheduledProduct &product : products)
    scheduled.push_back(Object{{"function", product.function},
                               {"encoding", product.encoding},
                               {"schedule", product.schedule},
                               {"operands", product.shape}});
  manifest["manifest_version"] = version;
  manifest["kernels"] = std::move(kernels);
  manifest["functions"] = std::move(functions);
  manifest["products"] = std::move(scheduled);
  return manifest;
}
