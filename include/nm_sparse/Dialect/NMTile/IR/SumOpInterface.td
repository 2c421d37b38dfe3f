//===- SumOpInterface.td - sums that threads share ---------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMTILE_IR_SUMOPINTERFACE_TD
#define NM_SPARSE_DIALECT_NMTILE_IR_SUMOPINTERFACE_TD

include "mlir/IR/OpBase.td"

def NMTile_SumOpInterface : OpInterface<"SumOpInterface"> {
  let cppNamespace = "::mlir::nm_sparse";
  let description = [{
    An operation that makes a tile of sums, `vector<tokens x outputs>`, whose
    elements the threads of a CTA share in a layout of its own.
  }];
  let methods = [
    InterfaceMethod<"The tile.", "::mlir::Value", "getSum", (ins), "",
                    "return $_op.getResult();">,
    InterfaceMethod<"The schedule of the launch.",
                    "::mlir::nm_sparse::ScheduleAttr", "getSchedule">,
    InterfaceMethod<"Which thread holds what; none before "
                    "--nm-sparse-lay-out-accumulators.",
                    "::std::optional<::mlir::nm_sparse::AccumulatorAttr>",
                    "getLayout">,
    InterfaceMethod<"Decides it.", "void", "setLayoutAttr",
                    (ins "::mlir::nm_sparse::AccumulatorAttr":$layout)>
  ];
}

#endif // NM_SPARSE_DIALECT_NMTILE_IR_SUMOPINTERFACE_TD
