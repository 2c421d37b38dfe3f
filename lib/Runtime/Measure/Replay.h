//===- Replay.h - Timed replays of CUDA graphs ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_RUNTIME_MEASURE_REPLAY_H
#define NM_SPARSE_LIB_RUNTIME_MEASURE_REPLAY_H

#include "../Driver/Context.h"
#include "nm_sparse/Runtime/Recorder.h"

#include <functional>
#include <vector>

namespace nms {

/// A stream that is destroyed with its scope.
class OwnedStream {
public:
  explicit OwnedStream(const Context &cu);
  ~OwnedStream();
  OwnedStream(const OwnedStream &) = delete;
  OwnedStream &operator=(const OwnedStream &) = delete;
  explicit operator bool() const { return stream != nullptr; }
  cuda::Stream get() const { return stream; }

private:
  const Context &cu;
  cuda::Stream stream = nullptr;
};

/// Device memory that is freed with its scope.
class OwnedBuffer {
public:
  OwnedBuffer(const Context &cu, size_t bytes);
  ~OwnedBuffer();
  OwnedBuffer(const OwnedBuffer &) = delete;
  OwnedBuffer &operator=(const OwnedBuffer &) = delete;
  explicit operator bool() const { return pointer != 0; }
  cuda::DevicePtr device() const { return pointer; }
  void *get() const { return reinterpret_cast<void *>(pointer); }

private:
  const Context &cu;
  cuda::DevicePtr pointer = 0;
};

/// Enqueues the work on the stream, with the given set of buffers; false with
/// the reason recorded.
using Work = std::function<bool(cuda::Stream, int set)>;

/// Replays of the `programs` that were recorded, each in `sets` calls.
std::vector<Work> getRecorded(const Context &cu, int programs, bool memsets,
                              int sets);

/// A captured graph, ready to be launched.
class Replayable {
public:
  explicit Replayable(const Context &cu) : cu(cu) {}
  ~Replayable();
  Replayable(const Replayable &) = delete;
  Replayable &operator=(const Replayable &) = delete;

  /// `inner` copies of the work, which take the sets of buffers in turn.
  bool capture(cuda::Stream stream, const Work &work, int inner, int sets);
  bool launch(cuda::Stream stream) const;

private:
  const Context &cu;
  cuda::GraphExec exec = nullptr;
};

/// A pair of events around a replay.
class Stopwatch {
public:
  explicit Stopwatch(const Context &cu);
  ~Stopwatch();
  Stopwatch(const Stopwatch &) = delete;
  Stopwatch &operator=(const Stopwatch &) = delete;

  bool replay(const Replayable &graph, cuda::Stream stream);
  /// Waits for the replay.
  bool read(double &microseconds);

private:
  const Context &cu;
  cuda::Event begin = nullptr, end = nullptr;
  bool valid = false;
};

/// Time of one copy of the work, roughly.
bool estimateTime(const Context &cu, cuda::Stream stream, const Work &work,
                  double &microseconds);

/// Sets of buffers that the options ask for.
int getSets(const NmsBenchOptions *options);

/// Times each piece of work as Recorder.h describes, alternating between them.
bool timeInterleaved(const Context &cu, cuda::Stream stream,
                     const std::vector<Work> &works,
                     const NmsBenchOptions *options,
                     std::vector<NmsTiming> &timings);

} // namespace nms

#endif // NM_SPARSE_LIB_RUNTIME_MEASURE_REPLAY_H
