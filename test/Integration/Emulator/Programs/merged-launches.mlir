// Query, key and value in one launch. Grids differ, and key and value are sums of
// several CTAs, which they share the code of. Widths end in part of a tile.
// RUN: nm-run %s --entry elements --device emulate --check --json - | FileCheck %s
// RUN: nm-run %s --entry elements --device emulate --check --json - --last-first | FileCheck %s
// RUN: nm-run %s --entry elements --device emulate --check --json - --launches separate | FileCheck %s --check-prefix=SEPARATE
// RUN: nm-run %s --entry element_tokens --size 1 --device emulate --check --json - | FileCheck %s
// RUN: nm-run %s --entry element_tokens --size 3 --device emulate --check --json - | FileCheck %s
// RUN: nm-run %s --entry panels --device emulate --check --json - | FileCheck %s
// RUN: nm-run %s --entry panel_tokens --size 1 --device emulate --check --json - | FileCheck %s
// RUN: nm-run %s --entry panel_tokens --size 3 --device emulate --check --json - --last-first | FileCheck %s
// RUN: nm-compile %s --tokens 3 -o - | FileCheck %s --check-prefix=PTX
// RUN: nm-compile %s --tokens 3 -o - --host-memory | FileCheck %s --check-prefix=PTX

// CHECK: result #0: {{.*}} PASS
// CHECK: result #1: {{.*}} PASS
// CHECK: result #2: {{.*}} PASS
// CHECK: "launches": 1,
// SEPARATE: result #2: {{.*}} PASS
// SEPARATE: "launches": 3,

// What is chosen among arguments is known to be in global memory.
// PTX-COUNT-4: .entry {{.*}}_merged{{(_[0-9])?}}(
// PTX-NOT: .entry
// PTX-NOT: {{[[:space:]](ld|st)\.[^gps]}}

#w = #nm_sparse.encoding<8:16>
#v = #nm_sparse.encoding<16:32, block = [1, 32]>
#mn = affine_map<(m, n) -> (m, n)>
#n = affine_map<(m, n) -> (n)>

