//===- Replay.cpp - Timed replays of CUDA graphs --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Replay.h"

#include "../Driver/RecorderState.h"

#include <algorithm>
#include <cmath>
#include <memory>

using namespace nms;

OwnedStream::OwnedStream(const Context &cu) : cu(cu) {
  if (!cu.check(cu->streamCreate(&stream, cuda::streamNonBlocking),
                "creating a stream for the measurement"))
    stream = nullptr;
}

OwnedStream::~OwnedStream() {
  if (stream)
    (void)cu->streamDestroy(stream);
}

OwnedBuffer::OwnedBuffer(const Context &cu, size_t bytes) : cu(cu) {
  if (!cu.check(cu->memAlloc(&pointer, std::max<size_t>(bytes, 1)),
                "allocating %zu bytes of device memory", bytes))
    pointer = 0;
}

OwnedBuffer::~OwnedBuffer() {
  if (pointer)
    (void)cu->memFree(pointer);
}

Replayable::~Replayable() {
  if (exec)
    (void)cu->graphExecDestroy(exec);
}

std::vector<Work> nms::getRecorded(const Context &cu, int programs,
                                   bool memsets, int sets) {
  std::vector<Work> works;
  for (int program = 0; program < programs; ++program)
    works.emplace_back(
        [&cu, program, memsets, sets](cuda::Stream stream, int set) {
          return replayRecorded(cu, stream, memsets, program, set, sets);
        });
  return works;
}

bool Replayable::capture(cuda::Stream stream, const Work &work, int inner,
                         int sets) {
  if (!cu.check(cu->streamBeginCapture(stream, cuda::captureThreadLocal),
                "capturing a stream"))
    return false;
  bool enqueued = true;
  for (int i = 0; i < inner && enqueued; ++i)
    enqueued = work(stream, i % sets);
  cuda::Graph graph = nullptr;
  // Capturing must end also when the work failed, whose reason then stands.
  cuda::Result ended = cu->streamEndCapture(stream, &graph);
  bool ok = enqueued && cu.check(ended, "ending the capture of a stream") &&
            cu.check(cu->graphInstantiate(&exec, graph, 0),
                     "instantiating a CUDA graph");
  if (!ok)
    exec = nullptr;
  if (ended == cuda::success && graph)
    (void)cu->graphDestroy(graph);
  return ok;
}

bool Replayable::launch(cuda::Stream stream) const {
  return cu.check(cu->graphLaunch(exec, stream), "launching a CUDA graph");
}

Stopwatch::Stopwatch(const Context &cu) : cu(cu) {
  valid =
      cu.check(cu->eventCreate(&begin, cuda::eventDefault),
               "creating an event") &&
      cu.check(cu->eventCreate(&end, cuda::eventDefault), "creating an event");
}

Stopwatch::~Stopwatch() {
  if (begin)
    (void)cu->eventDestroy(begin);
  if (end)
    (void)cu->eventDestroy(end);
}

bool Stopwatch::replay(const Replayable &graph, cuda::Stream stream) {
  return valid &&
         cu.check(cu->eventRecord(begin, stream), "recording an event") &&
         graph.launch(stream) &&
         cu.check(cu->eventRecord(end, stream), "recording an event");
}

bool Stopwatch::read(double &microseconds) {
  float milliseconds = 0;
  if (!cu.check(cu->eventSynchronize(end), "waiting for a timed replay") ||
      !cu.check(cu->eventElapsedTime(&milliseconds, begin, end),
                "reading the time between events"))
    return false;
  microseconds = 1000.0 * static_cast<double>(milliseconds);
  return true;
}

bool nms::estimateTime(const Context &cu, cuda::Stream stream, const Work &work,
                       double &microseconds) {
  Replayable once(cu);
  Stopwatch watch(cu);
  if (!once.capture(stream, work, 1, 1))
    return false;
  for (int i = 0; i < 3; ++i)
    if (!watch.replay(once, stream) || !watch.read(microseconds))
      return false;
  return true;
}

