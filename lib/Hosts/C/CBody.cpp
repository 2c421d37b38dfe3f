//===- CBody.cpp - the launches of a function in C ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// In order: places of buffers in the workspace, initial values, launches, and
// copies of results that are padded.
//
//===----------------------------------------------------------------------===//

#include "CExpressions.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::nm_sparse;
using namespace nms;

namespace {

class BodyWriter {
public:
  BodyWriter(raw_ostream &os, const ManifestFunction &function,
             const CSignature &signature, const KernelNumbers &kernels)
      : os(os), function(function), signature(signature), kernels(kernels),
        expressions(function, signature) {}

  void write();
  void writeBytes();

private:
  void placeBuffers();
  /// Bytes of buffer `number`.
  std::string writeBytes(unsigned number) const;
  void fillBuffers();
  void writeLaunch(const ManifestLaunch &launch);
  /// Declares the variable that parameter `number` is passed from.
  void declare(unsigned number, const ManifestParameter &parameter);
  void encodeMap(unsigned number, const ManifestParameter &parameter);
  void copyResult(unsigned number);

  /// The address of the first element of `source`, or of a part of it.
  std::string
  getPointer(const ManifestSource &source,
             const std::optional<ManifestView> &view = std::nullopt) const;
  const ManifestType &getType(const ManifestSource &source) const {
    return source.isBuffer ? function.buffers[source.number].type
                           : function.arguments[source.number].type;
  }

  raw_ostream &os;
  const ManifestFunction &function;
  const CSignature &signature;
  const KernelNumbers &kernels;
  CExpressions expressions;
};

} // namespace

static std::string multiply(const std::vector<std::string> &factors) {
  return factors.empty() ? "1" : llvm::join(factors, " * ");
}

/// Which result has all of buffer `number` as its own memory.
static std::optional<unsigned> findOwner(const ManifestFunction &function,
                                         unsigned number) {
  for (unsigned result = 0; result < function.results.size(); ++result)
    if (isOwnBuffer(function, result) &&
        unsigned(function.results[result].source.number) == number)
      return result;
  return std::nullopt;
}

std::string
BodyWriter::getPointer(const ManifestSource &source,
                       const std::optional<ManifestView> &view) const {
  std::string pointer =
      source.isBuffer ? function.buffers[source.number].name
                      : "(CUdeviceptr)" + signature.getArgument(source.number);
  std::string offset = view ? expressions.write(view->offset) : "0";
  if (offset == "0")
    return pointer;
  return pointer + " + " + offset + " * " +
         std::to_string(getType(source).elementBytes);
}

std::string BodyWriter::writeBytes(unsigned number) const {
  return llvm::formatv(
      "{0} * {1}",
      multiply(expressions.writeSizes({true, int(number)}, std::nullopt)),
      function.buffers[number].type.elementBytes);
}

void BodyWriter::placeBuffers() {
  if (hasWorkspace(function))
    os << "  int64_t bytes = 0;\n";
  for (auto [number, buffer] : llvm::enumerate(function.buffers))
    if (!findOwner(function, number))
      os << llvm::formatv("  const int64_t {0}_at = nms_take(&bytes, {1});\n",
                          buffer.name, writeBytes(number));
  for (auto [number, buffer] : llvm::enumerate(function.buffers)) {
    std::optional<unsigned> owner = findOwner(function, number);
    os << "  const CUdeviceptr " << buffer.name << " = ";
    if (owner)
      os << "(CUdeviceptr)" << signature.getResult(*owner) << ";\n";
    else
      os << "workspace + " << buffer.name << "_at;\n";
  }
}

void BodyWriter::fillBuffers() {
  for (auto [number, buffer] : llvm::enumerate(function.buffers)) {
    if (!buffer.initial)
      continue;
    ManifestSource source{true, int(number)};
    os << llvm::formatv(
        "  NMS_TRY(nms_fill({0}, {1}, {2}, {3}, stream));\n", buffer.name,
        multiply(expressions.writeSizes(source, std::nullopt)),
        buffer.type.elementBytes, expressions.write(*buffer.initial));
  }
}

void BodyWriter::encodeMap(unsigned number,
                           const ManifestParameter &parameter) {
  const ManifestType &type = getType(parameter.source);
  std::vector<std::string> sizes =
      expressions.writeSizes(parameter.source, parameter.view);
  std::vector<std::string> strides =
      expressions.writeStrides(parameter.source, parameter.view);
  auto writeNumbers = [](llvm::ArrayRef<int64_t> numbers) {
    return llvm::join(
        llvm::map_range(numbers,
                        [](int64_t number) { return std::to_string(number); }),
        ", ");
  };
  const ManifestTensorMap &map = parameter.map;
  os << "    CUtensorMap p" << number << ";\n";
  os << llvm::formatv("    {\n"
                      "      const int64_t sizes[] = {{{0}};\n"
                      "      const int64_t strides[] = {{{1}};\n"
                      "      const uint32_t box[] = {{{2}};\n",
                      llvm::join(sizes, ", "), llvm::join(strides, ", "),
                      writeNumbers(map.box));
  std::string pointer = getPointer(parameter.source, parameter.view);
  if (map.im2col)
    os << llvm::formatv(
        "      const int lower[] = {{{0}}, upper[] = {{{1}};\n"
        "      const uint32_t steps[] = {{{2}};\n"
        "      NMS_TRY(nms_encode_im2col(&p{3}, {4}, {5}, {6}, sizes,\n"
        "                                strides, box, lower, upper, steps,\n"
        "                                {7}, {8}));\n"
        "    }\n",
        writeNumbers(map.im2col->lower), writeNumbers(map.im2col->upper),
        writeNumbers(map.im2col->strides), number, type.getMapType(),
        type.elementBytes, pointer, map.swizzle, map.l2Promotion);
  else
    os << llvm::formatv(
        "      NMS_TRY(nms_encode(&p{0}, {1}, {2}, {3}, {4}, sizes,\n"
        "                         strides, box, {5}, {6}));\n"
        "    }\n",
        number, type.getMapType(), sizes.size(), type.elementBytes, pointer,
        map.swizzle, map.l2Promotion);
}