func.func @elements(%x: tensor<1x512xf16>, %w0: tensor<512x112xf16, #w>,
                    %w1: tensor<512x40xf16, #w>, %w2: tensor<512x40xf16, #w>, %b0: tensor<112xf16>,
                    %b1: tensor<40xf16>, %b2: tensor<40xf16>)
    -> (tensor<1x112xf16>, tensor<1x40xf16>, tensor<1x40xf16>) {
  %zero = arith.constant 0.0 : f16
  %e0 = tensor.empty() : tensor<1x112xf16>
  %i0 = linalg.fill ins(%zero : f16) outs(%e0 : tensor<1x112xf16>) -> tensor<1x112xf16>
  %p0 = linalg.matmul {nm_sparse.config = #nm_tile.schedule<tile = [1, 32, 256], product = dot<warps = 8>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential, grid = flat>}
      ins(%x, %w0 : tensor<1x512xf16>, tensor<512x112xf16, #w>)
      outs(%i0 : tensor<1x112xf16>) -> tensor<1x112xf16>
  %y0 = linalg.generic {indexing_maps = [#mn, #n, #mn], iterator_types = ["parallel", "parallel"]}
      ins(%p0, %b0 : tensor<1x112xf16>, tensor<112xf16>) outs(%e0 : tensor<1x112xf16>) {
  ^bb0(%a: f16, %b: f16, %c: f16):
    %s = arith.addf %a, %b : f16
    linalg.yield %s : f16
  } -> tensor<1x112xf16>
  %e1 = tensor.empty() : tensor<1x40xf16>
  %i1 = linalg.fill ins(%zero : f16) outs(%e1 : tensor<1x40xf16>) -> tensor<1x40xf16>
  %p1 = linalg.matmul {nm_sparse.config = #nm_tile.schedule<tile = [1, 32, 128], product = dot<warps = 8>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential, grid = flat<split_k = 2>>}
      ins(%x, %w1 : tensor<1x512xf16>, tensor<512x40xf16, #w>)
      outs(%i1 : tensor<1x40xf16>) -> tensor<1x40xf16>
  %y1 = linalg.generic {indexing_maps = [#mn, #n, #mn], iterator_types = ["parallel", "parallel"]}
      ins(%p1, %b1 : tensor<1x40xf16>, tensor<40xf16>) outs(%e1 : tensor<1x40xf16>) {
  ^bb0(%a: f16, %b: f16, %c: f16):
    %s = arith.addf %a, %b : f16
    linalg.yield %s : f16
  } -> tensor<1x40xf16>
  %e2 = tensor.empty() : tensor<1x40xf16>
  %i2 = linalg.fill ins(%zero : f16) outs(%e2 : tensor<1x40xf16>) -> tensor<1x40xf16>
  %p2 = linalg.matmul {nm_sparse.config = #nm_tile.schedule<tile = [1, 32, 128], product = dot<warps = 8>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential, grid = flat<split_k = 2>>}
      ins(%x, %w2 : tensor<1x512xf16>, tensor<512x40xf16, #w>)
      outs(%i2 : tensor<1x40xf16>) -> tensor<1x40xf16>
  %y2 = linalg.generic {indexing_maps = [#mn, #n, #mn], iterator_types = ["parallel", "parallel"]}
      ins(%p2, %b2 : tensor<1x40xf16>, tensor<40xf16>) outs(%e2 : tensor<1x40xf16>) {
  ^bb0(%a: f16, %b: f16, %c: f16):
    %s = arith.addf %a, %b : f16
    linalg.yield %s : f16
  } -> tensor<1x40xf16>
  return %y0, %y1, %y2 : tensor<1x112xf16>, tensor<1x40xf16>, tensor<1x40xf16>
}

func.func @element_tokens(%x: tensor<?x272xf16>, %w0: tensor<272x80xf16, #w>,
                          %w1: tensor<272x48xf16, #w>, %w2: tensor<272x48xf16, #w>, %b0: tensor<80xf16>,
                          %b1: tensor<48xf16>, %b2: tensor<48xf16>)
    -> (tensor<?x80xf16>, tensor<?x48xf16>, tensor<?x48xf16>) {
  %zero = arith.constant 0.0 : f16
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x272xf16>
  %e0 = tensor.empty(%m) : tensor<?x80xf16>
  %i0 = linalg.fill ins(%zero : f16) outs(%e0 : tensor<?x80xf16>) -> tensor<?x80xf16>
  %p0 = linalg.matmul ins(%x, %w0 : tensor<?x272xf16>, tensor<272x80xf16, #w>)
      outs(%i0 : tensor<?x80xf16>) -> tensor<?x80xf16>
  %y0 = linalg.generic {indexing_maps = [#mn, #n, #mn], iterator_types = ["parallel", "parallel"]}
      ins(%p0, %b0 : tensor<?x80xf16>, tensor<80xf16>) outs(%e0 : tensor<?x80xf16>) {
  ^bb0(%a: f16, %b: f16, %c: f16):
    %s = arith.addf %a, %b : f16
    linalg.yield %s : f16
  } -> tensor<?x80xf16>
  %e1 = tensor.empty(%m) : tensor<?x48xf16>
  %i1 = linalg.fill ins(%zero : f16) outs(%e1 : tensor<?x48xf16>) -> tensor<?x48xf16>
  %p1 = linalg.matmul ins(%x, %w1 : tensor<?x272xf16>, tensor<272x48xf16, #w>)
      outs(%i1 : tensor<?x48xf16>) -> tensor<?x48xf16>
  %y1 = linalg.generic {indexing_maps = [#mn, #n, #mn], iterator_types = ["parallel", "parallel"]}
      ins(%p1, %b1 : tensor<?x48xf16>, tensor<48xf16>) outs(%e1 : tensor<?x48xf16>) {
  ^bb0(%a: f16, %b: f16, %c: f16):
    %s = arith.addf %a, %b : f16
    linalg.yield %s : f16
  } -> tensor<?x48xf16>
  %e2 = tensor.empty(%m) : tensor<?x48xf16>
  %i2 = linalg.fill ins(%zero : f16) outs(%e2 : tensor<?x48xf16>) -> tensor<?x48xf16>
  %p2 = linalg.matmul ins(%x, %w2 : tensor<?x272xf16>, tensor<272x48xf16, #w>)
      outs(%i2 : tensor<?x48xf16>) -> tensor<?x48xf16>
  %y2 = linalg.generic {indexing_maps = [#mn, #n, #mn], iterator_types = ["parallel", "parallel"]}
      ins(%p2, %b2 : tensor<?x48xf16>, tensor<48xf16>) outs(%e2 : tensor<?x48xf16>) {
  ^bb0(%a: f16, %b: f16, %c: f16):
    %s = arith.addf %a, %b : f16
    linalg.yield %s : f16
  } -> tensor<?x48xf16>
  return %y0, %y1, %y2 : tensor<?x80xf16>, tensor<?x48xf16>, tensor<?x48xf16>
}

func.func @panels(%x: tensor<1x1024xf16>, %w0: tensor<1024x128xf16, #v>,
                  %w1: tensor<1024x96xf16, #v>, %w2: tensor<1024x96xf16, #v>, %b0: tensor<128xf16>,
                  %b1: tensor<96xf16>, %b2: tensor<96xf16>)
    -> (tensor<1x128xf16>, tensor<1x96xf16>, tensor<1x96xf16>) {
  %zero = arith.constant 0.0 : f16
  %e0 = tensor.empty() : tensor<1x128xf16>
  %i0 = linalg.fill ins(%zero : f16) outs(%e0 : tensor<1x128xf16>) -> tensor<1x128xf16>
  %p0 = linalg.matmul {nm_sparse.config = #nm_tile.schedule<tile = [1, 32, 256], product = panel_dot<warps = 8, shares = 64>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential, grid = flat>}
      ins(%x, %w0 : tensor<1x1024xf16>, tensor<1024x128xf16, #v>)
      outs(%i0 : tensor<1x128xf16>) -> tensor<1x128xf16>
  %y0 = linalg.generic {indexing_maps = [#mn, #n, #mn], iterator_types = ["parallel", "parallel"]}
      ins(%p0, %b0 : tensor<1x128xf16>, tensor<128xf16>) outs(%e0 : tensor<1x128xf16>) {
  ^bb0(%a: f16, %b: f16, %c: f16):
    %s = arith.addf %a, %b : f16
    linalg.yield %s : f16
  } -> tensor<1x128xf16>
  %e1 = tensor.empty() : tensor<1x96xf16>
  %i1 = linalg.fill ins(%zero : f16) outs(%e1 : tensor<1x96xf16>) -> tensor<1x96xf16>
  %p1 = linalg.matmul {nm_sparse.config = #nm_tile.schedule<tile = [1, 32, 256], product = panel_dot<warps = 8, shares = 64>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential, grid = flat<split_k = 2>>}
      ins(%x, %w1 : tensor<1x1024xf16>, tensor<1024x96xf16, #v>)
      outs(%i1 : tensor<1x96xf16>) -> tensor<1x96xf16>
  %y1 = linalg.generic {indexing_maps = [#mn, #n, #mn], iterator_types = ["parallel", "parallel"]}
      ins(%p1, %b1 : tensor<1x96xf16>, tensor<96xf16>) outs(%e1 : tensor<1x96xf16>) {
  ^bb0(%a: f16, %b: f16, %c: f16):
    %s = arith.addf %a, %b : f16
    linalg.yield %s : f16
  } -> tensor<1x96xf16>
  %e2 = tensor.empty() : tensor<1x96xf16>
  %i2 = linalg.fill ins(%zero : f16) outs(%e2 : tensor<1x96xf16>) -> tensor<1x96xf16>
  %p2 = linalg.matmul {nm_sparse.config = #nm_tile.schedule<tile = [1, 32, 256], product = panel_dot<warps = 8, shares = 64>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential, grid = flat<split_k = 2>>}
      ins(%x, %w2 : tensor<1x1024xf16>, tensor<1024x96xf16, #v>)
      outs(%i2 : tensor<1x96xf16>) -> tensor<1x96xf16>
  %y2 = linalg.generic {indexing_maps = [#mn, #n, #mn], iterator_types = ["parallel", "parallel"]}
      ins(%p2, %b2 : tensor<1x96xf16>, tensor<96xf16>) outs(%e2 : tensor<1x96xf16>) {
  ^bb0(%a: f16, %b: f16, %c: f16):
    %s = arith.addf %a, %b : f16
    linalg.yield %s : f16
  } -> tensor<1x96xf16>
  return %y0, %y1, %y2 : tensor<1x128xf16>, tensor<1x96xf16>, tensor<1x96xf16>
}

func.func @panel_tokens(%x: tensor<?x1088xf16>, %w0: tensor<1088x96xf16, #v>,
                        %w1: tensor<1088x64xf16, #v>, %w2: tensor<1088x64xf16, #v>, %b0: tensor<96xf16>,
                        %b1: tensor<64xf16>, %b2: tensor<64xf16>)
    -> (tensor<?x96xf16>, tensor<?x64xf16>, tensor<?x64xf16>) {
  %zero = arith.constant 0.0 : f16
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x1088xf16>
  %e0 = tensor.empty(%m) : tensor<?x96xf16>
  %i0 = linalg.fill ins(%zero : f16) outs(%e0 : tensor<?x96xf16>) -> tensor<?x96xf16>
  %p0 = linalg.matmul {nm_sparse.config = #nm_tile.schedule<tile = [1, 32, 544], product = panel_dot<warps = 8, shares = 64>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential, grid = flat>}
      ins(%x, %w0 : tensor<?x1088xf16>, tensor<1088x96xf16, #v>)
      outs(%i0 : tensor<?x96xf16>) -> tensor<?x96xf16>
  %y0 = linalg.generic {indexing_maps = [#mn, #n, #mn], iterator_types = ["parallel", "parallel"]}
      ins(%p0, %b0 : tensor<?x96xf16>, tensor<96xf16>) outs(%e0 : tensor<?x96xf16>) {
  ^bb0(%a: f16, %b: f16, %c: f16):
    %s = arith.addf %a, %b : f16
    linalg.yield %s : f16
  } -> tensor<?x96xf16>
  %e1 = tensor.empty(%m) : tensor<?x64xf16>
  %i1 = linalg.fill ins(%zero : f16) outs(%e1 : tensor<?x64xf16>) -> tensor<?x64xf16>
  %p1 = linalg.matmul {nm_sparse.config = #nm_tile.schedule<tile = [1, 32, 256], product = panel_dot<warps = 8, shares = 64>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential, grid = flat>}
      ins(%x, %w1 : tensor<?x1088xf16>, tensor<1088x64xf16, #v>)
      outs(%i1 : tensor<?x64xf16>) -> tensor<?x64xf16>
  %y1 = linalg.generic {indexing_maps = [#mn, #n, #mn], iterator_types = ["parallel", "parallel"]}
      ins(%p1, %b1 : tensor<?x64xf16>, tensor<64xf16>) outs(%e1 : tensor<?x64xf16>) {
  ^bb0(%a: f16, %b: f16, %c: f16):
    %s = arith.addf %a, %b : f16
    linalg.yield %s : f16
  } -> tensor<?x64xf16>
  %e2 = tensor.empty(%m) : tensor<?x64xf16>
  %i2 = linalg.fill ins(%zero : f16) outs(%e2 : tensor<?x64xf16>) -> tensor<?x64xf16>
  %p2 = linalg.matmul {nm_sparse.config = #nm_tile.schedule<tile = [1, 32, 256], product = panel_dot<warps = 8, shares = 64>, transfers = {x = direct, values = direct, index = direct}, pipeline = sequential, grid = flat>}
      ins(%x, %w2 : tensor<?x1088xf16>, tensor<1088x64xf16, #v>)
      outs(%i2 : tensor<?x64xf16>) -> tensor<?x64xf16>
  %y2 = linalg.generic {indexing_maps = [#mn, #n, #mn], iterator_types = ["parallel", "parallel"]}
      ins(%p2, %b2 : tensor<?x64xf16>, tensor<64xf16>) outs(%e2 : tensor<?x64xf16>) {
  ^bb0(%a: f16, %b: f16, %c: f16):
    %s = arith.addf %a, %b : f16
    linalg.yield %s : f16
  } -> tensor<?x64xf16>
  return %y0, %y1, %y2 : tensor<?x96xf16>, tensor<?x64xf16>, tensor<?x64xf16>
}
