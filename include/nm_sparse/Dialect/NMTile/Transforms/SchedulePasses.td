//===- SchedulePasses.td - schedules of products --------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMTILE_TRANSFORMS_SCHEDULEPASSES
#define NM_SPARSE_DIALECT_NMTILE_TRANSFORMS_SCHEDULEPASSES

include "mlir/Pass/PassBase.td"

def NMSparseSpecializeTokensPass
    : Pass<"nm-sparse-specialize-tokens", "::mlir::ModuleOp"> {
  let summary = "select by the number of tokens between copies of a function";
  let description = [{
    A kernel that is best for 2048 tokens takes several times too long for 16. A
    function whose products have a dynamic number of tokens becomes a selection
    between private copies of it, each with the number of tokens, as
    `nm_sparse.tokens`, that the later passes decide for.

    Layouts and schedules are chosen for many numbers of tokens, in copies that
    are thrown away, and each choice is held against the others, by the cost
    model, at numbers up to 16384. At most `max-kernels` of them are kept, as few
    as stay within 3 % of the best everywhere, and fewer where hundreds of operations
    follow a product, which take long to compile. With `tokens` all the given ones
    are kept whose choices differ. A function for which one is enough gets the
    attribute alone.

    Where tuning databases (`files`) have schedules for a product, choices are held
    against each other with these, for the numbers of tokens that were measured, and
    what is predicted of one for other numbers is scaled by what it took.

    Functions whose products differ in their number of tokens, or compute it in a
    loop, are left alone, with a remark.

    ```mlir
    // Before
    func.func @f(%x: tensor<?x4096xf16>, ...) -> tensor<?x4096xf16> { ... }
    // After
    func.func @f(%x: tensor<?x4096xf16>, ...) -> tensor<?x4096xf16> {
      %tokens = tensor.dim %x, %c0 : tensor<?x4096xf16>
      %class = nm_sparse.token_class %tokens last = [64] classes = [0, 1]
      %y = scf.index_switch %class -> tensor<?x4096xf16>
      case 0 {
        %r = func.call @f_tokens_64(%x, ...)
        scf.yield %r
      }
      default {
        %r = func.call @f_tokens_2048(%x, ...)
        scf.yield %r
      }
      return %y
    }
    func.func private @f_tokens_64(...) attributes {nm_sparse.tokens = 64} { ... }
    func.func private @f_tokens_2048(...) ...
    ```
  }];
  let options = [
    Option<"chip", "chip", "std::string", /*default=*/"::mlir::nm_sparse::kDefaultChip",
           "GPU to choose for">,
    Option<"gpu", "gpu", "std::string", /*default=*/"\"\"",
           "GPU whose rates to choose by, such as h100; that of the chip">,
    ListOption<"tokens", "tokens", "int64_t",
               "numbers of tokens to choose among; none: as the model says">,
    ListOption<"files", "files", "std::string", "tuning databases">,
    Option<"maxKernels", "max-kernels", "int64_t", /*default=*/"8",
           "copies of a function at most">,
    Option<"layout", "layout", "std::string", /*default=*/"\"auto\"",
           "as in --nm-sparse-propagate-layout">,
    Option<"objective", "objective", "std::string", /*default=*/"\"time\"",
           "as in --nm-sparse-select-schedule">
  ];
  let dependentDialects = ["::mlir::affine::AffineDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::func::FuncDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::nm_sparse::NMSparseDialect",
                           "::mlir::nm_sparse::NMTileDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect"];
}

def NMSparseAlignOperandsPass
    : Pass<"nm-sparse-align-operands", "::mlir::func::FuncOp"> {
  let summary = "align the rows of a caller's activations where that pays";
  let description = [{
    Feature-major activations that a caller gives have rows of as many elements as
    there are tokens, or of what the caller chooses. Where their distance may be
    no multiple of 32 bytes, or of 16, and the cost model predicts that the
    products that read them gain more than a copy takes, they read a
    `nm_tile.align_rows` with that alignment. `objective` says what is compared:
    time, energy or their product, of the schedules that it chooses.

    ```mlir
    // Before
    %y = nm_sparse.matmul ... ins(%x, ... : tensor<4096x?xf16>, ...)
    // After
    %a = nm_tile.align_rows alignment = 32 ins(%x : tensor<4096x?xf16>)
           -> tensor<4096x?xf16>
    %y = nm_sparse.matmul ... ins(%a, ... : tensor<4096x?xf16>, ...)
    ```
  }];
  let options = [
    Option<"chip", "chip", "std::string", /*default=*/"::mlir::nm_sparse::kDefaultChip",
           "GPU to choose for">,
    Option<"gpu", "gpu", "std::string", /*default=*/"\"\"",
           "GPU whose rates to choose by, such as h100; that of the chip">,
    Option<"tokens", "tokens", "int64_t", /*default=*/"2048",
           "number of tokens to assume where it is dynamic">,
    Option<"objective", "objective", "std::string", /*default=*/"\"time\"",
           "as in --nm-sparse-select-schedule">
  ];
  let dependentDialects = ["::mlir::nm_sparse::NMTileDialect"];
}

