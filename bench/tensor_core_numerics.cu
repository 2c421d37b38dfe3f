//===- tensor_core_numerics.cu - what tensor cores really compute ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs single mma.sync, mma.sp.sync, wgmma and sparse wgmma instructions on
// random and on adversarial registers and prints, for each, one line of
//   mnemonic selector | A | B | accumulators | metadata | results
// in hexadecimal words, those of one lane after the other; B of wgmma is in
// shared memory, unswizzled and K-major. Dense instructions have no metadata.
// The emulator is compared with it by
//   nvcc -O2 -gencode=arch=compute_90a,code=sm_90a -o numerics
//     bench/tensor_core_numerics.cu && ./numerics > results.txt
//   NMS_TENSOR_CORE_RESULTS=results.txt NMSparseEmulatorTests
//     --gtest_filter='TensorCoreResults*'
//
//===----------------------------------------------------------------------===//

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

constexpr int tiles = 28; ///< Tiles for each instruction.

struct Registers {
  const uint32_t *a, *b, *metadata;
  uint32_t *d; ///< Accumulators at first.
};

#define LOAD(name, count)                                                      \
  uint32_t name[count];                                                        \
  for (int i = 0; i < count; ++i)                                              \
    name[i] = r.name[threadIdx.x * count + i];
#define STORE(count)                                                           \
  for (int i = 0; i < count; ++i)                                              \
    r.d[threadIdx.x * count + i] = d[i];

// Lists of operands by count, in the order of A, B, D.
#define IN1(x) "r"(x[0])
#define IN2(x) "r"(x[0]), "r"(x[1])
#define IN4(x) "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3])
#define OUT2(x) "+r"(x[0]), "+r"(x[1])
#define OUT4(x) "+r"(x[0]), "+r"(x[1]), "+r"(x[2]), "+r"(x[3])

