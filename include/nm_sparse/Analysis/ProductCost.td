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
        Counts what the schedule does (CountWork.h).
      }],
      "::mlir::nm_sparse::Work", "countWork",
      (ins "const ::mlir::nm_sparse::MatmulProblem &":$problem,
           "const ::mlir::nm_sparse::ScheduleAttr &":$schedule,
           "const ::mlir::nm_sparse::Chip &":$chip)>,
    InterfaceMethod<[{
        The kernels whose costs are fitted together with that of `schedule`: the
        row of the table of the GPU that says what they cost.
      }],
      "::llvm::StringRef", "getFamily",
      (ins "const ::mlir::nm_sparse::ScheduleAttr &":$schedule)>
  ];
}

#endif // NM_SPARSE_ANALYSIS_PRODUCTCOST_TD
