//===- Compiler.h - the compiler behind a C interface -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The exports of libnm_sparse beside the runtime (nm_sparse/Runtime/*.h): the
// compiler as a function from text to text, and the oracle, which runs a
// program on the CPU. No type of MLIR or LLVM crosses this interface. All
// functions may be called from any thread.
//
// Texts are UTF-8. Those that a function returns end in a zero byte, belong to
// the object that they come from, and live as long as it does.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_C_COMPILER_H
#define NM_SPARSE_C_COMPILER_H

#include "nm_sparse/Base/Kind.h"
#include "nm_sparse/Runtime/Program.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Changes with the parameters or the result of any function here.
enum { NM_SPARSE_ABI_VERSION = 1 };

/// NM_SPARSE_ABI_VERSION of the library.
NMS_API int32_t nmSparseAbiVersion(void);

/// One line: version, commit and LLVM's version.
NMS_API const char *nmSparseVersion(void);

/// The result of one compiler run.
typedef struct NmSparseOutput NmSparseOutput;

/// Runs `nm-compile ARGUMENTS`. The input `-` is `program`, MLIR text or
/// bytecode of `bytes` bytes, and the result holds the files that would be
/// written. (Weights of checkpoints, --packed, still go to a file.) The result
/// is never null; destroy it with nmSparseOutputDestroy.
NMS_API NmSparseOutput *nmSparseCompile(const char *const *arguments,
                                        int32_t count, const char *program,
                                        size_t bytes);

/// The exit status: 0, 1 for a failed compilation, 2 for wrong arguments.
NMS_API int32_t nmSparseOutputStatus(const NmSparseOutput *output);

/// The messages of the tool: its standard output, and its errors and warnings.
NMS_API const char *nmSparseOutputText(const NmSparseOutput *output,
                                       size_t *bytes);
NMS_API const char *nmSparseOutputErrors(const NmSparseOutput *output,
                                         size_t *bytes);

/// The file that an option names `name` (-o PTX, --manifest JSON), or null.
NMS_API const char *nmSparseOutputFile(const NmSparseOutput *output,
                                       const char *name, size_t *bytes);

NMS_API void nmSparseOutputDestroy(NmSparseOutput *output);

/// A function of a program, compiled for the CPU of this machine with unpacked
/// weights and without kernels: the reference for kernels.
typedef struct NmSparseOracle NmSparseOracle;

/// Compiles function `entry` of `program` (null or empty: the only public one).
/// Returns null with nmsLastError() set if it cannot be compiled.
NMS_API NmSparseOracle *nmSparseOracleCreate(const char *program, size_t bytes,
                                             const char *entry);

/// Elements of an array in host memory, row by row without gaps, or a number.
typedef struct NmSparseHostArray {
  void *data;
  int32_t kind;         // NmsKind of a result; of an argument it is not read
  int32_t elementBytes; // of one element
  int32_t rank;         // -1: a number
  const int64_t *sizes;
} NmSparseHostArray;

/// The number of arrays that the function takes. A weight with an encoding
/// counts as those of its canonical packed form (docs/Encoding.md, sections 3
/// to 5), in the order given there.
NMS_API int32_t nmSparseOracleArguments(const NmSparseOracle *oracle);

/// Calls the function. Returns 0, or nonzero with nmsLastError() set. Results
/// are read with nmSparseOracleResult until the next call.
NMS_API int nmSparseOracleCall(NmSparseOracle *oracle,
                               const NmSparseHostArray *arguments,
                               int32_t count);

NMS_API int32_t nmSparseOracleResults(const NmSparseOracle *oracle);
NMS_API NmSparseHostArray nmSparseOracleResult(const NmSparseOracle *oracle,
                                               int32_t number);

NMS_API void nmSparseOracleDestroy(NmSparseOracle *oracle);

/// Makes the runtime of this process run kernels in the emulator, as on `chip`
/// (sm_90a, ...). Programs must then be made from the output of `nm-compile
/// --emit emulator` in place of PTX. Returns 0, or nonzero with nmsLastError()
/// set, for example if the process has used a GPU.
NMS_API int nmSparseUseEmulator(const char *chip);

#ifdef __cplusplus
}
#endif

#endif // NM_SPARSE_C_COMPILER_H
