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
    this interface as well. What such a form does not say for itself is as in the
    canonical form of its pattern.
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
    InterfaceMethod<[{
      Returns true if values are outputs x kept rows, and not kept rows x outputs
      as in the canonical form.
    }], "bool", "isKMajor", (ins), "", "return false;">,
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
    }], "::mlir::Attribute", "withPattern", (ins "::mlir::Attribute":$pattern)>,
    InterfaceMethod<[{
      The names of the components, in their order, without those that a product
      does not read.
    }], "::llvm::SmallVector<::llvm::StringRef>", "getComponentNames">,
    InterfaceMethod<[{
      The components of `weight`, whose row-major bytes are `dense`. Data that
      breaks the pattern is an error that names window and panel.
    }], "::llvm::FailureOr<::llvm::SmallVector<::mlir::nm_sparse::PackedComponent>>",
      "pack", (ins "::mlir::RankedTensorType":$weight,
        "::llvm::ArrayRef<char>":$dense,
        "::llvm::function_ref<::mlir::InFlightDiagnostic()>":$emitError)>,
    InterfaceMethod<[{
      How the components say the number of windows; none where only the
      contraction size of the activations does.
    }], "::std::optional<::mlir::nm_sparse::WindowCount>", "getWindowCount",
      (ins "::mlir::Type":$element), "",
      "return ::llvm::cast<::mlir::nm_sparse::WeightStorageInterface>($_attr.getPattern()).getWindowCount(element);">,
    InterfaceMethod<[{
      Checks the components and places of an `nm_sparse.matmul` whose maps,
      element types and number of components are right. Fails with an error on
      the operation.
    }], "::llvm::LogicalResult", "verifyMatmul", (ins "::mlir::Operation *":$op),
      "", "return ::llvm::cast<::mlir::nm_sparse::WeightStorageInterface>($_attr.getPattern()).verifyMatmul(op);">,
    InterfaceMethod<[{
      Fails, with an error on `op`, an `nm_sparse.matmul`, where no slice of the
      weight is what a tile at these offsets of the iteration domain needs;
      `isPart` where the tile is a part of a sum.
    }], "::llvm::LogicalResult", "verifySlice", (ins "::mlir::Operation *":$op,
        "::llvm::ArrayRef<::mlir::OpFoldResult>":$offsets,
        "::llvm::ArrayRef<::mlir::OpFoldResult>":$sizes, "bool":$isPart), "",
      "return ::llvm::cast<::mlir::nm_sparse::WeightStorageInterface>($_attr.getPattern()).verifySlice(op, offsets, sizes, isPart);">,
    InterfaceMethod<[{
      The part of the weight of `op`, an `nm_sparse.matmul`, that the tile at
      these offsets of the iteration domain multiplies. `verifySlice` must hold.
    }], "::mlir::nm_sparse::WeightSlice", "slice", (ins
        "::mlir::OpBuilder &":$builder, "::mlir::Operation *":$op,
        "::llvm::ArrayRef<::mlir::OpFoldResult>":$offsets,
        "::llvm::ArrayRef<::mlir::OpFoldResult>":$sizes), "",
      "return ::llvm::cast<::mlir::nm_sparse::WeightStorageInterface>($_attr.getPattern()).slice(builder, op, offsets, sizes);">,
    InterfaceMethod<[{
      The extents that a component of this name has in the tile of one step of a
      kernel, of a weight of `element`.
    }], "::llvm::SmallVector<int64_t>", "getTileShape", (ins
        "::llvm::StringRef":$component, "::mlir::Type":$element,
        "const ::mlir::nm_sparse::WeightTile &":$tile), "",
      "return ::llvm::cast<::mlir::nm_sparse::WeightStorageInterface>($_attr.getPattern()).getTileShape(component, element, tile);">,
    InterfaceMethod<[{
      The dense weight, (k, n), where the attribute holds it and there are no
      components; else null.
    }], "::mlir::DenseElementsAttr", "getConstant", (ins), "", "return {};">,
    InterfaceMethod<[{
      The same form of that weight, (k, n), where the attribute can hold one; else
      null.
    }], "::mlir::Attribute", "withConstant",
      (ins "::mlir::DenseElementsAttr":$weight), "", "return {};">,
    InterfaceMethod<[{
      Returns true if only `readPosition` says where kept blocks are: what knows
      the canonical form alone must not read them.
    }], "bool", "hasOwnPositions", (ins), "", "return false;">,
    InterfaceMethod<[{
      The position in its window, an integer, of kept block `block` of a step in
      its panel `panel`, both indices. `tiles` are buffers with the components of
      the step.
    }], "::mlir::Value", "readPosition", (ins "::mlir::OpBuilder &":$builder,
        "::mlir::Location":$loc, "::mlir::ValueRange":$tiles,
        "::mlir::Value":$block, "::mlir::Value":$panel), "",
      "return ::mlir::nm_sparse::loadPosition(builder, loc, tiles, block, panel);">
  ];
}

#endif // NM_SPARSE_WEIGHT_STORAGE_TD
