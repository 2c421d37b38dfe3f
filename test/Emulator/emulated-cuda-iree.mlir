// IREE, whose CUDA driver knows nothing of the emulator, runs an emulated kernel:
// the image of an executable may be what nm-compile --emit emulator writes. What
// IREE itself compiles is PTX, which is skipped.

// REQUIRES: iree, nm-emulated-cuda
// RUN: %iree_compile %s --iree-hal-target-device=cuda --iree-cuda-target=sm_80 --iree-hal-executable-object-search-path=%S/Inputs -o %t.vmfb
// RUN: rm -f %t.trace
// RUN: env LD_LIBRARY_PATH=%emulated_cuda NM_EMULATED_TRACE=%t.trace %iree_python %S/Inputs/run_iree.py %t.vmfb | FileCheck %s
// RUN: FileCheck %s --input-file %t.trace --check-prefix=TRACE
// RUN: env LD_LIBRARY_PATH=%emulated_cuda %iree_python %S/Inputs/run_iree.py %t.vmfb --cuda_use_streams=false | FileCheck %s
// RUN: env LD_LIBRARY_PATH=%emulated_cuda %iree_python %S/Inputs/run_iree.py %t.vmfb --cuda_async_allocations=false | FileCheck %s

// CHECK: device: emulated sm_90a
// CHECK: ours: [5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0]
// TRACE-DAG: {"args":["0x{{[0-9a-f]+}}","0x{{[0-9a-f]+}}","0x5"],"block":[4,1,1],"cluster":[1,1,1],"grid":[2,1,1],"kernel":"add","shared":0}
// TRACE-DAG: "kernel":"both_dispatch_0{{.*}}"skipped":true

#cuda = #hal.executable.target<"cuda", "cuda-nvptx-fb">

hal.executable.source private @kernels <{objects = #hal.executable.objects<{
    #cuda = [#hal.executable.object<{path = "add-number.mlir"}>]}>}> {
  hal.executable.export public @add ordinal(0)
      layout(#hal.pipeline.layout<constants = 1, bindings = [
          #hal.pipeline.binding<storage_buffer, ReadOnly>,
          #hal.pipeline.binding<storage_buffer>]>)
      count(%device: !hal.device) -> (index, index, index) {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    hal.return %c2, %c1, %c1 : index, index, index
  } <{workgroup_size = [4 : index, 1 : index, 1 : index], workgroup_local_memory = 0 : index}>
}

func.func @both(%x: tensor<8xf32>, %n: i32) -> (tensor<8xf32>, tensor<8xf32>) {
  %y = flow.dispatch @kernels::@add(%n, %x) : (i32, tensor<8xf32>) -> tensor<8xf32>
  %z = math.exp %x : tensor<8xf32>
  return %y, %z : tensor<8xf32>, tensor<8xf32>
}
