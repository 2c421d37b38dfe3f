hal.executable.source private @kernels <{objects = #hal.executable.objects<{
    #hal.executable.target<"cuda", "cuda-nvptx-fb"> = [
      #hal.executable.object<{path = "k.ptx", data = dense<0> : vector<16xi8>}>]}>}> {
  hal.executable.export public @add ordinal(0)
      layout(#hal.pipeline.layout<constants = 0, bindings = [
          #hal.pipeline.binding<storage_buffer, ReadOnly>,
          #hal.pipeline.binding<storage_buffer>]>)
      count(%device: !hal.device) -> (index, index, index) {
    %c1 = arith.constant 1 : index
    hal.return %c1, %c1, %c1 : index, index, index
  } <{workgroup_size = [1 : index, 1 : index, 1 : index]}>
}
func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  %y = flow.dispatch @kernels::@add(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}
