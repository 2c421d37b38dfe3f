//===- NMSparseBase.td - the nm_sparse dialect -------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_BASE_TD
#define NM_SPARSE_BASE_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/DialectBase.td"
include "mlir/IR/OpBase.td"

def NMSparse_Dialect : Dialect {
  let name = "nm_sparse";
  let cppNamespace = "::mlir::nm_sparse";
  let summary = "N:M-sparse weights and contractions";
  let description = [{
    The `nm_sparse` dialect holds a tensor encoding for N:M-sparse weights, and
    the operations that pack such weights and multiply with them. It knows
    nothing of the machine that multiplies: how one product is compiled is an
    attribute of the host (`MatmulConfigInterface`), such as the
    `#nm_tile.schedule` of this project's GPU kernels.

    A weight whose type carries `#nm_sparse.encoding` is logically dense. The
    front door (`--convert-linalg-to-nm-sparse`) turns every contraction with
    such a weight into `nm_sparse.pack` and `nm_sparse.matmul`; from there on a
    sparse weight is a list of plain tensors, its components (`values`, `index`),
    whose layout `docs/Encoding.md` specifies. Forms other than the canonical one
    are attributes that implement `WeightStorageInterface`: those of
    `lib/Dialect/NMSparse/Storages`, a folder each, are `#nm_sparse.<name>`, and
    other dialects may have their own.

    Its operations work on whole tensors: `prune`, `pack`, `unpack`, `matmul`.
    The tiles of one CTA are for the `nm_tile` dialect.
  }];
  // Tiling creates operations of all of these.
  let dependentDialects = ["::mlir::affine::AffineDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
  let extraClassDeclaration = [{
    /// Returns true if this build has a form of that name, such as `bitmap`.
    bool hasStorage(::llvm::StringRef name) const;
    /// The form of that name, such as `bitmap`, of a weight of `encoding`; null
    /// where this build has none, or that form cannot hold it.
    WeightStorageInterface getStorage(::llvm::StringRef name,
                                      EncodingAttr encoding) const;
    /// The form that a weight of `encoding` has unless it says otherwise.
    WeightStorageInterface getDefaultStorage(EncodingAttr encoding) const;

    ::mlir::Attribute parseAttribute(::mlir::DialectAsmParser &parser,
                                     ::mlir::Type type) const override;
    void printAttribute(::mlir::Attribute attribute,
                        ::mlir::DialectAsmPrinter &printer) const override;

  private:
    /// A form that a folder of Storages defines.
    struct Storage {
      ::llvm::StringRef name;
      ::mlir::TypeID type;
      ::mlir::Attribute (*parse)(::mlir::AsmParser &);
      void (*print)(::mlir::AsmPrinter &, ::mlir::Attribute);
      ::mlir::Attribute (*get)(EncodingAttr);
      bool (*isDefaultFor)(EncodingAttr);
    };

    template <typename... Attrs>
    void addStorages() {
      (addStorage<Attrs>(), ...);
    }
    template <typename AttrT>
    void addStorage() {
      addAttributes<AttrT>();
      storages.push_back(
          {AttrT::getMnemonic(), ::mlir::TypeID::get<AttrT>(),
           [](::mlir::AsmParser &parser) {
             return AttrT::parse(parser, ::mlir::Type());
           },
           [](::mlir::AsmPrinter &printer, ::mlir::Attribute attribute) {
             ::llvm::cast<AttrT>(attribute).print(printer);
           },
           [](EncodingAttr encoding) -> ::mlir::Attribute {
             return AttrT::getChecked(
                 [] { return ::mlir::InFlightDiagnostic(); },
                 encoding.getContext(), encoding);
           },
           &AttrT::isDefaultFor});
    }
    /// Adds those of NM_SPARSE_STORAGES.
    void addOwnStorages();

    ::llvm::SmallVector<Storage> storages;

  public:
  }];
  let discardableAttrs = (ins
    // On a linalg contraction: the config of the nm_sparse.matmul that
    // --convert-linalg-to-nm-sparse makes of it.
    "::mlir::nm_sparse::MatmulConfigInterface":$config,
    // On a linalg contraction or an nm_sparse.matmul: the encoding that the
    // weight is stored by, which it must obey, too; its own where it is to be
    // stored by that.
    "::mlir::nm_sparse::EncodingAttr":$embed,
    // On an argument or result of a function that holds a component of a
    // packed weight.
    "::mlir::nm_sparse::ComponentAttr":$component,
    // On a function: the number of tokens that its layouts and schedules are
    // chosen for, where that is dynamic.
    "::mlir::IntegerAttr":$tokens,
    // On an nm_sparse.matmul: bytes of code at most that its weight, a constant,
    // may become.
    "::mlir::IntegerAttr":$max_code_bytes
  );
  let hasConstantMaterializer = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
}

class NMSparse_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<NMSparse_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

class NMSparse_Op<string mnemonic, list<Trait> traits = []>
    : Op<NMSparse_Dialect, mnemonic, traits>;

#endif // NM_SPARSE_BASE_TD
