// The parameters of a C function: a weight is its components, memory for a
// result comes last, then the sizes that are not known. Results have no copy.

// RUN: rm -rf %t && mkdir %t
// RUN: nm-compile %s --tokens 16 --emit c -o %t/two_layers.c
// RUN: FileCheck %s --check-prefix=HEADER --input-file %t/two_layers.h
// RUN: FileCheck %s --input-file %t/two_layers.c

// HEADER: int two_layers_prepare(void);
// HEADER: * x: f16 [tokens, 128]
// HEADER-NEXT: * #nm_sparse.encoding<8:32, block = [1, 32]> of f16 [128, 64], packed:
// HEADER-NEXT: * w_values: f16 [32, 64]
// HEADER-NEXT: * w_index: i8 [32, 2]
// HEADER-NEXT: * result0: f32 [tokens, 64], written
// HEADER-NEXT: * tokens: size 0 of x
// HEADER: int linear(CUstream stream, const void *x, const void *w_values, const void *w_index, void *result0, int64_t tokens);
// HEADER-NEXT: int linear_with_workspace(CUstream stream, const void *x, const void *w_values, const void *w_index, void *result0, int64_t tokens, void *workspace);
// HEADER-NEXT: size_t linear_workspace(int64_t tokens);
// HEADER: int add_to(CUstream stream, const void *x, const void *w_values, const void *w_index, void *sum);
// HEADER-NEXT: int add_to_with_workspace(CUstream stream, const void *x, const void *w_values, const void *w_index, void *sum, void *workspace);
// HEADER-NEXT: size_t add_to_workspace(void);
// HEADER: size_t two_workspace(int64_t tokens);
// HEADER: * n: index
// HEADER: size_t part_workspace(int64_t n);

// CHECK: #include "two_layers.h"
// CHECK: static const unsigned char nms_image[] =
// CHECK-NEXT: "//
// CHECK: static int nms_refuses_linear(CUstream stream,
// CHECK-NEXT: return tokens < 0 || tokens > INT32_MAX ||
// CHECK-NEXT: nms_is_misplaced(x, tokens > 0) ||
// CHECK-NEXT: nms_is_misplaced(w_values, 1) ||
// CHECK: static int nms_case0_linear(
// CHECK-NOT: nms_take
// CHECK: const CUdeviceptr buffer0 = (CUdeviceptr)result0;
// CHECK: size_t linear_workspace(int64_t tokens) {
// CHECK-NEXT: if (tokens < 0 || tokens > INT32_MAX)
// CHECK-NEXT: return SIZE_MAX;
// CHECK-NEXT: return 0;
// CHECK: int linear_with_workspace(
// CHECK-NEXT: if (nms_refuses_linear(
// CHECK-NEXT: return CUDA_ERROR_INVALID_VALUE;
// CHECK-NEXT: return nms_case0_linear(
// CHECK: int linear(CUstream stream,
// CHECK-NEXT: return linear_with_workspace(
// CHECK-NOT: nms_allocate
// CHECK: int add_to(
// CHECK: static int64_t nms_bytes0_two(int64_t tokens) {
// CHECK: nms_take(&bytes, 64 * (nms_ceil_div(tokens, 64) * 64) * 2);
// CHECK: size_t two_workspace(int64_t tokens) {
// CHECK: return (size_t)nms_bytes0_two(tokens);
// CHECK: int two_with_workspace(
// CHECK: nms_is_misplaced_workspace(workspace, two_workspace(tokens))
// CHECK: int two(
// CHECK: nms_refuses_two(
// CHECK: nms_allocate(&workspace, two_workspace(tokens), stream)
// CHECK: two_with_workspace(
// CHECK: return nms_release(workspace, stream, status);
// A number that sizes depend on is refused as a size is.
// CHECK: static int nms_refuses_part(
// CHECK-NEXT: return n < 0 ||
// CHECK-NEXT: n > INT32_MAX ||
// CHECK: size_t part_workspace(int64_t n) {
// CHECK-NEXT: if (n < 0 ||
// CHECK-NEXT: n > INT32_MAX)
// CHECK-NEXT: return SIZE_MAX;

