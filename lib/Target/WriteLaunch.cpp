//===- WriteLaunch.cpp - a launch for the manifest ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A launch passes memrefs, each as its fields, or, after
// --nm-sparse-bind-arguments, the pointers and numbers themselves.
//
//===----------------------------------------------------------------------===//

#include "FunctionWriter.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "nm_sparse/GPU/Support/Buffers.h"
#include "nm_sparse/GPU/Support/Im2col.h"
#include "nm_sparse/GPU/Support/KernelArguments.h"
#include "nm_sparse/Target/Target.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::nm_sparse;
using llvm::json::Array;
using llvm::json::Object;

/// Bytes that what a pointer refers to must begin at a multiple of
/// (docs/Manifest.md).
static constexpr int64_t kAlignment = 16;

/// Names the accesses of the kernel through its argument `number`.
static StringRef describeAccess(LLVM::LLVMFuncOp kernel, unsigned number) {
  using Dialect = LLVM::LLVMDialect;
  auto has = [&](StringRef name) {
    return kernel && number < kernel.getNumArguments() &&
           kernel.getArgAttr(number, name);
  };
  return has(Dialect::getReadnoneAttrName())    ? "none"
         : has(Dialect::getReadonlyAttrName())  ? "read"
         : has(Dialect::getWriteOnlyAttrName()) ? "write"
                                                : "read_write";
}

static Object makeParameter(const std::string &type, const std::string &source,
                            const std::string &field) {
  return Object{{"type", type}, {"source", source}, {"field", field}};
}

static Object makePointer(const std::string &source, StringRef field,
                          StringRef access) {
  Object object = makeParameter("ptr", source, field.str());
  object["access"] = access;
  object["alignment"] = kAlignment;
  return object;
}

Object FunctionWriter::writePointer(Value operand, StringRef access) {
  BufferPlace place = findPlace(operand);
  if (!place.buffer || place.bytes != 0)
    refuse("a pointer that is not the start of a buffer");
  return makePointer(place.buffer ? getName(place.buffer) : "", "aligned",
                     access);
}

void FunctionWriter::writeMemref(Value operand, StringRef access, Array &into) {
  std::string name = getName(getBufferOf(operand));
  into.push_back(makePointer(name, "allocated", access));
  into.push_back(makePointer(name, "aligned", access));
  if (!isWhole(operand)) {
    ViewDescription view = getView(operand, name);
    into.push_back(makeParameter("i64", view.offset, "value"));
    for (ArrayRef<std::string> numbers :
         {ArrayRef(view.sizes), ArrayRef(view.strides)})
      for (const std::string &number : numbers)
        into.push_back(makeParameter("i64", number, "value"));
    return;
  }
  into.push_back(makeParameter("i64", name, "offset"));
  int64_t rank = cast<MemRefType>(operand.getType()).getRank();
  for (StringRef field : {"size", "stride"})
    for (int64_t dim = 0; dim < rank; ++dim)
      into.push_back(makeParameter(
          "i64", name, llvm::formatv("{0}[{1}]", field, dim).str()));
}

Array FunctionWriter::writeParameters(gpu::LaunchFuncOp launch) {
  auto kernel = SymbolTable::lookupNearestSymbolFrom<LLVM::LLVMFuncOp>(
      launch, launch.getKernelAttr());
  Array parameters;
  unsigned number = 0; // Among the arguments of the kernel.
  for (Value operand : launch.getKernelOperands()) {
    Type type = operand.getType();
    // Both pointers of a memref are marked; the second one is used.
    unsigned pointer = number + (isa<MemRefType>(type) ? 1 : 0);
    if (nvgpu::TmaCreateDescriptorOp map = getTensorMap(operand)) {
      bool isByValue =
          kernel &&
          kernel.getArgAttr(number, LLVM::LLVMDialect::getByValAttrName());
      parameters.push_back(writeTensorMap(map, isByValue));
    } else if (isa<MemRefType>(type)) {
      writeMemref(operand, describeAccess(kernel, pointer), parameters);
    } else if (isa<LLVM::LLVMPointerType>(type)) {
      parameters.push_back(
          writePointer(operand, describeAccess(kernel, pointer)));
    } else {
      std::string scalar = "i64";
      if (!type.isIndex()) {
        scalar.clear();
        llvm::raw_string_ostream(scalar) << type;
      }
      parameters.push_back(makeParameter(scalar, describe(operand), "value"));
    }
    number += countArguments(type);
  }
  return parameters;
}

Object FunctionWriter::writeTensorMap(nvgpu::TmaCreateDescriptorOp map,
                                      bool isByValue) {
  nvgpu::TensorMapDescriptorType type = map.getTensorMap().getType();
  // Maps are made of buffers whose type does not say their rank.
  Value tensor = map.getTensor();
  if (auto cast = tensor.getDefiningOp<memref::CastOp>())
    tensor = cast.getSource();
  std::string name = getName(getBufferOf(tensor));
  Object object{
      {"type", isByValue ? "tensor_map" : "ptr"},
      {"source", name},
      {"field", "tensor_map"},
      // Kernels copy by maps what they read, and write results themselves.
      {"access", "read"},
      {"alignment", kAlignment},
      {"box", Array(type.getTensor().getShape())},
      {"swizzle", nvgpu::stringifyTensorMapSwizzleKind(type.getSwizzle())},
      {"l2_promotion",
       nvgpu::stringifyTensorMapL2PromoKind(type.getL2promo())}};
  if (std::optional<Im2colBox> pixels = getIm2col(map))
    object["im2col"] = Object{{"lower", Array(pixels->lower)},
                              {"upper", Array(pixels->upper)},
                              {"strides", Array(pixels->strides)}};
  addView(object, tensor, name);
  return object;
}

Object FunctionWriter::writeLaunch(gpu::LaunchFuncOp launch) {
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