void BodyWriter::declare(unsigned number, const ManifestParameter &parameter) {
  switch (parameter.kind) {
  case ManifestParameter::Kind::Pointer:
    os << "    CUdeviceptr p" << number << " = " << getPointer(parameter.source)
       << ";\n";
    return;
  case ManifestParameter::Kind::TensorMap:
    encodeMap(number, parameter);
    return;
  case ManifestParameter::Kind::Number:
    std::string value = expressions.write(parameter.value);
    // A size fits, or the call is refused; the caller's numbers have a type.
    if (parameter.type == "i32" && !parameter.isCallersNumber()) {
      os << llvm::formatv(
          "    int32_t p{0};\n    NMS_TRY(nms_narrow(&p{0}, {1}));\n", number,
          value);
      return;
    }
    os << llvm::formatv("    {0} p{1} = ({0})({2});\n",
                        getNumberType(parameter.type), number, value);
    return;
  }
}

void BodyWriter::writeLaunch(const ManifestLaunch &launch) {
  auto writeList = [&](const std::vector<Expression> &list) {
    SmallVector<std::string> texts;
    for (const Expression &expression : list)
      texts.push_back(expressions.write(expression));
    return llvm::join(texts, ", ");
  };
  // Nothing of an empty launch needs to exist.
  os << llvm::formatv("  const int64_t grid{0}[] = {{{1}};\n",
                      &launch - function.launches.data(),
                      writeList(launch.grid));
  std::string grid =
      "grid" + std::to_string(&launch - function.launches.data());
  os << llvm::formatv("  if ({0}[0] > 0 && {0}[1] > 0 && {0}[2] > 0) {{\n",
                      grid);
  std::vector<std::string> names;
  for (auto [number, parameter] : llvm::enumerate(launch.parameters)) {
    declare(number, parameter);
    names.push_back("&p" + std::to_string(number));
  }
  if (names.empty())
    names.emplace_back("NULL");
  os << llvm::formatv(
      "    void *parameters[] = {{{0}};\n"
      "    const int64_t block[] = {{{1}};\n"
      "    NMS_TRY(nms_launch({2}, {3}, block, {4}, parameters, "
      "stream)); // {5}\n"
      "  }\n",
      llvm::join(names, ", "), writeList(launch.block),
      kernels.at(launch.kernel), grid, expressions.write(launch.sharedBytes),
      launch.kernel);
}

void BodyWriter::copyResult(unsigned number) {
  const ManifestResult &result = function.results[number];
  if (!result.source.isBuffer || isOwnBuffer(function, number))
    return;
  std::vector<std::string> sizes =
      expressions.writeSizes(result.source, result.view);
  std::vector<std::string> strides =
      expressions.writeStrides(result.source, result.view);
  int64_t bytes = result.type.elementBytes;
  os << llvm::formatv(
      "  {\n"
      "    const int64_t sizes[] = {{{0}};\n"
      "    const int64_t strides[] = {{{1}};\n"
      "    NMS_TRY(nms_copy((CUdeviceptr){2}, {3}, {4}, sizes,\n"
      "                     strides, {5}, stream));\n"
      "  }\n",
      llvm::join(sizes, ", "), llvm::join(strides, ", "),
      signature.getResult(number), getPointer(result.source, result.view),
      sizes.size(), bytes);
}

void BodyWriter::write() {
  os << "  CUresult status = nms_prepare();\n"
        "  if (status != CUDA_SUCCESS)\n"
        "    return status;\n";
  placeBuffers();
  fillBuffers();
  for (const ManifestLaunch &launch : function.launches)
    writeLaunch(launch);
  for (unsigned number = 0; number < function.results.size(); ++number)
    copyResult(number);
  os << "done: NMS_UNUSED;\n"
        "  return status;\n";
}

void BodyWriter::writeBytes() {
  os << "  int64_t bytes = 0;\n";
  for (unsigned number = 0; number < function.buffers.size(); ++number)
    if (!findOwner(function, number))
      os << "  nms_take(&bytes, " << writeBytes(number) << ");\n";
  os << "  return bytes;\n";
}

bool nm_sparse::hasWorkspace(const ManifestFunction &function) {
  for (unsigned number = 0; number < function.buffers.size(); ++number)
    if (!findOwner(function, number))
      return true;
  return false;
}

void nm_sparse::writeCBytes(raw_ostream &os, const ManifestFunction &function,
                            const CSignature &signature) {
  BodyWriter(os, function, signature, {}).writeBytes();
}

void nm_sparse::writeCBody(raw_ostream &os, const ManifestFunction &function,
                           const CSignature &signature,
                           const KernelNumbers &kernels) {
  BodyWriter(os, function, signature, kernels).write();
}
