//===- nm-run.cpp - run, check and time a function ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Options.h"

#include "nm_sparse/Execution/Host/UseEmulator.h"
#include "nm_sparse/Runtime/Driver.h"
#include "nm_sparse/Runtime/Error.h"
#include "nm_sparse/Support/StandardOutput.h"
#include "nm_sparse/Support/Version.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/raw_ostream.h"
#include <unistd.h>

using namespace mlir;
using namespace mlir::nm_sparse;

static constexpr const char *usage =
    R"(usage: nm-run IN.mlir [options]
Runs a function with seeded random inputs (weights pruned to their pattern).

  --entry F          function to run; default: the only public one
  --device D         cuda (a GPU), emulate (its kernels, emulated on the CPU),
                     cpu (the same program with dense products), or auto: cuda
                     if there is a GPU, else emulate
  --size m=N         size of each dynamic dimension that neither a weight nor an
                     operation determines; default 64
  --tokens LIST      compile for these numbers of tokens, such as 16,2048, where
                     theirs is dynamic, or for any (auto); default: the --size
  --storage S        of packed weights: auto (default), canonical, bitmap
                     or k_major
  --embed HOW        weights of other patterns that are 2:4, too, as 2:4, and
                     those of two levels by their elements: auto (default; as
                     the model says), always or never
  --embed-checked    also those that only their packing shows to be 2:4
  --density P        percent of the elements that free weights keep; default 50
  --bind W=FILE      make argument %W of the function a constant, of
                     FILE.safetensors or FILE.safetensors:TENSOR; may be given
                     again
  --specialize-constants
                     weights that are constants may become code of kernels
  --max-code-bytes N of instructions at most for each of them; default 3145728
  --pack WHERE       weights that the program packs when it runs: host (auto,
                     default) or device (by a kernel)
  --launches HOW     of products of few tokens: merged (default; those of the
                     same activations are one) or separate
  --max-kernels N    with --tokens auto, for at most N numbers; default 8
  --sweep-tokens F:L time the function, compiled for any number of tokens, with
                     numbers from F to L, and cuBLAS beside it
  --seed S           seed of the inputs; default 0
  --check            compare with a float64 dense product; status 1 if wrong
  --tolerance T      largest relative Frobenius error; default by the narrowest
                     type that a result is rounded to on its way
  --bench            time the kernels, and cuBLAS beside them (on a GPU)
  --bench-ms N       take at most about N ms of samples; default: 50 replays
  --energy           as --bench, and measure joules by the GPU's own counter
  --energy-seconds S least length of a loop, 0.2 to 600; default 1
  --energy-repeats N loops of our kernels, and as many of cuBLAS; default 5
  --lock FILE        runs that name the same FILE take times one after another,
                     and use the GPU for nothing else meanwhile
  --schedule TEXT    schedule of every sparse matmul, instead of the model's;
                     docs/Schedule.md lists the fields
  --chip C           chip to compile for, and to emulate; default: the GPU's,
                     or sm_90a
  --gpu G            GPU whose rates to choose kernels by, such as h100; default:
                     the one that there is
  --last-first       emulate the last CTAs first
  --bank-conflicts   count the wavefronts of accesses to shared memory, and how
                     many of them are due to conflicts of banks; emulator only
  --lowered FILE     run this module, with IN.mlir's inputs and reference: what
                     nm-opt --nm-sparse-to-nvvm="chip=C host-memory=true" made of
                     IN.mlir and you changed
  --output PREFIX    write each result to PREFIX.N.npy; bf16 as uint16
  --json FILE        write a report; - is standard output
  --batch LIST       one line of arguments for each run, instead of IN.mlir
  --jobs N           runs of a batch at a time; default 1
  --timeout S        seconds after which a run of a batch is given up; 120
  --deadline S       seconds after which no further run of a batch is begun
  --probe-device     say which GPU there is; status 1 if none
  --print-emulated   print which operations are emulated, as a table
  --version          print which build this is

Status: 0 all well, 1 a check failed or a run could not go on, 2 bad usage.
)";

static llvm::json::Object makeHeader(int argc, char **argv) {
  std::string command = "nm-run";
  for (int i = 1; i < argc; ++i)
    command += " " + std::string(argv[i]);
  return llvm::json::Object{{"commit", NM_SPARSE_COMMIT},
                            {"version", NM_SPARSE_VERSION},
                            {"command", llvm::json::fixUTF8(command)}};
}

static void addDevice(llvm::json::Object &json) {
  NmsDeviceInfo info;
  if (isEmulating() || nmsDeviceInfo(&info))
    return;
  json["gpu"] = info.name;
  json["driver"] = llvm::formatv("{0}.{1}", info.driverVersion / 1000,
                                 info.driverVersion % 1000 / 10)
                       .str();
}

static int probeDevice() {
  NmsDeviceInfo info;
  if (nmsDeviceInfo(&info)) {
    llvm::errs() << "nm-run: " << nmsLastError() << "\n";
    return 1;
  }
  llvm::outs() << info.name << ", sm_" << info.ccMajor << info.ccMinor << "\n";
  return 0;
}

static int fail(llvm::Error error, int status) {
  llvm::errs() << "nm-run: " << llvm::toString(std::move(error)) << "\n";
  return status;
}

/// The out-of-memory handler of LLVM, and of `new` in all code.
static void exitOutOfMemory(void *, const char *, bool) {
  // Nothing here may allocate.
  static constexpr char message[] =
      "nm-run: out of memory: choose a smaller --size\n";
  (void)!write(STDERR_FILENO, message, sizeof(message) - 1);
  _exit(1);
}

int main(int argc, char **argv) {
  checkStandardOutput("nm-run");
  llvm::InitLLVM init(argc, argv);
  llvm::install_bad_alloc_error_handler(exitOutOfMemory);
  auto options = parseRunOptions(ArrayRef<const char *>(argv + 1, argc - 1));
  if (!options)
    return fail(options.takeError(), 2);
  if (options->help) {
    llvm::outs() << usage;
    return 0;
  }
  if (options->version) {
    llvm::outs() << describeVersion("nm-run");
    return 0;
  }
  if (options->probe)
    return probeDevice();
  if (options->printEmulated) {
    llvm::outs() << describeEmulatedOps();
    return 0;
  }
  llvm::json::Object header = makeHeader(argc, argv);
  if (options->sweep)
    return runSweep(*options, std::move(header));
  if (!options->batch.empty())
    return runBatch(*options, std::move(header));

  auto report = run(options->request);
  if (!report)
    return fail(report.takeError(), 1);
  llvm::outs() << report->text;
  if (!options->json.empty()) {
    addDevice(header);
    for (auto &[key, value] : report->json)
      header[key] = std::move(value);
    if (llvm::Error error = writeJSON(options->json, std::move(header)))
      return fail(std::move(error), 1);
  }
  return report->passed ? 0 : 1;
}
