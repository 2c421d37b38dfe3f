//===- NMSparseBytecode.cpp - the bytecode of nm_sparse -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attributes of the dialect are written as text, which is stable and small
// beside weights. What ODS generates for the attributes of an operation has no
// names, only their order, so that a new or renamed one makes old files
// unreadable. nm_sparse.matmul, which changes most, writes a dictionary
// instead.
//
// MLIR calls upgradeFromVersion only for files that have a version. So what
// differs in version 0 is mended here while an operation is read, by the same
// names that a later version would use.
//
//===----------------------------------------------------------------------===//

#include "NMSparseBytecode.h"

#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"

using namespace mlir;
using namespace mlir::nm_sparse;

//===----------------------------------------------------------------------===//
// Versions
//===----------------------------------------------------------------------===//

void VersionedBytecodeInterface::writeVersion(
    DialectBytecodeWriter &writer) const {
  writer.writeVarInt(current);
}

std::unique_ptr<DialectVersion>
VersionedBytecodeInterface::readVersion(DialectBytecodeReader &reader) const {
  uint64_t number;
  if (failed(reader.readVarInt(number)))
    return nullptr;
  if (number <= current)
    return std::make_unique<BytecodeVersion>(number);
  reader.emitError() << "the file has version " << number << " of dialect '"
                     << getDialect()->getNamespace()
                     << "', this build reads versions up to " << current
                     << "; read it with the release that wrote it, or a later "
                        "one";
  return nullptr;
}

uint64_t nm_sparse::getBytecodeVersion(DialectBytecodeReader &reader,
                                       StringRef dialect) {
  FailureOr<const DialectVersion *> version = reader.getDialectVersion(dialect);
  return succeeded(version)
             ? static_cast<const BytecodeVersion *>(*version)->number
             : 0;
}

//===----------------------------------------------------------------------===//
// MatmulOp
//===----------------------------------------------------------------------===//

/// The attributes of a matmul in a file of version 0, under the names that they
/// have today.
static FailureOr<DictionaryAttr>
readMatmulVersion0(DialectBytecodeReader &reader) {
  // As ODS generated it: in the order of their names, the counts of operands as
  // an attribute in old bytecode, and after all attributes since version 6.
  static constexpr uint64_t kNativeSegments = 6;
  Attribute encoding, maps, schedule, storage;
  DenseI32ArrayAttr segments;
  SmallVector<int32_t, 8> counts(8);
  bool isNative = reader.getBytecodeVersion() >= kNativeSegments;
  if (failed(reader.readAttribute(encoding)) ||
      failed(reader.readAttribute(maps)) ||
      (!isNative && failed(reader.readAttribute(segments))) ||
      failed(reader.readOptionalAttribute(schedule)) ||
      failed(reader.readOptionalAttribute(storage)) ||
      (isNative &&
       failed(reader.readSparseArray(MutableArrayRef<int32_t>(counts)))))
    return failure();
  Builder builder(reader.getContext());
  if (isNative)
    segments = builder.getDenseI32ArrayAttr(counts);
  NamedAttrList attributes;
  attributes.append("encoding", encoding);
  attributes.append("indexing_maps", maps);
  attributes.append("operandSegmentSizes", segments);
  if (schedule)
    attributes.append("config", schedule);
  if (storage)
    attributes.append("storage", storage);
  return attributes.getDictionary(reader.getContext());
}

LogicalResult MatmulOp::readProperties(DialectBytecodeReader &reader,
                                       OperationState &state) {
  DictionaryAttr attributes;
  if (getBytecodeVersion(reader, NMSparseDialect::getDialectNamespace()) == 0) {
    FailureOr<DictionaryAttr> old = readMatmulVersion0(reader);
    if (failed(old))
      return failure();
    attributes = *old;
  } else if (failed(reader.readAttribute(attributes))) {
    return failure();
  }
  return setPropertiesFromAttr(state.getOrAddProperties<Properties>(),
                               attributes, [&] { return reader.emitError(); });
}

void MatmulOp::writeProperties(DialectBytecodeWriter &writer) {
  writer.writeAttribute(getPropertiesAsAttr(getContext(), getProperties()));
}