// RUN: not nm-compile %s --emit c -o %t/two-layers.c 2>&1 | FileCheck %s --check-prefix=STEM
// STEM: a file of C is named by letters, digits and '_', not by 'two-layers'
// RUN: not nm-compile %s --emit c -o %t/layers 2>&1 | FileCheck %s --check-prefix=ENDING
// ENDING: --emit c writes FILE.c, and FILE.h beside it: end the name in -o with .c, not '
// RUN: not nm-compile %s --emit c --arguments fields -o %t/l.c 2>&1 | FileCheck %s --check-prefix=FORM
// FORM: --emit c takes kernels with --arguments bound, not fields; leave it out
// RUN: not nm-compile %s --object cubin -o %t/l.ptx 2>&1 | FileCheck %s --check-prefix=OBJECT
// OBJECT: --object says how a host's file holds the kernels, and --emit ptx writes none; leave it out
// RUN: sed 's/@linear/@double/' %s > %t/word.mlir
// RUN: not nm-compile %t/word.mlir --tokens 16 --emit c -o %t/word.c 2>&1 | FileCheck %s --check-prefix=WORD
// WORD: @double cannot be a function of C: give it a name of letters, digits and '_' that is no word of C
// RUN: sed 's/@add_to/@linear_workspace/' %s > %t/taken.mlir
// RUN: not nm-compile %t/taken.mlir --tokens 16 --emit c -o %t/taken.c 2>&1 | FileCheck %s --check-prefix=TAKEN
// TAKEN: @linear_workspace has the name of a function that comes with @linear: give one of them another name
// RUN: sed 's/@linear/@add_to_with_workspace/' %s > %t/taken.mlir
// RUN: not nm-compile %t/taken.mlir --tokens 16 --emit c -o %t/taken.c 2>&1 | FileCheck %s --check-prefix=BEFORE
// BEFORE: @add_to_with_workspace has the name of a function that comes with @add_to: give one of them another name
// Both files are written, or none.
// RUN: mkdir %t/main.c %t/header.h %t/other.json
// RUN: not nm-compile %s --tokens 16 --emit c -o %t/main.c 2>&1 | FileCheck %s --check-prefix=DIRECTORY
// RUN: not nm-compile %s --tokens 16 --emit c -o %t/header.c 2>&1 | FileCheck %s --check-prefix=DIRECTORY
// RUN: not nm-compile %s --tokens 16 --emit c -o %t/third.c --manifest %t/other.json 2>&1 | FileCheck %s --check-prefix=DIRECTORY
// DIRECTORY: cannot write {{.*(main.c|header.h|other.json)}}: it is a directory
// RUN: ln -s /dev/full %t/full.c
// RUN: not nm-compile %s --tokens 16 --emit c -o %t/full.c 2>&1 | FileCheck %s --check-prefix=FULL
// FULL: cannot write {{.*}}full.c: No space left on device
// RUN: not ls %t/main.h %t/header.c %t/third.c %t/third.h %t/full.h
// RUN: not nm-compile %s --tokens 16 --emit c -o %t/no/folder.c 2>&1 | FileCheck %s --check-prefix=FOLDER
// FOLDER: cannot write {{.*}}folder.h: No such file or directory
// RUN: nm-compile --emit c --help | FileCheck %s --check-prefix=HELP
// HELP: usage: nm-compile

// RUN: not ls %t/word.c %t/word.h %t/taken.c %t/taken.h %t/l.c %t/l.ptx

#w = #nm_sparse.encoding<8:32, block = [1, 32]>
func.func @linear(%x: tensor<?x128xf16>, %w: tensor<128x64xf16, #w>)
    -> tensor<?x64xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x128xf16>
  %e = tensor.empty(%m) : tensor<?x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x64xf32>)
      -> tensor<?x64xf32>
  %y = linalg.matmul ins(%x, %w : tensor<?x128xf16>, tensor<128x64xf16, #w>)
      outs(%z : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

func.func @add_to(%x: tensor<16x128xf16>, %w: tensor<128x64xf16, #w>,
                  %sum: tensor<16x64xf32>) -> tensor<16x64xf32> {
  %y = linalg.matmul ins(%x, %w : tensor<16x128xf16>, tensor<128x64xf16, #w>)
      outs(%sum : tensor<16x64xf32>) -> tensor<16x64xf32>
  return %y : tensor<16x64xf32>
}

func.func @two(%x: tensor<?x128xf16>, %w: tensor<128x64xf16, #w>,
               %v: tensor<64x64xf16, #w>) -> tensor<?x64xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x128xf16>
  %e = tensor.empty(%m) : tensor<?x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x64xf32>)
      -> tensor<?x64xf32>
  %y = linalg.matmul ins(%x, %w : tensor<?x128xf16>, tensor<128x64xf16, #w>)
      outs(%z : tensor<?x64xf32>) -> tensor<?x64xf32>
  %h = tensor.empty(%m) : tensor<?x64xf16>
  %u = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>,
                                        affine_map<(m, n) -> (m, n)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%y : tensor<?x64xf32>) outs(%h : tensor<?x64xf16>) {
  ^bb0(%a: f32, %o: f16):
    %r = arith.truncf %a : f32 to f16
    linalg.yield %r : f16
  } -> tensor<?x64xf16>
  %s = linalg.matmul ins(%u, %v : tensor<?x64xf16>, tensor<64x64xf16, #w>)
      outs(%z : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %s : tensor<?x64xf32>
}

// The first %n tokens.
func.func @part(%x: tensor<?x128xf16>, %w: tensor<128x64xf16, #w>,
                %v: tensor<64x64xf16, #w>, %n: index) -> tensor<?x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%n) : tensor<?x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x64xf32>)
      -> tensor<?x64xf32>
  %p = tensor.extract_slice %x[0, 0] [%n, 128] [1, 1]
      : tensor<?x128xf16> to tensor<?x128xf16>
  %y = linalg.matmul ins(%p, %w : tensor<?x128xf16>, tensor<128x64xf16, #w>)
      outs(%z : tensor<?x64xf32>) -> tensor<?x64xf32>
  %h = tensor.empty(%n) : tensor<?x64xf16>
  %u = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>,
                                        affine_map<(m, n) -> (m, n)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%y : tensor<?x64xf32>) outs(%h : tensor<?x64xf16>) {
  ^bb0(%a: f32, %o: f16):
    %r = arith.truncf %a : f32 to f16
    linalg.yield %r : f16
  } -> tensor<?x64xf16>
  %s = linalg.matmul ins(%u, %v : tensor<?x64xf16>, tensor<64x64xf16, #w>)
      outs(%z : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %s : tensor<?x64xf32>
}
