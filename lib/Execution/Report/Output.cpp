//===- Output.cpp - results as files --------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Report/Output.h"

#include "nm_sparse/Base/Kind.h"
#include "nm_sparse/Support/OutputFile.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::nm_sparse;

static StringRef getNumpyType(int32_t kind) {
  switch (kind) {
  case NMS_F64:
    return "<f8";
  case NMS_F32:
    return "<f4";
  case NMS_F16:
    return "<f2";
  case NMS_BF16:
    return "<u2";
  case NMS_F8E4M3FN:
  case NMS_F8E5M2:
    return "|u1";
  case NMS_I32:
    return "<i4";
  default:
    return "|i1";
  }
}

/// Format version 1.0: magic, length of the header, the header, the data.
static void writeNumpy(const HostArray &array, llvm::raw_ostream &stream) {
  constexpr size_t prefixBytes = 10, alignment = 64;
  std::string shape;
  for (int64_t extent : array.shape)
    shape += std::to_string(extent) + ", ";
  std::string header = llvm::formatv(
      "{{'descr': '{0}', 'fortran_order': False, 'shape': ({1}), }",
      getNumpyType(array.kind), shape);
  size_t padded = llvm::alignTo(prefixBytes + header.size() + 1, alignment);
  header.append(padded - prefixBytes - header.size() - 1, ' ');
  header += '\n';
  char length[2];
  llvm::support::endian::write16le(length, header.size());
  stream << "\x93NUMPY\x01" << '\0' << StringRef(length, 2) << header
         << StringRef(array.data.data(), array.data.size());
}

llvm::Error nm_sparse::writeResults(StringRef prefix,
                                    ArrayRef<HostArray> results,
                                    RunReport &report) {
  llvm::json::Array files;
  for (size_t i = 0; i < results.size(); ++i) {
    const HostArray &result = results[i];
    std::string file = llvm::formatv("{0}.{1}.npy", prefix, i);
    std::string contents;
    llvm::raw_string_ostream stream(contents);
    writeNumpy(result, stream);
    auto output = OutputFile::create(file, std::move(contents));
    if (!output)
      return output.takeError();
    if (llvm::Error error = output->keep())
      return error;
    files.push_back(
        llvm::json::Object{{"file", llvm::json::fixUTF8(file)},
                           {"kind", nmsKindName(result.kind)},
                           {"shape", llvm::json::Array(result.shape)}});
  }
  report.json["outputs"] = std::move(files);
  return llvm::Error::success();
}
