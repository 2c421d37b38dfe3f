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

static constexpr StringLiteral kSegments = "operandSegmentSizes";

/// The attributes of a matmul in a file of version 0, under the names of
/// version 1.
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
  attributes.append(kSegments, segments);
  if (schedule)
    attributes.append("config", schedule);
  if (storage)
    attributes.append("storage", storage);
  return attributes.getDictionary(reader.getContext());
}

/// Returns the attributes of a matmul of version 0 or 1 as they are today. It
/// had its operands in the order x, values, index, init, panel_offset,
/// first_row, inner_index, panels, of which all behind init could be absent.
/// NMSparseBytecodeInterface puts them into today's order.
static FailureOr<DictionaryAttr>
upgradeMatmulVersion1(DictionaryAttr old, uint64_t version,
                      function_ref<InFlightDiagnostic()> emitError) {
  auto counts = old.getAs<DenseI32ArrayAttr>(kSegments);
  if (!counts || counts.size() != 8)
    return emitError()
           << "a matmul of version 0 or 1 has 8 counts of operands, got "
           << old;
  ArrayRef<int32_t> count = counts;
  // Files without a version cannot be upgraded when all operands are there.
  if (version == 0 && (count[6] || count[7]))
    return emitError()
           << "the file was written before the bytecode of nm_sparse had a "
              "version, and its matmuls of more than two components are no "
              "longer read; read it with a release of bytecode version 1, and "
              "write it again";
  MLIRContext *context = old.getContext();
  SmallVector<StringRef> names;
  if (count[4])
    names.push_back(kPanelOffsetPlace);
  if (count[5])
    names.push_back(kFirstRowPlace);
  NamedAttrList attributes(old);
  attributes.set(kSegments,
                 DenseI32ArrayAttr::get(context, {1, 2 + count[6] + count[7], 1,
                                                  count[4] + count[5]}));
  if (!names.empty())
    attributes.append("place_names", Builder(context).getStrArrayAttr(names));
  return attributes.getDictionary(context);
}

LogicalResult MatmulOp::readProperties(DialectBytecodeReader &reader,
                                       OperationState &state) {
  uint64_t version =
      getBytecodeVersion(reader, NMSparseDialect::getDialectNamespace());
  auto emitError = [&] { return reader.emitError(); };
  FailureOr<DictionaryAttr> attributes = DictionaryAttr();
  if (version == 0)
    attributes = readMatmulVersion0(reader);
  else if (DictionaryAttr written; succeeded(reader.readAttribute(written)))
    attributes = written;
  else
    return failure();
  if (succeeded(attributes) && version < 2)
    attributes = upgradeMatmulVersion1(*attributes, version, emitError);
  if (failed(attributes))
    return failure();
  return setPropertiesFromAttr(state.getOrAddProperties<Properties>(),
                               *attributes, emitError);
}

LogicalResult NMSparseBytecodeInterface::upgradeFromVersion(
    Operation *top, const DialectVersion &version) const {
  if (static_cast<const BytecodeVersion &>(version).number != 1)
    return success();
  top->walk([](MatmulOp op) {
    // x, two components, init, the places, and the components behind these two.
    constexpr unsigned init = 3;
    unsigned further = op.getComponents().size() - 2;
    SmallVector<Value> operands(op->getOperands());
    std::rotate(operands.begin() + init, operands.end() - further,
                operands.end());
    op->setOperands(operands);
  });
  return success();
}

void MatmulOp::writeProperties(DialectBytecodeWriter &writer) {
  writer.writeAttribute(getPropertiesAsAttr(getContext(), getProperties()));
}
