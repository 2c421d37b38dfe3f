//===- ProductCost.td - what a product costs ---------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_ANALYSIS_PRODUCTCOST_TD
#define NM_SPARSE_ANALYSIS_PRODUCTCOST_TD

include "mlir/IR/OpBase.td"

def NMSparse_ProductCostInterface : AttrInterface<"ProductCostInterface"> {
  let cppNamespace = "::mlir::nm_sparse";
  let description = [{
    What the cost model asks of a product, which an external model answers: see
    `lib/Products`. A product also proposes schedules, by
    `addScheduleProposer`.
  }];
  let methods = [
    InterfaceMethod<[{
        Checks that `chip` has its instructions for the elements of `problem`; the
        error says which do.
      }],
      "::llvm::LogicalResult", "verifyChip",
      (ins "::llvm::function_ref<::mlir::InFlightDiagnostic()>":$emitError,
           "const ::mlir::nm_sparse::MatmulProblem &":$problem,
           "const ::mlir::nm_sparse::Chip &":$chip),
      "", "return ::llvm::success();">,
    InterfaceMethod<[{
        Flops of `chip` through the units that it uses, and their name.
      }],
      "::mlir::nm_sparse::MathCeiling", "getCeiling",
      (ins "const ::mlir::nm_sparse::Chip &":$chip)>,
    InterfaceMethod<[{
        The units that multiply, and how much: what the energy of the products
        depends on.
      }],
      "::mlir::nm_sparse::MathUse", "getMathUse",
      (ins "const ::mlir::nm_sparse::MatmulProblem &":$problem)>,
    InterfaceMethod<[{
        Bytes of the weight where it is code; none where it is an operand.
      }],
      "::std::optional<double>", "countCodeBytes",
      (ins "const ::mlir::nm_sparse::MatmulProblem &":$problem,
           "const ::mlir::nm_sparse::ScheduleAttr &":$schedule),
      "", "return ::std::nullopt;">,
    InterfaceMethod<[{
        Flops of one CTA in a K step, whose tile of activations has `xElements`.
        Other instructions that issue in place of a product count like one.
      }],
      "double", "countFlops",
      (ins "const ::mlir::nm_sparse::MatmulProblem &":$problem,
           "const ::mlir::nm_sparse::ScheduleAttr &":$schedule,
           "double":$xElements),
      "", "return 0;">,
    InterfaceMethod<[{
        Bytes that the products of one CTA read from shared memory in a K step.
      }],
      "double", "countSharedReads",
      (ins "const ::mlir::nm_sparse::MatmulProblem &":$problem,
           "const ::mlir::nm_sparse::ScheduleAttr &":$schedule),
      "", "return 0;">,
    InterfaceMethod<[{
        The kernels whose costs are fitted together with that of `schedule`.
      }],
      "::llvm::StringRef", "getFamily",
      (ins "const ::mlir::nm_sparse::ScheduleAttr &":$schedule)>,
    InterfaceMethod<[{
        What they cost on `chip`.
      }],
      "const ::mlir::nm_sparse::FamilyCosts &", "getCosts",
      (ins "const ::mlir::nm_sparse::ScheduleAttr &":$schedule,
           "const ::mlir::nm_sparse::Chip &":$chip),
      "", [{
        static const ::mlir::nm_sparse::FamilyCosts none = {};
        return none;
      }]>,
    InterfaceMethod<[{
        The time of the whole product, where the product has a model of its own:
        then it counts no flops and no bytes, and has no costs. None for those
        whose K steps the cost model counts.
      }],
      "::std::optional<::mlir::nm_sparse::CombinedTime>", "predictDirect",
      (ins "const ::mlir::nm_sparse::MatmulProblem &":$problem,
           "const ::mlir::nm_sparse::ScheduleAttr &":$schedule,
           "const ::mlir::nm_sparse::Chip &":$chip),
      "", "return ::std::nullopt;">,
    InterfaceMethod<[{
        What its instructions take to issue bounds it: the busiest of the
        schedulers of an SM decides, and warps of one CTA hide each other.
      }],
      "bool", "isBoundByIssue", (ins), "", "return false;">,
    InterfaceMethod<[{
        Times as long as L2 takes for a part of a tile that nobody multiplies
        while a CTA that has an SM to itself hands it over.
      }],
      "double", "getExchangeStall", (ins), "", "return 0;">
  ];
}

#endif // NM_SPARSE_ANALYSIS_PRODUCTCOST_TD