#define MMA(function, mnemonic, countA, countB, countD, text)                  \
  __global__ void function(Registers r) {                                      \
    LOAD(a, countA)                                                            \
    LOAD(b, countB)                                                            \
    LOAD(d, countD)                                                            \
    asm volatile(mnemonic " " text ";"                                         \
                 : OUT##countD(d)                                              \
                 : IN##countA(a), IN##countB(b));                              \
    STORE(countD)                                                              \
  }
#define MMA_SP(function, mnemonic, countA, countB, countD, text, selector)     \
  __global__ void function(Registers r) {                                      \
    LOAD(a, countA)                                                            \
    LOAD(b, countB)                                                            \
    LOAD(d, countD)                                                            \
    asm volatile(mnemonic " " text ", " selector ";"                           \
                 : OUT##countD(d)                                              \
                 : IN##countA(a), IN##countB(b),                               \
                   "r"(r.metadata[threadIdx.x]));                              \
    STORE(countD)                                                              \
  }

#define D4A4B2 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3}"
#define D4A2B1 "{%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3}"
#define D2A4B2 "{%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%0,%1}"
#define D4A2B2M "{%0,%1,%2,%3}, {%4,%5}, {%6,%7}, {%0,%1,%2,%3}, %8"
#define D2A4B4M "{%0,%1}, {%2,%3,%4,%5}, {%6,%7,%8,%9}, {%0,%1}, %10"
#define D4A4B4M                                                                \
  "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9,%10,%11}, {%0,%1,%2,%3}, %12"

#define SYNC "mma.sync.aligned."
#define SPARSE "mma.sp::ordered_metadata.sync.aligned."
#define F16_8 SYNC "m16n8k8.row.col.f32.f16.f16.f32"
#define F16_16 SYNC "m16n8k16.row.col.f32.f16.f16.f32"
#define F16_F16 SYNC "m16n8k16.row.col.f16.f16.f16.f16"
#define BF16_16 SYNC "m16n8k16.row.col.f32.bf16.bf16.f32"
#define TF32_4 SYNC "m16n8k4.row.col.f32.tf32.tf32.f32"
#define TF32_8 SYNC "m16n8k8.row.col.f32.tf32.tf32.f32"
#define E4M3_32 SYNC "m16n8k32.row.col.f32.e4m3.e4m3.f32"
#define E5M2_32 SYNC "m16n8k32.row.col.f32.e5m2.e5m2.f32"
#define E4M3_16 SYNC "m16n8k16.row.col.f32.e4m3.e4m3.f32"
#define MIXED_32 SYNC "m16n8k32.row.col.f32.e4m3.e5m2.f32"
#define SP_F16_16 SPARSE "m16n8k16.row.col.f32.f16.f16.f32"
#define SP_F16_32 SPARSE "m16n8k32.row.col.f32.f16.f16.f32"
#define SP_F16_F16 SPARSE "m16n8k32.row.col.f16.f16.f16.f16"
#define SP_BF16_32 SPARSE "m16n8k32.row.col.f32.bf16.bf16.f32"
#define SP_TF32_8 SPARSE "m16n8k8.row.col.f32.tf32.tf32.f32"
#define SP_TF32_16 SPARSE "m16n8k16.row.col.f32.tf32.tf32.f32"
#define SP_S8_32 SPARSE "m16n8k32.row.col.s32.s8.s8.s32"
#define SP_S8_64 SPARSE "m16n8k64.row.col.s32.s8.s8.s32"
#define SP_E4M3_64 SPARSE "m16n8k64.row.col.f32.e4m3.e4m3.f32"
#define SP_E5M2_64 SPARSE "m16n8k64.row.col.f32.e5m2.e5m2.f32"

MMA(f16x8, F16_8, 2, 1, 4, D4A2B1)
MMA(f16x16, F16_16, 4, 2, 4, D4A4B2)
MMA(f16f16, F16_F16, 4, 2, 2, D2A4B2)
MMA(bf16x16, BF16_16, 4, 2, 4, D4A4B2)
MMA(tf32x4, TF32_4, 2, 1, 4, D4A2B1)
MMA(tf32x8, TF32_8, 4, 2, 4, D4A4B2)
MMA(e4m3x32, E4M3_32, 4, 2, 4, D4A4B2)
MMA(e5m2x32, E5M2_32, 4, 2, 4, D4A4B2)
MMA(e4m3x16, E4M3_16, 2, 1, 4, D4A2B1)
MMA(mixedx32, MIXED_32, 4, 2, 4, D4A4B2)
MMA_SP(spF16x16, SP_F16_16, 2, 2, 4, D4A2B2M, "3")
MMA_SP(spF16x32, SP_F16_32, 4, 4, 4, D4A4B4M, "1")
MMA_SP(spF16F16, SP_F16_F16, 4, 4, 2, D2A4B4M, "0")
MMA_SP(spBf16x32, SP_BF16_32, 4, 4, 4, D4A4B4M, "0")
MMA_SP(spTf32x8, SP_TF32_8, 2, 2, 4, D4A2B2M, "2")
MMA_SP(spTf32x16, SP_TF32_16, 4, 4, 4, D4A4B4M, "0")
MMA_SP(spS8x32, SP_S8_32, 2, 2, 4, D4A2B2M, "1")
MMA_SP(spS8x64, SP_S8_64, 4, 4, 4, D4A4B4M, "0")
MMA_SP(spE4m3x64, SP_E4M3_64, 4, 4, 4, D4A4B4M, "0")
MMA_SP(spE5m2x64, SP_E5M2_64, 4, 4, 4, D4A4B4M, "0")

/// B, with LBO and SBO of 128 bytes, and what is around a wgmma.
#define WGMMA_BEGIN(wordsB, countD)                                            \
  __shared__ __align__(128) uint32_t shared[wordsB];                           \
  for (int i = threadIdx.x; i < wordsB; i += 128)                              \
    shared[i] = r.b[i];                                                        \
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");                 \
  __syncthreads();                                                             \
  uint64_t descriptor = (uint32_t)__cvta_generic_to_shared(shared) >> 4 |      \
                        (uint64_t)8 << 16 | (uint64_t)8 << 32;                 \
  LOAD(a, 4)                                                                   \
  LOAD(d, countD) asm volatile("wgmma.fence.sync.aligned;" :: : "memory");
#define WGMMA_END(countD)                                                      \
  asm volatile("wgmma.commit_group.sync.aligned;\n"                            \
               "wgmma.wait_group.sync.aligned 0;" ::                           \
                   : "memory");                                                \
  for (int i = 0; i < countD; ++i)                                             \
    asm volatile("" : "+r"(d[i])::"memory");                                   \
  STORE(countD)
#define WGMMA(function, mnemonic, countD, text)                                \
  __global__ void function(Registers r) {                                      \
    WGMMA_BEGIN(64, countD)                                                    \
    asm volatile(mnemonic " " text ";"                                         \
                 : OUT##countD(d)                                              \
                 : IN4(a), "l"(descriptor));                                   \
    WGMMA_END(countD)                                                          \
  }
#define WGMMA_SP(function, mnemonic, countD, text)                             \
  __global__ void function(Registers r) {                                      \
    WGMMA_BEGIN(128, countD)                                                   \
    asm volatile(mnemonic " " text ";"                                         \
                 : OUT##countD(d)                                              \
                 : IN4(a), "l"(descriptor), "r"(r.metadata[threadIdx.x]));     \
    WGMMA_END(countD)                                                          \
  }

#define WG_D4 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, %8, 1, 1, 1"
#define WG_D2 "{%0,%1}, {%2,%3,%4,%5}, %6, 1, 1, 1"
#define WG_SP_D2(selector)                                                     \
  "{%0,%1}, {%2,%3,%4,%5}, %6, %7, " selector ", 1, 1, 1"
#define WG_SP_D4(selector)                                                     \
  "{%0,%1,%2,%3}, {%4,%5,%6,%7}, %8, %9, " selector ", 1, 1, 1"

#define ASYNC "wgmma.mma_async.sync.aligned."
#define ASYNC_SPARSE "wgmma.mma_async.sp.sync.aligned."
#define WG_F16 ASYNC "m64n8k16.f32.f16.f16"
#define WG_F16_F16 ASYNC "m64n8k16.f16.f16.f16"
#define WG_BF16 ASYNC "m64n8k16.f32.bf16.bf16"
#define WG_TF32 ASYNC "m64n8k8.f32.tf32.tf32"
#define WG_E4M3 ASYNC "m64n8k32.f32.e4m3.e4m3"
#define WG_E5M2 ASYNC "m64n8k32.f32.e5m2.e5m2"
#define WG_MIXED ASYNC "m64n8k32.f32.e4m3.e5m2"
#define WG_E4M3_F16 ASYNC "m64n8k32.f16.e4m3.e4m3"
#define WG_SP_F16 ASYNC_SPARSE "m64n8k32.f32.f16.f16"
#define WG_SP_F16_F16 ASYNC_SPARSE "m64n8k32.f16.f16.f16"
#define WG_SP_BF16 ASYNC_SPARSE "m64n8k32.f32.bf16.bf16"
#define WG_SP_TF32 ASYNC_SPARSE "m64n8k16.f32.tf32.tf32"
#define WG_SP_E4M3 ASYNC_SPARSE "m64n8k64.f32.e4m3.e4m3"
#define WG_SP_E5M2 ASYNC_SPARSE "m64n8k64.f32.e5m2.e5m2"
#define WG_SP_E4M3_F16 ASYNC_SPARSE "m64n8k64.f16.e4m3.e4m3"

WGMMA(wgF16, WG_F16, 4, WG_D4 ", 0")
WGMMA(wgF16F16, WG_F16_F16, 2, WG_D2 ", 0")
WGMMA(wgBf16, WG_BF16, 4, WG_D4 ", 0")
WGMMA(wgTf32, WG_TF32, 4, WG_D4)
WGMMA(wgE4m3, WG_E4M3, 4, WG_D4)
WGMMA(wgE5m2, WG_E5M2, 4, WG_D4)
WGMMA(wgMixed, WG_MIXED, 4, WG_D4)
WGMMA(wgE4m3F16, WG_E4M3_F16, 2, WG_D2)
WGMMA_SP(wgSpF16, WG_SP_F16, 4, WG_SP_D4("1") ", 0")
WGMMA_SP(wgSpF16F16, WG_SP_F16_F16, 2, WG_SP_D2("0") ", 0")
WGMMA_SP(wgSpBf16, WG_SP_BF16, 4, WG_SP_D4("1") ", 0")
WGMMA_SP(wgSpTf32, WG_SP_TF32, 4, WG_SP_D4("0"))
WGMMA_SP(wgSpE4m3, WG_SP_E4M3, 4, WG_SP_D4("0"))
WGMMA_SP(wgSpE5m2, WG_SP_E5M2, 4, WG_SP_D4("0"))
WGMMA_SP(wgSpE4m3F16, WG_SP_E4M3_F16, 2, WG_SP_D2("0"))

enum Type { F16, BF16, TF32, E4M3, E5M2, S8, F32, S32 };

/// Fields of the types that are floats.
struct Format {
  int bits, mantissa, bias;
};
constexpr Format formats[] = {{16, 10, 15},  {16, 7, 127}, {32, 23, 127},
                              {8, 3, 7},     {8, 2, 15},   {8, 0, 0},
                              {32, 23, 127}, {32, 0, 0}};

/// A number; `kind` 0: of all exponents, 1: near 1, 2: few bits at exponents
/// that make sums cancel, 3: small, subnormal and zero, 4: as 0 with a few of
/// the largest exponent, which infinities and NaNs have.
uint32_t draw(Type type, int kind, std::mt19937 &random) {
  Format format = formats[type];
  if (format.mantissa == 0)
    return random() & (format.bits == 32 ? 0x7fffffu : 0xffu);
  uint32_t mantissa = random() & ((1u << format.mantissa) - 1);
  int top = (1 << (format.bits - 1 - format.mantissa)) - 2, exponent;
  if (kind == 0 || kind == 4)
    exponent = 1 + random() % top;
  else if (kind == 1)
    exponent = format.bias - 2 + static_cast<int>(random() % 4);
  else if (kind == 2)
    exponent = format.bias + static_cast<int>(random() % 3) * 6 - 6;
  else
    exponent = random() % 3;
  if (kind == 2)
    mantissa &= 3u << (format.mantissa - 2);
  if (random() % 8 == 0)
    mantissa = exponent = 0;
  exponent = exponent < 0 ? 0 : exponent > top ? top : exponent;
  if (kind == 4 && random() % 64 == 0) {
    exponent = top + 1;
    if (random() % 4 != 0)
      mantissa = 0;
  }
  return (random() & 1) << (format.bits - 1) | exponent << format.mantissa |
         mantissa;
}

std::vector<uint32_t> drawWords(size_t count, Type type, int kind,
                                std::mt19937 &random) {
  std::vector<uint32_t> words(count);
  for (uint32_t &word : words)
    for (int shift = 0; shift < 32; shift += formats[type].bits)
      word |= draw(type, kind, random) << shift;
  return words;
}

#define CHECK(call)                                                            \
  if (cudaError_t error = call) {                                              \
    fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error));             \
    exit(1);                                                                   \
  }

