// A product that split-schedule.mlir splits.
#w = #nm_sparse.encoding<2:4, block = [1, 32]>
func.func @f(%x: tensor<?xSIZExTYPE>, %w: tensor<SIZEx96xTYPE, #w>,
             %init: tensor<?x96xTYPE>) -> tensor<?x96xTYPE> {
  %y = linalg.matmul ins(%x, %w : tensor<?xSIZExTYPE>, tensor<SIZEx96xTYPE, #w>)
      outs(%init : tensor<?x96xTYPE>) -> tensor<?x96xTYPE>
  return %y : tensor<?x96xTYPE>
}
