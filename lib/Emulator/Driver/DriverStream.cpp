//===- DriverStream.cpp - streams, events and graphs of the emulator -----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Driver/Driver.h"

#include <chrono>

using namespace mlir::nm_sparse;
using namespace mlir::nm_sparse::emulator;
using namespace nms::cuda;

using HostClock = std::chrono::steady_clock;

namespace nms::cuda {
struct StreamTag {};
struct EventTag {
  HostClock::time_point recorded;
};
} // namespace nms::cuda

namespace {

Result streamCreate(Stream *stream, unsigned) {
  *stream = new StreamTag;
  return success;
}

Result streamDestroy(Stream stream) {
  delete stream;
  return success;
}

Result streamSynchronize(Stream) { return success; }

Result streamWaitEvent(Stream, Event, unsigned) { return success; }

Result eventCreate(Event *event, unsigned) {
  *event = new EventTag{HostClock::now()};
  return success;
}

Result eventDestroy(Event event) {
  delete event;
  return success;
}

Result eventRecord(Event event, Stream) {
  event->recorded = HostClock::now();
  return success;
}

Result eventSynchronize(Event) { return success; }

Result eventElapsedTime(float *milliseconds, Event start, Event end) {
  *milliseconds =
      std::chrono::duration<float, std::milli>(end->recorded - start->recorded)
          .count();
  return success;
}

Result failGraph() {
  return reportResult(errorNotEmulated,
                      "the emulator neither captures streams nor runs graphs");
}

Result streamBeginCapture(Stream, int) { return failGraph(); }
Result streamEndCapture(Stream, Graph *) { return failGraph(); }
Result graphInstantiate(GraphExec *, Graph, unsigned long long) {
  return failGraph();
}
Result graphLaunch(GraphExec, Stream) { return failGraph(); }
Result graphExecDestroy(GraphExec) { return failGraph(); }
Result graphDestroy(Graph) { return failGraph(); }

} // namespace

void emulator::addStreamFunctions(Api &api) {
  api.streamCreate = streamCreate;
  api.streamDestroy = streamDestroy;
  api.streamSynchronize = streamSynchronize;
  api.streamWaitEvent = streamWaitEvent;
  api.streamBeginCapture = streamBeginCapture;
  api.streamEndCapture = streamEndCapture;
  api.eventCreate = eventCreate;
  api.eventDestroy = eventDestroy;
  api.eventRecord = eventRecord;
  api.eventSynchronize = eventSynchronize;
  api.eventElapsedTime = eventElapsedTime;
  api.graphInstantiate = graphInstantiate;
  api.graphLaunch = graphLaunch;
  api.graphExecDestroy = graphExecDestroy;
  api.graphDestroy = graphDestroy;
}
