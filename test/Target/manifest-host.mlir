// A manifest that lacks what the host does would be wrong without a word: views
// are described, and the rest is refused, or warned of where PTX alone is asked
// for.

// REQUIRES: nm-slow
// RUN: split-file %s %t
// RUN: nm-compile %t/view.mlir -o /dev/null --manifest - 2>&1 | FileCheck %s --check-prefix=VIEW
// The part of arg0 from row 7 on: offset, sizes and strides.
// VIEW: "source": "arg0",
// VIEW: "source": "3584",
// VIEW: "field": "value",
// VIEW-NEXT: "source": "arg0.size[0]",
// VIEW: "source": "512",
// VIEW: "source": "512",
// VIEW: "source": "1",

// RUN: nm-compile %t/columns.mlir -o /dev/null --manifest - 2>&1 | FileCheck %s --check-prefix=COLUMNS
// COLUMNS: "source": "128",
// COLUMNS: "source": "arg0.size[0]",
// COLUMNS: "source": "512",
// COLUMNS: "source": "1024",
// COLUMNS: "source": "1",

// RUN: not nm-compile %t/reduce.mlir -o - --manifest %t/m.json 2>&1 | FileCheck %s --check-prefix=REDUCE
// REDUCE: nm-compile: {{.*}}reduce.mlir:{{[0-9]+:[0-9]+}}: 'linalg.reduce' stays on the host, and a manifest describes launches alone
// RUN: not nm-compile %t/call.mlir -o - --manifest %t/m.json 2>&1 | FileCheck %s --check-prefix=CALL
// CALL: nm-compile: {{.*}}call.mlir:{{[0-9]+:[0-9]+}}: 'func.call' stays on the host, and a manifest describes launches alone
// RUN: not nm-compile %t/loop.mlir -o - --manifest %t/m.json 2>&1 | FileCheck %s --check-prefix=LOOP
// LOOP: nm-compile: {{.*}}loop.mlir:{{[0-9]+:[0-9]+}}: 'scf.for' stays on the host, and a manifest describes launches alone
// RUN: not nm-compile %t/constant.mlir -o - --manifest %t/m.json 2>&1 | FileCheck %s --check-prefix=CONSTANT
// CONSTANT: nm-compile: {{.*}}constant.mlir:{{[0-9]+:[0-9]+}}: 'memref.get_global' stays on the host, and a manifest describes launches alone
// RUN: not nm-compile %t/mask.mlir -o - --manifest %t/m.json 2>&1 | FileCheck %s --check-prefix=MASK
// MASK: nm-compile: {{.*}}mask.mlir:{{[0-9]+:[0-9]+}}: 'linalg.generic' stays on the host, and a manifest describes launches alone
// RUN: not nm-compile %t/pack.mlir -o - --pack host --manifest %t/m.json 2>&1 | FileCheck %s --check-prefix=PACK
// PACK: stays on the host, and a manifest describes launches alone
// RUN: not nm-compile %t/view.mlir -o - --host-memory --manifest %t/m.json 2>&1 | FileCheck %s --check-prefix=MEMORY
// MEMORY: 'gpu.memcpy' stays on the host, and a manifest describes launches alone: leave out --manifest and run

// The option that asks for launches alone is what may be left out.
// RUN: not nm-compile %t/reduce.mlir --emit c -o %t/reduce.c --manifest %t/m.json 2>&1 | FileCheck %s --check-prefix=C
// C: 'linalg.reduce' stays on the host, and --emit c writes launches alone: leave out --emit c and run the host's code too
// RUN: not nm-compile %t/view.mlir --emit iree --host-memory -o %t/view.iree.mlir 2>&1 | FileCheck %s --check-prefix=IREE
// IREE: 'gpu.memcpy' stays on the host, and --emit iree writes launches alone: leave out --emit iree and run the host's code too

// RUN: nm-compile %t/mask.mlir -o /dev/null 2>&1 | FileCheck %s --check-prefix=WARN
// WARN: nm-compile: warning: 1 operation of the host, not in the kernels: 'linalg.generic' at {{.*}}mask.mlir:{{[0-9]+}}
// RUN: nm-compile %t/view.mlir -o /dev/null --host-memory 2>&1 | FileCheck %s --check-prefix=SILENT --allow-empty
// SILENT-NOT: operation of the host

