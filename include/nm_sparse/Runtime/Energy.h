//===- Energy.h - Energy of recorded launches -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Joules by the GPU's own counter, through NVML. Call order as in Recorder.h:
// nmsRecordBegin, the compiled function, nmsEnergyRecorded or
// nmsEnergyAgainstCublas, nmsRecordEnd.
//
// How it is measured: the work runs without a pause for at least a second, and
// first for as long as power takes to settle. The counter moves in steps, some
// 10 a second, so power is what it rose by between two of its steps, at the
// beginning and at the end of the loop, divided by the time between them. The
// energy of a call is that power times the time of a call in the same loop.
// Loops of different work alternate, and each begins after a random pause,
// since sensors may sample a part of the time only (a quarter on an A100 and an
// H100, as SC'24 "Part-time Power Measurements" found). What they miss, and
// their calibration, is not corrected.
//
// Nothing of the GPU is set: neither clocks nor limits.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_RUNTIME_ENERGY_H
#define NM_SPARSE_RUNTIME_ENERGY_H

#include "nm_sparse/Base/Kind.h"

#ifdef __cplusplus
extern "C" {
#endif

/// A field that is 0 (or a null options pointer) means the default.
typedef struct NmsEnergyOptions {
  double seconds;         // of a loop, at least; default 1
  int32_t repeats;        // loops of each piece of work; default 5
  int32_t includeMemsets; // replay the recorded memsets too, in their order
  int32_t sets;           // calls that were recorded, all alike; default 1
  uint32_t seed;          // of the pauses
} NmsEnergyOptions;

typedef struct NmsEnergy {
  double millijoules;  // of a call: the mean of the loops
  double halfWidth;    // of its 95 % confidence interval; 0 for one loop
  double microseconds; // of a call
  double watts;        // mean power
  double smMHz;        // mean clocks during the loops
  double memoryMHz;    //
  double celsius;      // mean temperature of the GPU
  uint64_t slowdowns;  // NVML's reasons for lower clocks, of all loops together
  int64_t calls;       // in all loops
  int32_t repeats;     //
} NmsEnergy;

typedef struct NmsPowerInfo {
  double idleWatts;   // of the GPU without work, when first measured
  double idleSmMHz;   // its clocks then
  double limitWatts;  // what the driver enforces; 0 where it does not say
  double stepSeconds; // between two steps of the energy counter
} NmsPowerInfo;

/// The current device's power without work. The first call of a process takes
/// two seconds, in which the device must have none; later ones return the same.
/// Returns 0, or nonzero with nmsLastError() set.
NMS_API int nmsPowerInfo(NmsPowerInfo *result);

/// Energy of what was recorded. Returns 0, or nonzero with nmsLastError() set.
NMS_API int nmsEnergyRecorded(const NmsEnergyOptions *options,
                              NmsEnergy *result);

/// Alternates loops of what was recorded with loops of the dense product of
/// nmsBenchAgainstCublas, whose weight is stored n x k with `weightTransposed`,
/// and in any case where `kind` has 8 bits. Returns 0, or nonzero with
/// nmsLastError() set.
NMS_API int nmsEnergyAgainstCublas(int32_t kind, int64_t m, int64_t n,
                                   int64_t k, int64_t batch,
                                   int32_t weightTransposed,
                                   const NmsEnergyOptions *options,
                                   NmsEnergy *ours, NmsEnergy *dense);

/// Alternates loops of all programs that were recorded, and of that dense
/// product unless `dense` is null. `energies` has one element for each of the
/// `count` programs. Returns 0, or nonzero with nmsLastError() set.
NMS_API int nmsEnergyPrograms(int32_t kind, int64_t m, int64_t n, int64_t k,
                              int64_t batch, int32_t weightTransposed,
                              const NmsEnergyOptions *options,
                              NmsEnergy *energies, int32_t count,
                              NmsEnergy *dense);

/// The name of the lowest bit of `slowdowns` that is set, as "software power
/// cap"; null for none.
NMS_API const char *nmsSlowdownName(uint64_t slowdowns);

#ifdef __cplusplus
}
#endif

#endif // NM_SPARSE_RUNTIME_ENERGY_H
