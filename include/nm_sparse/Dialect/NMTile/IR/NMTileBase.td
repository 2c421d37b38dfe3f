//===- NMTileBase.td - the nm_tile dialect -----------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMTILE_IR_NMTILEBASE_TD
#define NM_SPARSE_DIALECT_NMTILE_IR_NMTILEBASE_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/DialectBase.td"
include "mlir/IR/OpBase.td"

def NMTile_Dialect : Dialect {
  let name = "nm_tile";
  let cppNamespace = "::mlir::nm_sparse";
  let summary = "the tiles of one CTA of an N:M-sparse product";
  let description = [{
    What one CTA of a sparse product does with its tiles: transfers of operand
    tiles to shared memory (`async_copy`, `async_gather`, `bulk_copy`), the
    product of one K step (`matmul`), and requests to L2 (`prefetch`).
    `#nm_tile.schedule`, the config of an `nm_sparse.matmul`, says how the threads
    of the CTA share the work.

    The attributes of products (`#nm_tile.wgmma` and so on) are defined in
    `lib/Products`, those of transfers (`#nm_tile.gather`) in `lib/Transfers`, a
    folder each, and added to this dialect by dialect extensions
    (`addExternalAttributes`, `addTransfers`).

    Around them, the structure of the kernel: the K loop (`k_loop`), the loop over
    tiles of a CTA that stays on its SM (`tile_loop`), producers and consumers
    (`warp_specialize`), and the ring of slots through which tiles go from one to
    the other (`ring` and what begins with `ring_`). Passes find it by these
    operations and their operands, until `--nm-sparse-lower-roles` makes mbarriers
    and `scf` of it. No discardable attribute of them means anything.

    `nm_tile.im2col`, on an `nvgpu.tma.create.descriptor`, makes a tensor map in
    mode im2col of it, whose box is pixels and channels of images of
    `(h, w, channels)`: `{lower = array<i64: 0, 0>, upper = array<i64: -2, -2>,
    strides = array<i64: 1, 1>}` goes over the places of a 3x3 window without
    padding. Each array is for `(h, w)`.

    The operations come from `nm_sparse.matmul` and leave as one thread's code in
    `nvgpu`, `nvvm`, `vector`, `memref` and `arith`.
  }];
  let useDefaultTypePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let extraClassDeclaration = [{
    /// Adds attributes that another library defines, such as a product. They
    /// print and parse as `#nm_tile.<mnemonic>`.
    template <typename... Attrs>
    void addExternalAttributes() {
      (addExternalAttribute<Attrs>(), ...);
    }

    /// Adds attributes without parameters that say how an operand comes.
    template <typename... Attrs>
    void addTransfers() {
      (addTransfer<Attrs>(), ...);
    }
    /// The transfers that were added, in that order.
    ::llvm::ArrayRef<TransferAttrInterface> getTransfers() const {
      return transfers;
    }
    /// The one of that name; null where there is none.
    TransferAttrInterface getTransfer(::llvm::StringRef name) const;

    ::mlir::Attribute parseAttribute(::mlir::DialectAsmParser &parser,
                                     ::mlir::Type type) const override;
    void printAttribute(::mlir::Attribute attribute,
                        ::mlir::DialectAsmPrinter &printer) const override;

    /// Parses an attribute of this dialect without its `#nm_tile.`. Yields no
    /// value, and the word that was found, where no attribute has that name.
    ::mlir::OptionalParseResult parseBare(::mlir::AsmParser &parser,
                                          ::llvm::StringRef &mnemonic,
                                          ::mlir::Attribute &attribute) const;
    /// Prints an attribute without its `#nm_tile.`; fails where it belongs to
    /// another dialect.
    ::llvm::LogicalResult printBare(::mlir::AsmPrinter &printer,
                                    ::mlir::Attribute attribute) const;

  private:
    using ExternalParser = ::mlir::Attribute (*)(::mlir::AsmParser &);
    using ExternalPrinter = void (*)(::mlir::AsmPrinter &, ::mlir::Attribute);

    template <typename AttrT>
    void addExternalAttribute() {
      addAttributes<AttrT>();
      externalParsers[AttrT::getMnemonic()] = [](::mlir::AsmParser &parser) {
        return AttrT::parse(parser, ::mlir::Type());
      };
      externalPrinters[::mlir::TypeID::get<AttrT>()] =
          [](::mlir::AsmPrinter &printer, ::mlir::Attribute attribute) {
            printer << AttrT::getMnemonic();
            ::llvm::cast<AttrT>(attribute).print(printer);
          };
    }

    template <typename AttrT>
    void addTransfer() {
      addAttributes<AttrT>();
      transfers.push_back(AttrT::get(getContext()));
      externalParsers[AttrT::getMnemonic()] = [](::mlir::AsmParser &parser) {
        return ::mlir::Attribute(AttrT::get(parser.getContext()));
      };
      externalPrinters[::mlir::TypeID::get<AttrT>()] =
          [](::mlir::AsmPrinter &printer, ::mlir::Attribute) {
            printer << AttrT::getMnemonic();
          };
    }

    ::llvm::StringMap<ExternalParser> externalParsers;
    ::llvm::DenseMap<::mlir::TypeID, ExternalPrinter> externalPrinters;
    ::llvm::SmallVector<TransferAttrInterface> transfers;

  public:
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect",
                           "::mlir::nm_sparse::NMSparseDialect",
                           "::mlir::nvgpu::NVGPUDialect"];
}

class NMTile_Op<string mnemonic, list<Trait> traits = []>
    : Op<NMTile_Dialect, mnemonic, traits>;

class NMTile_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<NMTile_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

#endif // NM_SPARSE_DIALECT_NMTILE_IR_NMTILEBASE_TD
