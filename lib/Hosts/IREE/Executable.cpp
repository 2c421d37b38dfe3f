//===- Executable.cpp - kernels as an executable of IREE ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Executable.h"

#include "nm_sparse/Support/MakeError.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::nm_sparse;
using namespace nms;

llvm::Error Executable::add(const ManifestLaunch &launch) {
  auto getNumber = [](const Expression &expression) {
    int64_t number = -1;
    return expression.isNumber(number) ? number : -1;
  };
  int64_t block[3], shared = getNumber(launch.sharedBytes);
  for (int i = 0; i < 3; ++i)
    block[i] = getNumber(launch.block[i]);
  if (shared < 0 || llvm::is_contained(block, -1))
    return makeError("kernel {0} has threads or shared memory that depend on "
                     "sizes, and IREE knows them when it compiles",
                     launch.kernel);
  SmallVector<StringRef> bindings;
  int64_t constants = 0;
  for (const ManifestParameter &parameter : launch.parameters) {
    if (parameter.kind == ManifestParameter::Kind::TensorMap)
      return makeError("kernel {0} takes a tensor map{1}", launch.kernel,
                       parameter.map.im2col
                           ? " in mode im2col, which neither IREE nor a kernel "
                             "encodes: choose a schedule without it"
                           : ", which IREE does not encode: let kernels make "
                             "them (--arguments device-maps)");
    if (parameter.kind == ManifestParameter::Kind::Number) {
      if (parameter.type != "i32" && parameter.type != "f32")
        return makeError("kernel {0} takes a number of type {1}, and IREE "
                         "passes numbers of 32 bits",
                         launch.kernel, parameter.type);
      ++constants;
      continue;
    }
    bindings.push_back(parameter.access == ManifestAccess::Read
                           ? "#hal.pipeline.binding<storage_buffer, ReadOnly>"
                           : "#hal.pipeline.binding<storage_buffer>");
  }
  std::string properties =
      llvm::formatv("workgroup_size = [{0} : index, {1} : index, {2} : index]",
                    block[0], block[1], block[2]);
  if (shared > 0)
    properties +=
        llvm::formatv(", workgroup_local_memory = {0} : index", shared);
  std::string text = llvm::formatv(
      "layout(#hal.pipeline.layout<constants = {0}, bindings = [\n"
      "          {1}]>)\n"
      "        count(%device: !hal.device, %x: index, %y: index, %z: index)\n"
      "            -> (index, index, index) {{\n"
      "      hal.return %x, %y, %z : index, index, index\n"
      "    } {2}\n",
      constants, llvm::join(bindings, ",\n          "),
      options.isLegacy() ? "attributes {" + properties + "}"
                         : "<{" + properties + "}>");
  auto [place, isNew] = exports.insert({launch.kernel, text});
  if (!isNew && place->second != text)
    return makeError("kernel {0} is launched in two ways, and an export of "
                     "IREE has one",
                     launch.kernel);
  return llvm::Error::success();
}

void Executable::write(raw_ostream &os, StringRef image) const {
  std::string object = llvm::formatv(
      "objects = #hal.executable.objects<{{\n"
      "      #hal.executable.target<\"cuda\", \"cuda-nvptx-fb\"> = [\n"
      "        #hal.executable.object<{{path = \"{0}.ptx\", data = dense<\"0x",
      name);
  os << "  hal.executable.source private @" << name
     << (options.isLegacy() ? " attributes {" : " <{") << object
     << llvm::toHex(image) << "\"> : vector<" << image.size() << "xi8>}>]}>"
     << (options.isLegacy() ? "}" : "}>") << " {\n";
  for (auto [number, entry] : llvm::enumerate(exports))
    os << "    hal.executable.export public @" << entry.first << " ordinal("
       << number << ")\n        " << entry.second;
  os << "  }\n";
}
