//===- WeightStorage.td - the tensors that hold a weight ---*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_WEIGHT_STORAGE_TD
#define NM_SPARSE_WEIGHT_STORAGE_TD

include "mlir/IR/EnumAttr.td"
include "mlir/IR/Interfaces.td"

def NMSparse_ComponentRole : I32EnumAttr<"ComponentRole",
    "what the elements of a component are", [
      I32EnumAttrCase<"Values", 0, "values">,
      I32EnumAttrCase<"Positions", 1, "positions">,
      I32EnumAttrCase<"Bits", 2, "bits">,
      I32EnumAttrCase<"Panels", 3, "panels">,
      I32EnumAttrCase<"Permutation", 4, "permutation">]> {
  let cppNamespace = "::mlir::nm_sparse";
  let genSpecializedAttr = 0;
}

def NMSparse_WeightStorageInterface : AttrInterface<"WeightStorageInterface"> {
  let description = [{
    Which plain tensors hold a sparse weight. A weight is a list of components,
    each with a name, a role and a type; nothing but an implementation of this
    interface knows how many there are.

    `#nm_sparse.encoding` implements it with the canonical form of
    `docs/Encoding.md`: an encoding has exactly one, so that an attribute beside
    it would say nothing more. A form that some kernels need, such as
    `#nm_sparse.bitmap`, is an attribute that holds the encoding and implements
    this interface as well.
  }];
  let cppNamespace = "::mlir::nm_sparse";
  let methods = [
    InterfaceMethod<"The pattern of the weight, an `#nm_sparse.encoding`.",
      "::mlir::Attribute", "getPattern">,
    InterfaceMethod<[{
      The version of `docs/Encoding.md` that specifies the components.
    }], "int64_t", "getLayoutVersion">,
    InterfaceMethod<[{
      The components of `weight`, a dense type of static shape, in the order in
      which functions and operations take them; the values come first.
      `verifyPackable` must hold.
    }], "::llvm::SmallVector<::mlir::nm_sparse::WeightComponent>",
      "getComponents", (ins "::mlir::RankedTensorType":$weight)>,
    InterfaceMethod<[{
      Fails, with the reason and the remedy, when a weight cannot be stored in
      this form.
    }], "::llvm::LogicalResult", "verifyPackable",
      (ins "::llvm::function_ref<::mlir::InFlightDiagnostic()>":$emitError)>,
    InterfaceMethod<"Its name, as in tables and options.",
      "::llvm::StringRef", "getFormName">,
    InterfaceMethod<[{
      The tiles that a weight of `element` lies in; none where it lies in panels.
    }], "::std::optional<::mlir::nm_sparse::BitmapTile>", "getStoredTile",
      (ins "::mlir::Type":$element), "", "return ::std::nullopt;">,
    InterfaceMethod<[{
      How panels list the rows that they keep; none where the pattern says it.
    }], "::std::optional<::mlir::nm_sparse::ListedPanels>", "getListedPanels",
      (ins), "", "return ::std::nullopt;">,
    InterfaceMethod<[{
      The pattern, an `#nm_sparse.encoding`, that a kernel of one tile sees, of a
      weight with `contraction` dense rows.
    }], "::mlir::Attribute", "getTilePattern",
      (ins "int64_t":$contraction), "", "return $_attr.getPattern();">,
    InterfaceMethod<[{
      The share of the elements that is expected to be kept, where the pattern
      that a tile sees does not say it.
    }], "::std::optional<double>", "getExpectedDensity", (ins), "",
      "return ::std::nullopt;">,
    InterfaceMethod<[{
      The same form, with `percent` of its elements or rows expected to be kept,
      unless it says that itself, or its pattern does.
    }], "::mlir::Attribute", "withDensity", (ins "int64_t":$percent), "",
      "return $_attr;">,
    InterfaceMethod<[{
      The same form of another pattern, an `#nm_sparse.encoding`.
    }], "::mlir::Attribute", "withPattern", (ins "::mlir::Attribute":$pattern)>
  ];
}

#endif // NM_SPARSE_WEIGHT_STORAGE_TD
