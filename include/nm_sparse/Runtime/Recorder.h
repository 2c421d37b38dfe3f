//===- Recorder.h - Record launches and time their replay -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Timing without a second code path: the host code that the compiler made runs
// once while the launches are recorded, and the recorded launches are replayed
// as a CUDA graph. Call order: nmsRecordBegin, the compiled function,
// nmsBenchRecorded or nmsBenchAgainstCublas, nmsRecordEnd.
//
// How it is measured: a graph holds `inner` copies of the whole list of
// launches; one replay is one launch of the graph between two events; a sample
// is the time of a replay divided by `inner`. Replays are queued without
// waiting in between, so the host's launch cost is hidden.
//
// Buffers: call the function several times before the measurement, and say so
// in `sets`. Each call has its own buffers, and the copies in a graph take the
// calls in turn; cuBLAS rotates over as many sets. With enough of them nothing
// is in the L2 cache that a program would not find there either. With one set,
// small problems run from L2 on both sides.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_RUNTIME_RECORDER_H
#define NM_SPARSE_RUNTIME_RECORDER_H

#include "nm_sparse/Base/Kind.h"

#ifdef __cplusplus
extern "C" {
#endif

/// From now on kernel launches and device memsets of all threads are executed
/// and recorded, with a deep copy of their arguments. Device memory that is
/// freed, and host memory that is unregistered, stays usable until
/// nmsRecordEnd. Returns 0, or nonzero when a recording is already open.
NMS_API int nmsRecordBegin(void);

/// Launches from now on are of another program; the first one needs no such
/// call. Returns 0, or nonzero with nmsLastError() set when no recording
/// is open or the program before has no launch.
NMS_API int nmsRecordNext(void);

/// Ends the recording: forgets the launches and releases the memory that was
/// kept. Returns 0, or nonzero with nmsLastError() set.
NMS_API int nmsRecordEnd(void);

/// Kernel launches, or memsets, recorded so far; 0 when no recording is open.
NMS_API int64_t nmsRecordCount(void);
NMS_API int64_t nmsRecordMemsetCount(void);

/// Launches recorded so far that overlap with the one before.
NMS_API int64_t nmsRecordOverlapCount(void);

/// Name of the kernel of recorded launch `launch`, valid until nmsRecordEnd;
/// null when there is none.
NMS_API const char *nmsRecordKernelName(int64_t launch);

/// A field that is 0 (or a null options pointer) means the default.
typedef struct NmsBenchOptions {
  int32_t warmup;         // replays before the first sample; default 10
  int32_t replays;        // samples; default 50
  int32_t inner;          // copies per replay; default: about 300 us of work
  int32_t includeMemsets; // replay the recorded memsets too, in their order
  int32_t sets;           // calls that were recorded, all alike; default 1
  int32_t budgetMs;       // take fewer samples, but at least 5, when `replays`
                          // of all that is timed would take longer; default no
} NmsBenchOptions;

typedef struct NmsTiming {
  double medianUs, minUs, maxUs, meanUs;
  double spread; // (90th - 10th percentile) / median
  int32_t replays, inner;
} NmsTiming;

/// Replays what was recorded, which must be one program. Returns 0, or nonzero
/// with nmsLastError() set.
NMS_API int nmsBenchRecorded(const NmsBenchOptions *options, NmsTiming *result);

typedef struct NmsVersus {
  NmsTiming ours;
  NmsTiming cublasNN;  // weight stored k x n, row-major; as cublasTN where
                       // there is no such product
  NmsTiming cublasTN;  // weight stored n x k, row-major
  double cublasBestUs; // the smaller of both medians
  double speedup;      // cublasBestUs / ours.medianUs
  double oursTflops;   // of the dense product: 2 * batch * m * n * k
  double cublasBestTflops;
  int32_t cublasVersion; // as cublasGetVersion or cublasLtGetVersion reports it
} NmsVersus;

/// The library of a dense product, and the kinds of its matrices.
typedef struct NmsDenseInfo {
  const char *library; // "cuBLAS" or "cuBLASLt"
  int32_t xKind, weightKind, resultKind;
} NmsDenseInfo;

/// Says how the dense product of activations of `kind` is made. Returns 0, or
/// nonzero with nmsLastError() set for kinds whose product is not timed.
NMS_API int nmsDenseInfo(int32_t kind, NmsDenseInfo *result);

/// Alternates replays of what was recorded with cuBLAS products of `batch`
/// dense m x k and k x n matrices of normal random numbers, in one process and
/// with the order reversed every second round. `kind` is one of
///   NMS_F32: f32 throughout, no TF32;
///   NMS_F16, NMS_BF16: f32 accumulation, output of the same kind;
///   NMS_I8: i32 sums, which are the output; n and k are multiples of 4;
///   NMS_F8E4M3FN: cuBLASLt, with a scale for each operand, fast accumulation,
///     output in bf16, and the algorithm that the library recommends; n and k
///     are multiples of 16;
///   NMS_F8E5M2: the same, with a weight of f8E4M3FN, as the library multiplies
///     no two matrices of f8E5M2.
/// Those of 8 bits exist for a weight stored n x k alone. Returns 0, or nonzero
/// with nmsLastError() set.
NMS_API int nmsBenchAgainstCublas(int32_t kind, int64_t m, int64_t n, int64_t k,
                                  int64_t batch, const NmsBenchOptions *options,
                                  NmsVersus *result);

/// Alternates replays of all programs that were recorded, each of which was
/// called `sets` times, and of that dense product. `timings` has one element
/// for each of the `count` programs. Where `dense` is null, the product is left
/// out. Returns 0, or nonzero with nmsLastError() set.
NMS_API int nmsBenchPrograms(int32_t kind, int64_t m, int64_t n, int64_t k,
                             int64_t batch, const NmsBenchOptions *options,
                             NmsTiming *timings, int32_t count,
                             NmsVersus *dense);

/// Measures only cuBLAS; `ours` and `speedup` of the result are zero. Needs no
/// recording.
NMS_API int nmsBenchCublas(int32_t kind, int64_t m, int64_t n, int64_t k,
                           int64_t batch, const NmsBenchOptions *options,
                           NmsVersus *result);

#ifdef __cplusplus
}
#endif

#endif // NM_SPARSE_RUNTIME_RECORDER_H
