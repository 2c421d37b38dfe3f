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
    InterfaceMethod<"The tiles of its operands, as it reads them.",
      "::mlir::nm_sparse::OperandTiles", "getOperandTiles", (ins), "",
      "return {};">,
    InterfaceMethod<[{
        Who adds up a tile of `schedule`, which holds this product, and a weight
        of `encoding`.
      }],
      "::mlir::nm_sparse::SumOwners", "getSumOwners",
      (ins "const ::mlir::nm_sparse::ScheduleAttr &":$schedule,
           "const ::mlir::nm_sparse::EncodingAttr &":$encoding),
      "", "return {};">,
    InterfaceMethod<[{
        How it uses the ring of `schedule`, which holds this product.
      }],
      "::mlir::nm_sparse::RingUse", "getRingUse",
      (ins "const ::mlir::nm_sparse::ScheduleAttr &":$schedule), "", "return {};">
  ];
}

def NMTile_TransferAttrInterface : AttrInterface<"TransferAttrInterface"> {
  let cppNamespace = "::mlir::nm_sparse";
  let description = [{
    How one operand comes to where the product reads it: a field of `transfers`.
    See `lib/Transfers`.
  }];
  let methods = [
    InterfaceMethod<"Its name, as in error messages.",
      "::llvm::StringRef", "getTransferName">,
    InterfaceMethod<"Returns true if an operand of `role` can come so.",
      "bool", "brings", (ins "::mlir::nm_sparse::OperandRole":$role)>,
    InterfaceMethod<"Its properties that checks, pipelines and costs read.",
      "::mlir::nm_sparse::TransferUse", "getUse">,
    InterfaceMethod<[{
        Checks that the operand of `role` can come so beside the other
        `transfers`, copied by `producers` warps of their own, or, when there are
        none, by those that multiply.
      }],
      "::llvm::LogicalResult", "verifyBeside",
      (ins "::llvm::function_ref<::mlir::InFlightDiagnostic()>":$emitError,
           "::mlir::nm_sparse::OperandRole":$role,
           "const ::mlir::nm_sparse::TransfersAttr &":$transfers,
           "int64_t":$producers),
      "", "return ::llvm::success();">,
    InterfaceMethod<[{
        Checks that the operand of `role` of `op`, which has a schedule, can come
        so: its type, and the size of its tiles. Fails with an error on `op`.
      }],
      "::llvm::LogicalResult", "verifyOperand",
      (ins "::mlir::nm_sparse::MatmulOp":$op,
           "::mlir::nm_sparse::OperandRole":$role),
      "", "return ::llvm::success();">,
    InterfaceMethod<[{
        Returns true if the tiles of a K step can come from `image` itself, of
        which the activations are `patches`: else the matrix of these is computed
        before. `promote` is then given the patches.
      }],
      "bool", "readsPatches",
      (ins "::mlir::nm_sparse::PatchesAttr":$patches,
           "::mlir::ShapedType":$image),
      "", "return false;">,
    InterfaceMethod<[{
        Emits, in front of the K loop, what is done once for values or positions,
        and returns the tile that it fills; null where nothing is done there.
      }],
      "::mlir::Value", "promoteBefore",
      (ins "::mlir::OpBuilder &":$builder,
           "::mlir::nm_sparse::PromotedOperand &":$operand),
      "", "return {};">,
    InterfaceMethod<[{
        Emits what a K step does, and returns what the product reads. `before` is
        the result of `promoteBefore`.
      }],
      "::mlir::Value", "promote",
      (ins "::mlir::OpBuilder &":$builder,
           "::mlir::nm_sparse::PromotedOperand &":$operand,
           "::mlir::Value":$before)>,
    InterfaceMethod<[{
        Adds what lowers the operations on tiles that are its own: each becomes
        the code of one of `threads`.
      }],
      "void", "populatePatterns",
      (ins "const ::mlir::TypeConverter &":$converter,
           "const ::mlir::nm_sparse::CopyThreads &":$threads,
           "::mlir::RewritePatternSet &":$patterns),
      "", "return;">
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
        The CTAs of the parts of a tile are a cluster, and exchange their sums in
        shared memory.
      }],
      "bool", "exchangesInCluster", (ins), "", "return false;">,
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
