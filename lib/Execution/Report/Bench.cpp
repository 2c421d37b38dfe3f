//===- Bench.cpp - time recorded launches ---------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Report/Bench.h"

#include "Lowering/Lowering.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "nm_sparse/Execution/Host/Array.h"
#include "nm_sparse/Pipelines/Pipelines.h"
#include "nm_sparse/Pipelines/Run.h"
#include "nm_sparse/Runtime/Error.h"
#include "nm_sparse/Runtime/Recorder.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <chrono>

using namespace mlir;
using namespace mlir::nm_sparse;

llvm::Expected<SmallVector<Product>>
nm_sparse::findProducts(ModuleOp module, int64_t dynamicSize) {
  OwningOpRef<ModuleOp> clone = cast<ModuleOp>(module->clone());
  if (llvm::Error error =
          runPipeline(*clone, "stage front", [](OpPassManager &pm) {
            buildFrontPipeline(pm, GPUPipelineOptions());
          }))
    return std::move(error);

  auto getExtent = [&](int64_t extent) {
    return ShapedType::isDynamic(extent) ? dynamicSize : extent;
  };
  SmallVector<Product> products;
  clone->walk([&](MatmulOp matmul) {
    auto x = cast<RankedTensorType>(matmul.getX().getType());
    auto result = cast<RankedTensorType>(matmul.getResult().getType());
    std::optional<int32_t> kind = getRuntimeKind(x.getElementType());
    if (!kind)
      return;
    Product product = {*kind, 1, 1, 1, matmul.getContractionSize()};
    AffineMap map = matmul.getResultMap();
    for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
      unsigned loop = cast<AffineDimExpr>(expr).getPosition();
      int64_t extent = getExtent(result.getDimSize(dim));
      if (loop == matmul.getTokenLoop())
        product.m = extent;
      else if (loop == matmul.getOutputLoop())
        product.n = extent;
      else
        product.batch = extent;
    }
    products.push_back(product);
  });
  return products;
}

int64_t nm_sparse::getNumSets(ArrayRef<Product> products,
                              ArrayRef<Argument> arguments) {
  // Some three times the L2 cache of an H200, in operands of the dense product,
  // or in what a function without one reads.
  constexpr int64_t wantedBytes = 160 << 20, mostSets = 64;
  int64_t bytes = 1;
  if (products.empty())
    for (const Argument &argument : arguments)
      bytes += static_cast<int64_t>(argument.array.data.size());
  for (const Product &p : products)
    bytes +=
        p.batch * (p.m * p.k + p.k * p.n + p.m * p.n) * nmsKindBytes(p.kind);
  return std::clamp<int64_t>(llvm::divideCeil(wantedBytes, bytes), 1, mostSets);
}

static double getFlops(const Product &product) {
  return 2.0 * product.batch * product.m * product.n * product.k;
}

static llvm::json::Object toJSON(const NmsTiming &timing) {
  return llvm::json::Object{
      {"median_us", timing.medianUs}, {"min_us", timing.minUs},
      {"max_us", timing.maxUs},       {"spread", timing.spread},
      {"replays", timing.replays},    {"inner", timing.inner}};
}

std::string nm_sparse::getDenseName(int32_t kind) {
  NmsDenseInfo info;
  if (nmsDenseInfo(kind, &info))
    return "cuBLAS dense";
  std::string name = std::string(info.library) + " dense";
  // Results of other kinds are those of the activations.
  if (info.resultKind != info.xKind)
    name += llvm::formatv(" ({0} x {1} = {2})", nmsKindName(info.xKind),
                          nmsKindName(info.weightKind),
                          nmsKindName(info.resultKind));
  return name;
}

/// The JSON of a dense product of activations of `kind`.
static llvm::json::Object describeDense(const NmsVersus &versus, int32_t kind) {
  llvm::json::Object json{{"nn", toJSON(versus.cublasNN)},
                          {"tn", toJSON(versus.cublasTN)},
                          {"version", versus.cublasVersion}};
  NmsDenseInfo info;
  if (!nmsDenseInfo(kind, &info)) {
    json["library"] = info.library;
    json["types"] =
        llvm::json::Array{nmsKindName(info.xKind), nmsKindName(info.weightKind),
                          nmsKindName(info.resultKind)};
  }
  return json;
}

static double getUnixTime() {
  return std::chrono::duration<double>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

llvm::Error nm_sparse::benchRecorded(ArrayRef<Product> products, int64_t sets,
                                     int64_t budget, RunReport &report) {
  double begin = getUnixTime();
  double flops = 0;
  for (const Product &product : products)
    flops += getFlops(product);

  NmsTiming ours = {};
  double denseUs = 0;
  bool compared = false;
  std::string why;
  NmsBenchOptions options = {};
  options.sets = int32_t(sets);
  options.budgetMs = int32_t(budget);
  if (products.size() == 1) {
    NmsVersus versus = {};
    const Product &p = products.front();
    compared = !nmsBenchAgainstCublas(p.kind, p.m, p.n, p.k, p.batch, &options,
                                      &versus);
    ours = versus.ours;
    denseUs = versus.cublasBestUs;
    if (!compared)
      why = nmsLastError();
    else
      report.json["cublas"] = describeDense(versus, p.kind);
  }
  if (!compared) {
    if (nmsBenchRecorded(&options, &ours))
      return llvm::createStringError(nmsLastError());
    compared = products.size() > 1;
    for (const Product &p : products) {
      NmsVersus versus = {};
      compared = compared && !nmsBenchCublas(p.kind, p.m, p.n, p.k, p.batch,
                                             &options, &versus);
      denseUs += versus.cublasBestUs;
    }
    if (!compared && why.empty())
      why = products.empty() ? "no sparse product" : nmsLastError();
  }

  double tflops = flops / ours.medianUs * 1e-6;
  report.json["time"] = toJSON(ours);
  report.json["tflops_dense_equivalent"] = tflops;
  report.json["launches"] = nmsRecordCount() / sets;
  llvm::json::Array kernels;
  for (int64_t launch = 0; launch < nmsRecordCount() / sets; ++launch)
    kernels.push_back(std::string(nmsRecordKernelName(launch)));
  report.json["kernels"] = std::move(kernels);
  report.json["overlapping_launches"] = nmsRecordOverlapCount() / sets;
  report.json["sets"] = sets;
  // When the clocks that another program reads are those of this measurement.
  report.json["measured_at"] = llvm::json::Array{begin, getUnixTime()};
  report.text += llvm::formatv("  {0:f2} us, {1:f1} TFLOP/s dense-equivalent",
                               ours.medianUs, tflops);
  if (compared) {
    report.json["cublas_us"] = denseUs;
    report.json["speedup"] = denseUs / ours.medianUs;
    report.text += llvm::formatv("; {0} {1:f2} us: {2:f2}x\n",
                                 getDenseName(products.front().kind), denseUs,
                                 denseUs / ours.medianUs);
  } else {
    report.text += "; not compared with cuBLAS: " + why + "\n";
  }
  return llvm::Error::success();
}
