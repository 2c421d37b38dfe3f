// Splits each contraction by a loop LOOP whose steps have STEP windows.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %y = transform.structured.match ops{["nm_sparse.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
    %fill, %part, %merge, %loop = transform.structured.tile_reduction_using_LOOP %y by tile_sizes = [0, 0, STEP]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}