uint32_t *upload(const std::vector<uint32_t> &words) {
  uint32_t *device;
  CHECK(cudaMalloc(&device, words.size() * 4));
  CHECK(cudaMemcpy(device, words.data(), words.size() * 4,
                   cudaMemcpyHostToDevice));
  return device;
}

void print(const std::vector<uint32_t> &words) {
  printf(" |");
  for (uint32_t word : words)
    printf(" %x", word);
}

void run(void (*kernel)(Registers), const char *mnemonic, unsigned selector,
         int threads, Type factor, Type accumulator, int countA, int wordsB,
         int countD) {
  std::mt19937 random(7);
  for (int tile = 0; tile < tiles; ++tile) {
    // Accumulators as large as a product, much larger, and much smaller; at
    // last numbers that are not finite and accumulators that are not normal.
    static const int lastKinds[] = {4, 4, 3, 0},
                     lastStartKinds[] = {0, 4, 3, 3};
    bool isLast = tile >= 24;
    int kind = isLast ? lastKinds[tile - 24] : tile % 4;
    int startKind = isLast ? lastStartKinds[tile - 24] : tile / 4 % 3;
    auto a = drawWords(threads * countA, factor, kind, random);
    auto b =
        drawWords(wordsB, factor, !isLast && tile % 8 == 7 ? 0 : kind, random);
    auto d = drawWords(threads * countD, accumulator, startKind, random);
    std::vector<uint32_t> metadata(threads);
    for (uint32_t &word : metadata)
      for (int shift = 0; shift < 32; shift += 4) {
        static const uint32_t pairs[] = {4, 8, 12, 9, 13, 14};
        word |=
            (factor == TF32 ? (random() % 2 ? 4u : 14u) : pairs[random() % 6])
            << shift;
      }
    std::vector<uint32_t> result(d.size());
    Registers registers{upload(a), upload(b), upload(metadata), upload(d)};
    kernel<<<1, threads>>>(registers);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(result.data(), registers.d, result.size() * 4,
                     cudaMemcpyDeviceToHost));
    printf("%s %u", mnemonic, selector);
    if (!strstr(mnemonic, ".sp"))
      metadata.clear();
    for (const auto *words : {&a, &b, &d, &metadata, &result})
      print(*words);
    printf("\n");
  }
}

