//===- nm-test-emulate.cpp - one kernel in the emulator -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Launches a kernel of a gpu.module in the NVVM dialect and prints the arrays
// that it was given. Links the emulator and no dialect of ours: any compiler on
// MLIR can run its kernels so.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Emulator/Emulator.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cstring>
#include <vector>

using namespace llvm;
using namespace mlir::nm_sparse;
namespace cuda = nms::cuda;

static cl::opt<std::string> input(cl::Positional, cl::init("-"),
                                  cl::desc("a gpu.module in the NVVM dialect"));
static cl::opt<std::string> kernelName("kernel", cl::Required,
                                       cl::desc("what to launch"));
static cl::opt<std::string>
    chip("chip", cl::init(kDefaultChip),
         cl::desc("the GPU that is emulated, such as sm_90a"));
static cl::opt<unsigned> grid("grid", cl::init(1), cl::desc("CTAs"));
static cl::opt<unsigned> block("block", cl::init(1),
                               cl::desc("threads of a CTA"));
static cl::opt<unsigned> shared("shared", cl::init(0),
                                cl::desc("bytes of dynamic shared memory"));
static cl::list<std::string>
    arrays("array", cl::desc("an argument, f32 numbers such as 1,2.5; the "
                             "kernel gets their address"));

/// Ends the program where the driver refuses something.
static void check(const cuda::Api &api, cuda::Result result) {
  if (result == cuda::success)
    return;
  const char *text = "";
  api.getErrorString(result, &text);
  errs() << "nm-test-emulate: " << text << "\n";
  std::exit(1);
}

static std::vector<float> parseArray(StringRef text) {
  std::vector<float> numbers;
  SmallVector<StringRef> words;
  text.split(words, ',');
  for (StringRef word : words) {
    double number = 0;
    if (word.getAsDouble(number)) {
      errs() << "nm-test-emulate: '" << word
             << "' in --array is not a number\n";
      std::exit(1);
    }
    numbers.push_back(static_cast<float>(number));
  }
  return numbers;
}

/// Loads `text`; what the emulator says of it, where it refuses.
static cuda::Module load(const cuda::Api &api, const char *text) {
  char log[4096] = "";
  int options[] = {cuda::jitErrorLog, cuda::jitErrorLogBytes};
  void *values[] = {log, reinterpret_cast<void *>(sizeof(log))};
  cuda::Module module = nullptr;
  if (api.moduleLoadDataEx(&module, text, 2, options, values) !=
      cuda::success) {
    errs() << "nm-test-emulate: " << log << "\n";
    std::exit(1);
  }
  return module;
}

/// Launches the kernel on copies of `contents`, and reads them back.
static void launch(const cuda::Api &api, cuda::Function function,
                   std::vector<std::vector<float>> &contents) {
  std::vector<cuda::DevicePtr> addresses(contents.size());
  std::vector<void *> params;
  for (auto [numbers, address] : zip(contents, addresses)) {
    size_t bytes = numbers.size() * sizeof(float);
    check(api, api.memAlloc(&address, bytes));
    check(api, api.memcpyHtoD(address, numbers.data(), bytes));
    params.push_back(&address);
  }
  check(api, api.launchKernel(function, grid, 1, 1, block, 1, 1, shared,
                              nullptr, params.data(), nullptr));
  check(api, api.ctxSynchronize());
  for (auto [numbers, address] : zip(contents, addresses))
    check(api, api.memcpyDtoH(numbers.data(), address,
                              numbers.size() * sizeof(float)));
}

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  cl::ParseCommandLineOptions(argc, argv, "one kernel in the emulator\n");
  auto buffer = MemoryBuffer::getFileOrSTDIN(input, /*IsText=*/true);
  if (!buffer) {
    errs() << "nm-test-emulate: cannot read " << input << "\n";
    return 1;
  }
  EmulatorOptions options;
  options.chip = chip;
  auto driver = openEmulator(options);
  if (!driver) {
    errs() << "nm-test-emulate: " << toString(driver.takeError()) << "\n";
    return 1;
  }
  const cuda::Api &api = *driver->api;
  cuda::Context context = nullptr;
  check(api, api.init(0));
  check(api, api.primaryCtxRetain(&context, driver->device));
  check(api, api.ctxPush(context));
  cuda::Module module = load(api, (*buffer)->getBufferStart());
  cuda::Function function = nullptr;
  check(api, api.moduleGetFunction(&function, module, kernelName.c_str()));

  std::vector<std::vector<float>> contents;
  for (const std::string &text : arrays)
    contents.push_back(parseArray(text));
  launch(api, function, contents);
  for (const std::vector<float> &numbers : contents) {
    for (float number : numbers)
      outs() << format("%g ", number);
    outs() << "\n";
  }
  return 0;
}
