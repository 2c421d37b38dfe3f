//===- Pipelines.h - the data path as code ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The stages of the compiler in order, each a function that fills a pass
// manager, and the pipelines made of them. `getStages()` is the one list that
// the whole pipeline, `nm-compile --emit` and `nm-compile --explain` read.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_PIPELINES_PIPELINES_H
#define NM_SPARSE_PIPELINES_PIPELINES_H

#include "mlir/Pass/PassOptions.h"
#include "mlir/Support/LLVM.h"
#include "nm_sparse/Chip/DefaultChip.h"
#include "nm_sparse/Support/DefaultCodeBytes.h"

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace mlir::nm_sparse {

/// Options of the GPU pipelines.
struct GPUPipelineOptions : public PassPipelineOptions<GPUPipelineOptions> {
  PassOptions::Option<std::string> chip{
      *this, "chip", llvm::cl::desc("GPU to compile for, such as sm_90a"),
      llvm::cl::init(kDefaultChip)};
  PassOptions::Option<std::string> gpu{
      *this, "gpu",
      llvm::cl::desc("GPU of that chip whose rates to choose by, such as h100; "
                     "empty: h200 for sm_90a")};
  PassOptions::Option<std::string> objective{
      *this, "objective",
      llvm::cl::desc("what schedules are compared by: time, energy, or edp "
                     "(energy times time), the latter two on GPUs whose energy "
                     "was measured"),
      llvm::cl::init("time")};
  PassOptions::ListOption<std::string> tuned{
      *this, "tuned",
      llvm::cl::desc("tuning databases, whose schedules are taken where they "
                     "have some")};
  PassOptions::ListOption<int64_t> tokens{
      *this, "tokens",
      llvm::cl::desc(
          "where the number of tokens is dynamic, those to compile a "
          "function for: it selects between them when it is called; "
          "none: as the cost model says, from 1 up")};
  PassOptions::Option<int64_t> maxKernels{
      *this, "max-kernels",
      llvm::cl::desc("numbers of tokens to compile a function for at most"),
      llvm::cl::init(8)};
  PassOptions::Option<std::string> layout{
      *this, "layout",
      llvm::cl::desc("of activations between products: auto (as the cost model "
                     "says), feature-major, or keep"),
      llvm::cl::init("auto")};
  PassOptions::Option<std::string> storage{
      *this, "storage",
      llvm::cl::desc(
          "form that packed weights are stored in: auto (as the "
          "pattern and the elements say), canonical, bitmap or k_major"),
      llvm::cl::init("auto")};
  PassOptions::Option<std::string> embed{
      *this, "embed",
      llvm::cl::desc("weights of other patterns that are 2:4, too, as 2:4 for "
                     "sparse tensor cores: auto (where that is predicted to be "
                     "faster), always or never"),
      llvm::cl::init("auto")};
  PassOptions::Option<bool> embedChecked{
      *this, "embed-checked",
      llvm::cl::desc("also arguments and weights packed at run time whose "
                     "pattern need not be 2:4: packing them fails if they are "
                     "not"),
      llvm::cl::init(false)};
  PassOptions::Option<int64_t> density{
      *this, "density",
      llvm::cl::desc("percent of the elements of `free` weights that are "
                     "expected to be kept, by which schedules are chosen"),
      llvm::cl::init(50)};
  PassOptions::Option<bool> specializeConstants{
      *this, "specialize-constants",
      llvm::cl::desc("weights that are constants may become code, where that "
                     "is predicted to be faster"),
      llvm::cl::init(false)};
  PassOptions::Option<int64_t> maxCodeBytes{
      *this, "max-code-bytes",
      llvm::cl::desc("bytes of instructions at most that such a weight may "
                     "become"),
      llvm::cl::init(kDefaultMaxCodeBytes)};
  PassOptions::Option<std::string> pack{
      *this, "pack",
      llvm::cl::desc("where weights that come dense are packed: host, device "
                     "(by a kernel), or auto (where the caller passes them)"),
      llvm::cl::init("auto")};
  PassOptions::Option<std::string> launches{
      *this, "launches",
      llvm::cl::desc("of products of few tokens: merged (those of the same "
                     "activations are one) or separate"),
      llvm::cl::init("merged")};
  PassOptions::Option<std::string> arguments{
      *this, "arguments",
      llvm::cl::desc("what kernels take: fields (each memref as its pointers, "
                     "sizes and strides), bound (pointers, tensor maps by "
                     "value and 32-bit numbers) or device-maps (as bound, and "
                     "kernels make the tensor maps)"),
      llvm::cl::init("fields")};
  PassOptions::Option<bool> exactResults{
      *this, "exact-results",
      llvm::cl::desc("results have no rows between and behind those that their "
                     "types say"),
      llvm::cl::init(false)};
  PassOptions::Option<std::string> features{
      *this, "features",
      llvm::cl::desc("PTX version, such as +ptx80; empty: the oldest that "
                     "knows the chip and all instructions used")};
  PassOptions::Option<unsigned> optLevel{
      *this, "opt-level", llvm::cl::desc("LLVM optimization level, 0 to 3"),
      llvm::cl::init(3)};
  PassOptions::Option<bool> hostMemory{
      *this, "host-memory",
      llvm::cl::desc("callers pass host memory: copy it to the device and back "
                     "(otherwise all buffers must be device memory)"),
      llvm::cl::init(false)};
  PassOptions::Option<bool> checkIndex{
      *this, "check-index",
      llvm::cl::desc("check the index of every packed argument when a function "
                     "is called; needs host-memory"),
      llvm::cl::init(false)};
  PassOptions::Option<bool> packedMath{
      *this, "packed-math",
      llvm::cl::desc("compute GELU of f16 results in pairs of f16, less exact "
                     "(--nm-sparse-approximate-math says how much)"),
      llvm::cl::init(true)};
  PassOptions::Option<std::string> format{
      *this, "format",
      llvm::cl::desc("what gpu.binary holds: isa (PTX), bin, fatbin, or mlir "
                     "(the text of the kernels, for the emulator)"),
      llvm::cl::init("isa")};
};

/// Returns the number of tokens to decide for if there must be a single one:
/// the only one that `options` name, or 2048.
int64_t getExpectedTokens(const GPUPipelineOptions &options);

/// One stage of the data path.
struct Stage {
  StringRef name;    ///< As in `nm-compile --emit NAME`.
  StringRef summary; ///< One line for people.
  void (*build)(OpPassManager &, const GPUPipelineOptions &);
};

/// The stages from linalg to NVVM, in order.
ArrayRef<Stage> getStages();

/// Chips that the compiler is tested for, oldest first.
ArrayRef<StringRef> getSupportedChips();

/// The oldest PTX version (as a target feature) for `chip`, or an empty string
/// when the chip is not known.
StringRef getDefaultFeatures(StringRef chip);

/// Encoded linalg contractions become nm_sparse operations on packed weights.
void buildFrontPipeline(OpPassManager &pm, const GPUPipelineOptions &options);
/// The same for the CPU, which needs no kernels: any weight that can be packed.
void buildOracleFrontPipeline(OpPassManager &pm);
/// Functions of any number of tokens select between copies that are compiled
/// for some.
void buildSpecializePipeline(OpPassManager &pm,
                             const GPUPipelineOptions &options);
/// Activations between matmuls become feature-major.
void buildLayoutPipeline(OpPassManager &pm, const GPUPipelineOptions &options);
/// Every matmul gets a schedule.
void buildSchedulePipeline(OpPassManager &pm,
                           const GPUPipelineOptions &options);
/// Tiles, shared-memory promotion, vector form, buffers, gpu.launch.
void buildTilePipeline(OpPassManager &pm, const GPUPipelineOptions &options);
void buildPromotePipeline(OpPassManager &pm, const GPUPipelineOptions &options);
void buildVectorizePipeline(OpPassManager &pm,
                            const GPUPipelineOptions &options);
void buildBufferizePipeline(OpPassManager &pm,
                            const GPUPipelineOptions &options);
void buildMapPipeline(OpPassManager &pm, const GPUPipelineOptions &options);
/// Multi-buffered K loop.
void buildStagingPipeline(OpPassManager &pm, const GPUPipelineOptions &options);
/// One thread's code, shared memory laid out.
void buildThreadsPipeline(OpPassManager &pm, const GPUPipelineOptions &options);
/// Kernels outlined and in the NVVM dialect with a target attached.
void buildNVVMExitPipeline(OpPassManager &pm,
                           const GPUPipelineOptions &options);

/// linalg to host code (func, memref) and gpu.module in the NVVM dialect.
void buildToNVVMPipeline(OpPassManager &pm, const GPUPipelineOptions &options);
/// Host code and gpu.module to the LLVM dialect and gpu.binary.
void buildHostExitPipeline(OpPassManager &pm,
                           const GPUPipelineOptions &options);
/// buildToNVVMPipeline, then buildHostExitPipeline.
void buildToHostLLVMPipeline(OpPassManager &pm,
                             const GPUPipelineOptions &options);
/// The oracle: unpack and multiply densely on the CPU.
void buildToCPUPipeline(OpPassManager &pm);
/// All in float64 with dense weights, still on tensors.
void buildReferencePipeline(OpPassManager &pm);
/// The result of buildReferencePipeline to the LLVM dialect for the CPU.
void buildReferenceExitPipeline(OpPassManager &pm);
/// buildReferencePipeline, then buildReferenceExitPipeline.
void buildToReferencePipeline(OpPassManager &pm);

/// Registers the pipelines under names that start with "nm-sparse-".
void registerPipelines();

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_PIPELINES_PIPELINES_H