namespace {

constexpr double targetReplayUs = 300;
constexpr int maxInner = 100;
constexpr int fewestReplays = 5;

/// How many copies of the work make a replay long enough to be timed well, and
/// use all sets of buffers equally often.
int chooseInner(double microseconds, int sets) {
  int inner = static_cast<int>(
      std::clamp(std::round(targetReplayUs / std::max(microseconds, 0.1)), 1.0,
                 static_cast<double>(maxInner)));
  return (inner + sets - 1) / sets * sets;
}

NmsTiming summarize(std::vector<double> samples, int inner) {
  std::sort(samples.begin(), samples.end());
  size_t count = samples.size();
  auto percentile = [&](double fraction) {
    double at = fraction * static_cast<double>(count - 1);
    size_t low = static_cast<size_t>(at);
    size_t high = std::min(low + 1, count - 1);
    double part = at - static_cast<double>(low);
    return samples[low] + part * (samples[high] - samples[low]);
  };
  NmsTiming timing = {};
  timing.medianUs = percentile(0.5);
  timing.minUs = samples.front();
  timing.maxUs = samples.back();
  double sum = 0;
  for (double sample : samples)
    sum += sample;
  timing.meanUs = sum / static_cast<double>(count);
  timing.spread = timing.medianUs > 0
                      ? (percentile(0.9) - percentile(0.1)) / timing.medianUs
                      : 0;
  timing.replays = static_cast<int32_t>(count);
  timing.inner = inner;
  return timing;
}

} // namespace

int nms::getSets(const NmsBenchOptions *options) {
  return options && options->sets > 0 ? options->sets : 1;
}

bool nms::timeInterleaved(const Context &cu, cuda::Stream stream,
                          const std::vector<Work> &works,
                          const NmsBenchOptions *options,
                          std::vector<NmsTiming> &timings) {
  int warmup = options && options->warmup > 0 ? options->warmup : 10;
  int replays = options && options->replays > 0 ? options->replays : 50;
  // Work of other streams must not run into the first samples.
  if (!cu.check(cu->ctxSynchronize(), "waiting for the device to be idle"))
    return false;

  size_t count = works.size();
  int sets = getSets(options);
  std::vector<std::unique_ptr<Replayable>> graphs;
  std::vector<int> inners(count, 1);
  double roundUs = 0;
  for (size_t w = 0; w < count; ++w) {
    double microseconds = 0;
    if (!estimateTime(cu, stream, works[w], microseconds))
      return false;
    inners[w] = options && options->inner > 0 ? options->inner
                                              : chooseInner(microseconds, sets);
    roundUs += microseconds * inners[w];
    graphs.push_back(std::make_unique<Replayable>(cu));
    if (!graphs[w]->capture(stream, works[w], inners[w], sets))
      return false;
  }
  if (options && options->budgetMs > 0) {
    double rounds = 1000.0 * options->budgetMs / std::max(roundUs, 0.1);
    if (rounds < replays)
      replays =
          std::min(replays, std::max(static_cast<int>(rounds), fewestReplays));
    warmup = std::min(warmup, std::max(replays / 3, 1));
  }
  for (int i = 0; i < warmup; ++i)
    for (auto &graph : graphs)
      if (!graph->launch(stream))
        return false;

  std::vector<std::unique_ptr<Stopwatch>> watches;
  watches.reserve(count * static_cast<size_t>(replays));
  for (size_t i = 0; i < count * static_cast<size_t>(replays); ++i)
    watches.push_back(std::make_unique<Stopwatch>(cu));
  for (int round = 0; round < replays; ++round) {
    for (size_t turn = 0; turn < count; ++turn) {
      size_t w = round % 2 == 0 ? turn : count - 1 - turn;
      if (!watches[static_cast<size_t>(round) * count + w]->replay(*graphs[w],
                                                                   stream))
        return false;
    }
  }
  timings.clear();
  for (size_t w = 0; w < count; ++w) {
    std::vector<double> samples;
    for (int round = 0; round < replays; ++round) {
      double microseconds = 0;
      if (!watches[static_cast<size_t>(round) * count + w]->read(microseconds))
        return false;
      samples.push_back(microseconds / inners[w]);
    }
    timings.push_back(summarize(std::move(samples), inners[w]));
  }
  return true;
}