def NMSparseSelectSchedulePass
    : Pass<"nm-sparse-select-schedule", "::mlir::func::FuncOp"> {
  let summary = "give each matmul the schedule that the cost model predicts best";
  let description = [{
    Sets the config of each `nm_sparse.matmul` that has none to a
    `#nm_tile.schedule`; one that is there
    is kept after a check against the chip's shared memory. The decision is
    `rankSchedules` of `nm_sparse/Analysis/CostModel.h`: the least predicted
    time, or with `objective`, the least energy or product of energy and time
    (`nm_sparse/Analysis/EnergyModel.h`), on GPUs whose energy was measured.

    With `merge-launches`, products of the same activations that read global
    memory themselves get CTAs of one size, where what each then takes more is
    less than a launch: --nm-sparse-merge-launches can make them one.
  }];
  let options = [
    Option<"chip", "chip", "std::string", /*default=*/"::mlir::nm_sparse::kDefaultChip",
           "GPU to choose for">,
    Option<"gpu", "gpu", "std::string", /*default=*/"\"\"",
           "GPU whose rates to choose by, such as h100; that of the chip">,
    Option<"tokens", "tokens", "int64_t", /*default=*/"2048",
           "number of tokens to assume where it is dynamic">,
    Option<"mergeLaunches", "merge-launches", "bool", /*default=*/"false",
           "choose for products that are launched together">,
    Option<"objective", "objective", "std::string", /*default=*/"\"time\"",
           "what schedules are compared by: time, energy, or edp (energy "
           "times time)">
  ];
  let dependentDialects = ["::mlir::nm_sparse::NMTileDialect"];
}

def NMSparseApplyTunedPass : Pass<"nm-sparse-apply-tuned", "::mlir::ModuleOp"> {
  let summary = "give matmuls the schedules that were measured for them";
  let description = [{
    Sets the config of each `nm_sparse.matmul` that has none to the schedule that a
    tuning database (docs/Tuning.md) has for its problem on `gpu`, or for the nearest
    number of tokens of the same layer, at most twice or half as many. A schedule
    that this compiler does not know, or that is not legal for the problem or the
    chip, is ignored with a warning. Matmuls without an entry are left for
    `--nm-sparse-select-schedule`. Entries count that are the best by the same
    `objective`.
  }];
  let options = [
    ListOption<"files", "files", "std::string", "databases, as lines of JSON">,
    Option<"chip", "chip", "std::string", /*default=*/"::mlir::nm_sparse::kDefaultChip",
           "GPU to compile for">,
    Option<"gpu", "gpu", "std::string", /*default=*/"\"\"",
           "GPU that was measured, such as h100; that of the chip">,
    Option<"objective", "objective", "std::string", /*default=*/"\"time\"",
           "what schedules were compared by: time, energy or edp">,
    Option<"tokens", "tokens", "int64_t", /*default=*/"2048",
           "number of tokens to assume where it is dynamic">,
  ];
  let dependentDialects = ["::mlir::nm_sparse::NMTileDialect"];
}

def NMSparseCopyImagesPass
    : Pass<"nm-sparse-copy-images", "::mlir::func::FuncOp"> {
  let summary = "let threads copy images, not the tensor memory accelerator";
  let description = [{
    For programs whose kernels make their tensor maps, which have no im2col ones:
    `x = bulk` of a product that reads an image becomes `x = copy`, its grid one
    without clusters.
  }];
  let dependentDialects = ["::mlir::nm_sparse::NMTileDialect"];
}

#endif // NM_SPARSE_DIALECT_NMTILE_TRANSFORMS_SCHEDULEPASSES