int main() {
  run(f16x8, F16_8, 0, 32, F16, F32, 2, 32, 4);
  run(f16x16, F16_16, 0, 32, F16, F32, 4, 64, 4);
  run(f16f16, F16_F16, 0, 32, F16, F16, 4, 64, 2);
  run(bf16x16, BF16_16, 0, 32, BF16, F32, 4, 64, 4);
  run(tf32x4, TF32_4, 0, 32, TF32, F32, 2, 32, 4);
  run(tf32x8, TF32_8, 0, 32, TF32, F32, 4, 64, 4);
  run(e4m3x32, E4M3_32, 0, 32, E4M3, F32, 4, 64, 4);
  run(e5m2x32, E5M2_32, 0, 32, E5M2, F32, 4, 64, 4);
  run(e4m3x16, E4M3_16, 0, 32, E4M3, F32, 2, 32, 4);
  run(mixedx32, MIXED_32, 0, 32, E5M2, F32, 4, 64, 4);
  run(spF16x16, SP_F16_16, 3, 32, F16, F32, 2, 64, 4);
  run(spF16x32, SP_F16_32, 1, 32, F16, F32, 4, 128, 4);
  run(spF16F16, SP_F16_F16, 0, 32, F16, F16, 4, 128, 2);
  run(spBf16x32, SP_BF16_32, 0, 32, BF16, F32, 4, 128, 4);
  run(spTf32x8, SP_TF32_8, 2, 32, TF32, F32, 2, 64, 4);
  run(spTf32x16, SP_TF32_16, 0, 32, TF32, F32, 4, 128, 4);
  run(spS8x32, SP_S8_32, 1, 32, S8, S32, 2, 64, 4);
  run(spS8x64, SP_S8_64, 0, 32, S8, S32, 4, 128, 4);
  run(spE4m3x64, SP_E4M3_64, 0, 32, E4M3, F32, 4, 128, 4);
  run(spE5m2x64, SP_E5M2_64, 0, 32, E5M2, F32, 4, 128, 4);
  run(wgF16, WG_F16, 0, 128, F16, F32, 4, 64, 4);
  run(wgF16F16, WG_F16_F16, 0, 128, F16, F16, 4, 64, 2);
  run(wgBf16, WG_BF16, 0, 128, BF16, F32, 4, 64, 4);
  run(wgTf32, WG_TF32, 0, 128, TF32, F32, 4, 64, 4);
  run(wgE4m3, WG_E4M3, 0, 128, E4M3, F32, 4, 64, 4);
  run(wgE5m2, WG_E5M2, 0, 128, E5M2, F32, 4, 64, 4);
  run(wgMixed, WG_MIXED, 0, 128, E5M2, F32, 4, 64, 4);
  run(wgE4m3F16, WG_E4M3_F16, 0, 128, E4M3, F16, 4, 64, 2);
  run(wgSpF16, WG_SP_F16, 1, 128, F16, F32, 4, 128, 4);
  run(wgSpF16F16, WG_SP_F16_F16, 0, 128, F16, F16, 4, 128, 2);
  run(wgSpBf16, WG_SP_BF16, 1, 128, BF16, F32, 4, 128, 4);
  run(wgSpTf32, WG_SP_TF32, 0, 128, TF32, F32, 4, 128, 4);
  run(wgSpE4m3, WG_SP_E4M3, 0, 128, E4M3, F32, 4, 128, 4);
  run(wgSpE5m2, WG_SP_E5M2, 0, 128, E5M2, F32, 4, 128, 4);
  run(wgSpE4m3F16, WG_SP_E4M3_F16, 0, 128, E4M3, F16, 4, 128, 2);
  return 0;
}
