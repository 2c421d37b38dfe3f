//===- Tuner.h - the search for schedules, behind C -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Measures schedules of the products of programs on the GPU of this machine,
// as nm-tune does, for databases that the compiler reads (docs/Tuning.md).
//
// Texts are UTF-8. Functions that return an int return 0, or nonzero with
// nmsLastError() set. A tuner is used by one thread at a time.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_C_TUNER_H
#define NM_SPARSE_C_TUNER_H

#include "nm_sparse/Base/Kind.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Products to tune.
typedef struct NmSparseTuner NmSparseTuner;

/// A tuner without products.
///   gpu        that kernels are for, such as h100
///   objective  that the best schedule has least of: time, energy or edp
///   tokens     `count` numbers of tokens, each of which is a problem of its
///              own; none: those that programs for any number have kernels for
/// Returns null with nmsLastError() set if one of them is not legal.
NMS_API NmSparseTuner *nmSparseTunerCreate(const char *gpu,
                                           const char *objective,
                                           const int64_t *tokens,
                                           int32_t count);

/// Adds the products of `program`, MLIR text of `bytes` bytes. Products of one
/// problem become one. `label` stands before the names of its functions. If
/// `isOfModel` is not 0, kernels read the weight in the form that suits any
/// number of tokens, as layers of models do.
NMS_API int nmSparseTunerAdd(NmSparseTuner *tuner, const char *program,
                             size_t bytes, const char *label,
                             int32_t isOfModel);

/// The products so far, as JSON, which lives until the next call with `tuner`:
///   products  the problem of each as databases have it, and `names`, those of
///             functions that have it, each behind its label
///   skipped   `name` and `reason` of products that cannot be tuned
NMS_API const char *nmSparseTunerList(NmSparseTuner *tuner);

typedef struct NmSparseTuneOptions {
  const char *database; // a file of lines of JSON; made if there is none
  const char *lock;     // as nm-tune's --lock, or null
  int64_t candidates;   // to measure first, at most; 1 and more
  int64_t neighbours;   // of the best one, to measure then; 0 and more
  int64_t sampleMs;     // milliseconds of samples for each turn; 1 and more
  uint64_t seed;        // of weights and activations
  double minutes;       // after which no product is begun; negative: no limit
  int32_t emulates;     // results are checked in the emulator, nothing else
} NmSparseTuneOptions;

/// Gets what was found of a product, as JSON:
///   product       its place in the list
///   entry         the line that was written; null where there is none
///   measured      the number of schedules with right results
///   wrong         `schedule` and `problem` of those whose results were wrong
///   refused       the same of those that cannot be compiled or run
///   failure       why there is no entry, and empty where there is one
///   dense_fault   why the dense product was not timed; empty where it was
/// Returns 0 to go on, and anything else to end the search.
typedef int (*NmSparseTuned)(const char *found, void *context);

/// Measures the products that the database has no entry of, one after another,
/// and adds the best schedule of each to it.
NMS_API int nmSparseTunerRun(NmSparseTuner *tuner,
                             const NmSparseTuneOptions *options,
                             NmSparseTuned report, void *context);

NMS_API void nmSparseTunerDestroy(NmSparseTuner *tuner);

#ifdef __cplusplus
}
#endif

#endif // NM_SPARSE_C_TUNER_H