//--- view.mlir
#w = #nm_sparse.encoding<8:32, block = [1, 64]>
func.func @f(%x: tensor<?x512xf16>, %w: tensor<512x512xf16, #w>, %i: tensor<?x512xf32>, %n: index) -> tensor<?x512xf32> {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x512xf16>
  %q = tensor.extract_slice %x[7, 0] [%m, 512] [1, 1] : tensor<?x512xf16> to tensor<?x512xf16>
  %y = linalg.matmul ins(%q, %w : tensor<?x512xf16>, tensor<512x512xf16, #w>) outs(%i : tensor<?x512xf32>) -> tensor<?x512xf32>
  return %y : tensor<?x512xf32>
}
//--- columns.mlir
#w = #nm_sparse.encoding<8:32, block = [1, 64]>
func.func @f(%x: tensor<?x1024xf16>, %w: tensor<512x512xf16, #w>, %i: tensor<?x512xf32>) -> tensor<?x512xf32> {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x1024xf16>
  %q = tensor.extract_slice %x[0, 128] [%m, 512] [1, 1] : tensor<?x1024xf16> to tensor<?x512xf16>
  %y = linalg.matmul ins(%q, %w : tensor<?x512xf16>, tensor<512x512xf16, #w>) outs(%i : tensor<?x512xf32>) -> tensor<?x512xf32>
  return %y : tensor<?x512xf32>
}
//--- reduce.mlir
#w = #nm_sparse.encoding<8:32, block = [1, 64]>
func.func @f(%x: tensor<8x64xf32>, %w: tensor<64x64xf32, #w>, %i: tensor<8x64xf32>, %o: tensor<8xf32>) -> tensor<8xf32> {
  %y = linalg.matmul ins(%x, %w : tensor<8x64xf32>, tensor<64x64xf32, #w>) outs(%i : tensor<8x64xf32>) -> tensor<8x64xf32>
  %s = linalg.reduce {arith.addf} ins(%y : tensor<8x64xf32>) outs(%o : tensor<8xf32>) dimensions = [1]
  return %s : tensor<8xf32> }
//--- call.mlir
#w = #nm_sparse.encoding<8:32, block = [1, 64]>
func.func private @host(tensor<8x64xf16>) -> tensor<8x64xf16>
func.func @f(%x: tensor<8x64xf16>, %w: tensor<64x64xf16, #w>, %i: tensor<8x64xf16>) -> tensor<8x64xf16> {
  %y = linalg.matmul ins(%x, %w : tensor<8x64xf16>, tensor<64x64xf16, #w>) outs(%i : tensor<8x64xf16>) -> tensor<8x64xf16>
  %z = func.call @host(%y) : (tensor<8x64xf16>) -> tensor<8x64xf16>
  return %z : tensor<8x64xf16> }
//--- loop.mlir
#w = #nm_sparse.encoding<8:32, block = [1, 64]>
func.func @f(%x: tensor<16x64xf32>, %w: tensor<64x64xf32, #w>, %n: index, %i: tensor<16x64xf32>) -> tensor<16x64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%a = %i) -> tensor<16x64xf32> {
    %y = linalg.matmul ins(%x, %w : tensor<16x64xf32>, tensor<64x64xf32, #w>) outs(%a : tensor<16x64xf32>) -> tensor<16x64xf32>
    scf.yield %y : tensor<16x64xf32> }
  return %r : tensor<16x64xf32>
}
//--- constant.mlir
#w = #nm_sparse.encoding<1:2, block = [1, 8]>
func.func @f(%x: tensor<8x2xf16>, %i: tensor<8x2xf32>) -> tensor<8x2xf32> {
  %w = arith.constant dense<[[1.0, 2.0],[0.0,0.0]]> : tensor<2x2xf16, #w>
  %y = linalg.matmul ins(%x, %w : tensor<8x2xf16>, tensor<2x2xf16, #w>) outs(%i : tensor<8x2xf32>) -> tensor<8x2xf32>
  return %y : tensor<8x2xf32> }
//--- mask.mlir
#w = #nm_sparse.encoding<8:32, block = [1, 64]>
#id = affine_map<(m,n)->(m,n)>
func.func @f(%x: tensor<64x64xf16>, %w: tensor<64x64xf16, #w>, %i: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %y = linalg.matmul ins(%x, %w : tensor<64x64xf16>, tensor<64x64xf16, #w>) outs(%i : tensor<64x64xf32>) -> tensor<64x64xf32>
  %r = linalg.generic {indexing_maps=[#id], iterator_types=["parallel","parallel"]} outs(%y : tensor<64x64xf32>) {
  ^bb0(%b: f32):
    %m = linalg.index 0 : index
    %n = linalg.index 1 : index
    %c = arith.cmpi ult, %n, %m : index
    %z = arith.constant 0.0 : f32
    %s = arith.select %c, %b, %z : f32
    linalg.yield %s : f32 } -> tensor<64x64xf32>
  return %r : tensor<64x64xf32> }
//--- pack.mlir
#w = #nm_sparse.encoding<8:32, block = [1, 64]>
func.func @f(%x: tensor<8x64xf16>, %i: tensor<8x64xf32>, %d: tensor<64x64xf16>) -> tensor<8x64xf32> {
  %w = tensor.cast %d : tensor<64x64xf16> to tensor<64x64xf16, #w>
  %y = linalg.matmul ins(%x, %w : tensor<8x64xf16>, tensor<64x64xf16, #w>) outs(%i : tensor<8x64xf32>) -> tensor<8x64xf32>
  return %y : tensor<8x64xf32> }
