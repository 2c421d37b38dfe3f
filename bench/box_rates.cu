// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the tensor memory accelerator delivers from L2, by the width of a box:
// the floor of gathers whose runs of neighbouring elements are that short.
//
//   nvcc -arch=sm_90a -o box_rates box_rates.cu -lcuda && ./box_rates >
//   OUT.json
//
// One thread of each SM keeps four stages of shared memory filled with boxes of
// 256 rows of a 4096 x 4096 matrix of f16, at random columns, 32 KB a stage.

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

constexpr int kExtent = 4096, kRows = 256, kStages = 4, kStageBytes = 32 * 1024;

static void check(int status, const char *what) {
  if (status == 0)
    return;
  std::fprintf(stderr, "box_rates: %s failed with %d\n", what, status);
  std::exit(1);
}

__device__ static void wait(uint32_t mbarrier, uint32_t parity) {
  asm volatile("{\n"
               ".reg .pred done;\n"
               "again:\n"
               "mbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n"
               "@!done bra again;\n"
               "}" ::"r"(mbarrier),
               "r"(parity)
               : "memory");
}

__global__ void fill(const __grid_constant__ CUtensorMap map, int columns,
                     int steps) {
  extern __shared__ uint8_t memory[];
  __shared__ uint64_t arrived[kStages];
  if (threadIdx.x != 0)
    return;
  auto mbarriers = uint32_t(__cvta_generic_to_shared(arrived));
  auto tiles = (uint32_t(__cvta_generic_to_shared(memory)) + 1023) & ~1023u;
  for (int i = 0; i < kStages; ++i)
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(mbarriers + 8 * i));
  asm volatile("fence.mbarrier_init.release.cluster;");
  int boxBytes = columns * kRows * 2;
  int row = int(blockIdx.x) % (kExtent / kRows) * kRows;
  uint32_t random = blockIdx.x * 2654435761u;
  for (int step = 0; step < steps + kStages; ++step) {
    uint32_t stage = step % kStages, mbarrier = mbarriers + 8 * stage;
    if (step >= kStages)
      wait(mbarrier, (step / kStages - 1) & 1);
    if (step >= steps)
      continue;
    asm volatile(
        "mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(mbarrier),
        "r"(kStageBytes));
    for (int offset = 0; offset < kStageBytes; offset += boxBytes) {
      random = random * 1664525u + 1013904223u;
      int column = int((random >> 8) % (kExtent / columns)) * columns;
      asm volatile(
          "cp.async.bulk.tensor.2d.shared::cluster.global.tile"
          ".mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
              tiles + stage * kStageBytes + offset),
          "l"(&map), "r"(column), "r"(row), "r"(mbarrier)
          : "memory");
    }
  }
}

/// TB/s of boxes with `columns` elements in a row.
static double measure(void *matrix, int columns, CUtensorMapSwizzle swizzle,
                      int sms) {
  CUtensorMap map;
  cuuint64_t extents[] = {kExtent, kExtent}, pitch[] = {kExtent * 2};
  cuuint32_t box[] = {cuuint32_t(columns), kRows}, strides[] = {1, 1};
  check(cuTensorMapEncodeTiled(
            &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, matrix, extents, pitch,
            box, strides, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
            CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
        "cuTensorMapEncodeTiled");
  constexpr int bytes = kStages * kStageBytes + 1024, steps = 2000;
  check(cudaFuncSetAttribute(fill, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             bytes),
        "cudaFuncSetAttribute");
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "cudaEventCreate");
  check(cudaEventCreate(&end), "cudaEventCreate");
  fill<<<sms, 32, bytes>>>(map, columns, steps);
  check(cudaEventRecord(begin), "cudaEventRecord");
  fill<<<sms, 32, bytes>>>(map, columns, steps);
  check(cudaEventRecord(end), "cudaEventRecord");
  check(cudaEventSynchronize(end), "the kernel");
  float ms;
  check(cudaEventElapsedTime(&ms, begin, end), "cudaEventElapsedTime");
  return double(steps) * sms * kStageBytes / ms * 1e-9;
}

int main() {
  void *matrix;
  check(cudaMalloc(&matrix, size_t(kExtent) * kExtent * 2), "cudaMalloc");
  check(cudaMemset(matrix, 0, size_t(kExtent) * kExtent * 2), "cudaMemset");
  cudaDeviceProp gpu;
  check(cudaGetDeviceProperties(&gpu, 0), "cudaGetDeviceProperties");
  struct {
    int columns;
    CUtensorMapSwizzle swizzle;
  } boxes[] = {{64, CU_TENSOR_MAP_SWIZZLE_128B},
               {32, CU_TENSOR_MAP_SWIZZLE_64B},
               {16, CU_TENSOR_MAP_SWIZZLE_32B},
               {8, CU_TENSOR_MAP_SWIZZLE_NONE}};
  std::printf("{\"gpu\": \"%s\", \"rows\": %d, \"boxes\": [", gpu.name, kRows);
  const char *separator = "\n";
  for (auto [columns, swizzle] : boxes) {
    double rate = measure(matrix, columns, swizzle, gpu.multiProcessorCount);
    std::printf("%s  {\"row_bytes\": %d, \"tb_per_s\": %.2f, "
                "\"ns_per_row_and_sm\": %.3f}",
                separator, columns * 2, rate,
                columns * 2e-3 * gpu.multiProcessorCount / rate);
    separator = ",\n";
  }
  std::printf("]}\n");
  return 0;
}
