//===- ScheduleInterfaces.td - the parts of a schedule -----*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The interfaces of the parts of a schedule. An attribute of any dialect that
// implements one of them can be that part. Code generation and cost are
// interfaces of their own (ProductLowering.td, ProductCost.td), which external
// models implement, so that the tensor level depends on neither.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMTILE_IR_SCHEDULEINTERFACES_TD
#define NM_SPARSE_DIALECT_NMTILE_IR_SCHEDULEINTERFACES_TD

include "mlir/IR/OpBase.td"

def NMTile_ProductAttrInterface : AttrInterface<"ProductAttrInterface"> {
  let cppNamespace = "::mlir::nm_sparse";
  let description = [{
    What multiplies, and what it asks of the tiles, the transfers and the
    pipeline around it.
  }];
  let methods = [
    InterfaceMethod<"Its name, as in error messages.",
      "::llvm::StringRef", "getProductName">,
    InterfaceMethod<"Warps of the CTA that multiply.",
      "int64_t", "getNumWarps">,
    InterfaceMethod<[{
        Checks that the warps can share a tile of `tokens` x `outputs`.
      }],
      "::llvm::LogicalResult", "verifyTile",
      (ins "::llvm::function_ref<::mlir::InFlightDiagnostic()>":$emitError,
           "int64_t":$tokens, "int64_t":$outputs)>,
    InterfaceMethod<[{
        Checks that the operands can come by `transfers`, copied by `producers`
        warps of their own, or, when there are none, by those that multiply.
      }],
      "::llvm::LogicalResult", "verifyTransfers",
      (ins "::llvm::function_ref<::mlir::InFlightDiagnostic()>":$emitError,
           "const ::mlir::nm_sparse::TransfersAttr &":$transfers,
           "int64_t":$producers)>,
    InterfaceMethod<[{
        Checks that `schedule`, which holds this product, can multiply operands
        of `element` with a weight of `encoding`.
      }],
      "::llvm::LogicalResult", "verifyProblem",
      (ins "::llvm::function_ref<::mlir::InFlightDiagnostic()>":$emitError,
           "const ::mlir::nm_sparse::ScheduleAttr &":$schedule,
           "const ::mlir::nm_sparse::EncodingAttr &":$encoding,
           "::mlir::Type":$element)>,
    InterfaceMethod<[{
        Kept rows that it multiplies at once: tiles of a K step are padded with
        zeros to a multiple of them.
      }],
      "int64_t", "getRowUnit", (ins), "", "return 1;">,
    InterfaceMethod<[{
        It reads tiles of 16-bit elements as blocks of swizzled lines.
      }],
      "bool", "readsSwizzledBlocks", (ins), "", "return false;">,
    InterfaceMethod<[{
        It reads whole windows of token-major activations as they are; without,
        they are transposed on the way to shared memory.
      }],
      "bool", "readsTokenMajorWindows", (ins), "", "return false;">,
    InterfaceMethod<[{
        It reads gathered token-major activations of `stepRows` kept rows a step
        as they are, a token in each row of the tile.
      }],
      "bool", "readsTokenMajorRows", (ins "int64_t":$stepRows), "",
      "return false;">,
    InterfaceMethod<[{
        It reads weights that are stored as bitmaps, and no others.
      }],
      "bool", "readsBitmaps", (ins), "", "return false;">,
    InterfaceMethod<[{
        The elements of the weight, a constant, are operands of its instructions:
        nothing of the weight is read.
      }],
      "bool", "hasWeightInCode", (ins), "", "return false;">,
    InterfaceMethod<[{
        It multiplies weights of two levels: the rows that the outer one keeps
        are gathered for it.
      }],
      "bool", "readsInnerLevels", (ins), "", "return false;">,
    InterfaceMethod<[{
        Lanes multiply consecutive rows, a segment of a bitmap each: rows of
        feature-major activations, and values, come to shared memory in the
        order in which they do (Segment).
      }],
      "bool", "readsSegments", (ins), "", "return false;">,
    InterfaceMethod<[{
        It reads the values of bitmaps through matrix descriptors
        (TileLayout::CoreMatrices).
      }],
      "bool", "readsCoreMatrices", (ins), "", "return false;">,
    InterfaceMethod<[{
        Each warp holds a share of every element of the sum, and their total is
        the product: they divide the K step, not the tile.
      }],
      "bool", "dividesContraction", (ins), "", "return false;">,
    InterfaceMethod<[{
        Groups of warps that each have a share of every element of the tile.
      }],
      "int64_t", "getNumShares", (ins), "", "return 1;">,
    InterfaceMethod<[{
        Its threads read tiles in shared memory, and not only through matrix
        descriptors.
      }],
      "bool", "readsByThreads", (ins), "", "return true;">,
    InterfaceMethod<[{
        The product of one K step overlaps with the wait for the next one.
      }],
      "bool", "staysInFlight", (ins), "", "return false;">,
    InterfaceMethod<[{
        Its warps multiply 64 tokens by all outputs of a panel at once, which
        reads less of shared memory than outputs by tokens.
      }],
      "bool", "multipliesTokensByPanel",
      (ins "const ::mlir::nm_sparse::ScheduleAttr &":$schedule,
           "const ::mlir::nm_sparse::EncodingAttr &":$encoding),
      "", "return false;">,
    InterfaceMethod<[{
        Its producers need few registers and leave the others to its warps.
      }],
      "bool", "hasLeanProducers",
      (ins "const ::mlir::nm_sparse::ScheduleAttr &":$schedule), "", "return false;">,
    InterfaceMethod<[{
        Its producers may take turns, each warp with steps of its own.
      }],
      "bool", "allowsProducerTurns", (ins), "", "return false;">
  ];
}

def NMTile_PipelineAttrInterface : AttrInterface<"PipelineAttrInterface"> {
  let cppNamespace = "::mlir::nm_sparse";
  let description = [{
    How the copies of later K steps overlap with the product of this one.
  }];
  let methods = [
    InterfaceMethod<"Steps that shared memory holds.",
      "int64_t", "getNumStages">,
    InterfaceMethod<[{
        Warps that only copy, beside those that multiply; with 0 all do both.
      }],
      "int64_t", "getProducerWarps", (ins), "", "return 0;">
  ];
}

def NMTile_GridAttrInterface : AttrInterface<"GridAttrInterface"> {
  let cppNamespace = "::mlir::nm_sparse";
  let description = [{
    Which tiles a CTA computes, and who adds the parts of one tile.
  }];
  let methods = [
    InterfaceMethod<[{
        Equal parts of the contraction, each of a CTA of its own.
      }],
      "int64_t", "getParts", (ins), "", "return 1;">,
    InterfaceMethod<[{
        CTAs beside each other along outputs that are a cluster: each copies a
        part of the activations for all of them.
      }],
      "int64_t", "getClusterCTAs", (ins), "", "return 1;">,
    InterfaceMethod<[{
        A CTA stays on its SM and goes from tile to tile.
      }],
      "bool", "isPersistentGrid", (ins), "", "return false;">,
    InterfaceMethod<[{
        Persistent CTAs share the tiles of the last waves along the contraction.
      }],
      "bool", "streamsContraction", (ins), "", "return false;">
  ];
}

#endif // NM_SPARSE_DIALECT_NMTILE_IR_SCHEDULEINTERFACES_TD
