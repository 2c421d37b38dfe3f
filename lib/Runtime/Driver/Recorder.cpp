//===- Recorder.cpp - The launch recorder ---------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One recording per process: launches of all threads go into one list, in the
// order in which they were made.
//
//===----------------------------------------------------------------------===//

#include "RecorderState.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>

using namespace nms;

namespace {

struct Action {
  cuda::Function function = nullptr; // null: a memset
  std::string name;
  LaunchShape shape;
  std::vector<uint64_t> paramWords;
  std::vector<size_t> paramOffsets; // in words
  cuda::DevicePtr dst = 0;
  uint32_t value = 0;
  size_t count = 0;
  int elementBytes = 0;
};

struct State {
  std::mutex mutex;
  bool open = false;
  std::vector<Action> actions;
  std::vector<size_t> ends; // of the programs before the last one
  int64_t launches = 0;
  std::vector<void *> freed;
  std::map<void *, size_t> unregistered;
};

State &state() {
  static State *instance = new State;
  return *instance;
}

struct Range {
  size_t begin, end;
};

/// The actions of a program.
Range getActions(size_t program) {
  const std::vector<size_t> &ends = state().ends;
  return {program == 0 ? 0 : ends[program - 1],
          program < ends.size() ? ends[program] : state().actions.size()};
}

bool hasLaunch(Range range) {
  const std::vector<Action> &actions = state().actions;
  return std::any_of(actions.begin() + std::ptrdiff_t(range.begin),
                     actions.begin() + std::ptrdiff_t(range.end),
                     [](const Action &action) { return action.function; });
}

/// The actions of a program are those of `calls` equal calls.
bool isOfEqualCalls(Range range, size_t calls) {
  size_t count = range.end - range.begin, period = count / calls;
  bool equal = period * calls == count;
  for (size_t i = period; equal && i < count; ++i) {
    const Action &one = state().actions[range.begin + i];
    const Action &first = state().actions[range.begin + i % period];
    equal = !one.function == !first.function &&
            std::equal(one.shape.grid, one.shape.grid + 3, first.shape.grid);
  }
  return equal;
}

} // namespace

bool nms::recording() {
  std::lock_guard<std::mutex> lock(state().mutex);
  return state().open;
}

bool nms::recordLaunch(cuda::Function function, const FunctionInfo &info,
                       const LaunchShape &shape, void **params, void **extra,
                       int64_t paramCount) {
  std::lock_guard<std::mutex> lock(state().mutex);
  if (!state().open)
    return true;
  const char *name = info.name.c_str();
  if (extra)
    return !fail("recording kernel '%s': its arguments come in one buffer "
                 "(extra), which is not recorded: pass an array of pointers",
                 name);
  if (!info.paramsKnown && paramCount < 0)
    return !fail("recording kernel '%s': the number of its arguments is "
                 "unknown: install a driver for CUDA 12.4 or newer",
                 name);
  size_t count = info.paramsKnown ? info.paramBytes.size()
                                  : static_cast<size_t>(paramCount);
  if (count != 0 && !params)
    return !fail("recording kernel '%s': it takes %zu arguments, none are "
                 "passed",
                 name, count);
  if (info.paramsKnown && paramCount >= 0 &&
      static_cast<size_t>(paramCount) != count)
    return !fail("recording kernel '%s': it takes %zu arguments, %lld are "
                 "passed: host and device code differ",
                 name, count, static_cast<long long>(paramCount));
  Action action;
  action.function = function;
  action.name = info.name;
  action.shape = shape;
  for (size_t i = 0; i < count; ++i) {
    size_t bytes = info.paramsKnown ? info.paramBytes[i] : sizeof(uint64_t);
    size_t offset = action.paramWords.size();
    action.paramOffsets.push_back(offset);
    action.paramWords.resize(offset + (bytes + 7) / 8);
    memcpy(action.paramWords.data() + offset, params[i], bytes);
  }
  state().actions.push_back(std::move(action));
  ++state().launches;
  return true;
}

void nms::recordMemset(cuda::DevicePtr dst, uint32_t value, size_t count,
                       int elementBytes) {
  std::lock_guard<std::mutex> lock(state().mutex);
  if (!state().open)
    return;
  Action action;
  action.dst = dst;
  action.value = value;
  action.count = count;
  action.elementBytes = elementBytes;
  state().actions.push_back(std::move(action));
}

bool nms::deferFree(void *pointer) {
  std::lock_guard<std::mutex> lock(state().mutex);
  if (state().open)
    state().freed.push_back(pointer);
  return state().open;
}

bool nms::deferUnregister(void *base, size_t bytes) {
  std::lock_guard<std::mutex> lock(state().mutex);
  if (state().open)
    state().unregistered[base] = bytes;
  return state().open;
}

bool nms::reviveHostRange(void *base, size_t bytes) {
  std::lock_guard<std::mutex> lock(state().mutex);
  auto found = state().unregistered.find(base);
  if (found == state().unregistered.end() || found->second < bytes)
    return false;
  state().unregistered.erase(found);
  return true;
}

bool nms::checkRecorded(const char *entry, int programs, int calls) {
  std::lock_guard<std::mutex> lock(state().mutex);
  auto count = static_cast<size_t>(programs);
  if (state().launches > 0 && state().ends.size() + 1 != count)
    return !fail("%s: %zu programs were recorded, and %d are to be measured: "
                 "check the calls of nmsRecordNext",
                 entry, state().ends.size() + 1, programs);
  for (size_t program = 0; program < count; ++program) {
    Range range = getActions(program);
    if (!hasLaunch(range))
      return !fail("%s: no launch was recorded: call nmsRecordBegin and then "
                   "the compiled function first",
                   entry);
    if (!isOfEqualCalls(range, static_cast<size_t>(calls)))
      return !fail("%s: the %zu recorded launches and memsets are not those of "
                   "%d equal calls: check the option `sets`",
                   entry, range.end - range.begin, calls);
  }
  return true;
}

bool nms::replayRecorded(const Context &cu, cuda::Stream stream,
                         bool includeMemsets, int program, int call,
                         int calls) {
  std::lock_guard<std::mutex> lock(state().mutex);
  Range range = getActions(static_cast<size_t>(program));
  size_t period = (range.end - range.begin) / static_cast<size_t>(calls);
  size_t first = range.begin + static_cast<size_t>(call) * period;
  for (size_t i = first; i < first + period; ++i) {
    Action &action = state().actions[i];
    if (action.function) {
      std::vector<void *> params;
      params.reserve(action.paramOffsets.size());
      for (size_t offset : action.paramOffsets)
        params.push_back(action.paramWords.data() + offset);
      if (!cu.check(launchRaw(cu, action.function, action.shape, stream,
                              params.data(), nullptr),
                    "replaying a recorded launch"))
        return false;
      continue;
    }
    if (!includeMemsets)
      continue;
    cuda::Result result =
        action.elementBytes == 4
            ? cu->memsetD32Async(action.dst, action.value, action.count, stream)
            : cu->memsetD16Async(action.dst,
                                 static_cast<uint16_t>(action.value),
                                 action.count, stream);
    if (!cu.check(result, "replaying a recorded memset"))
      return false;
  }
  return true;
}

extern "C" int nmsRecordBegin() {
  Context cu;
  if (!cu)
    return 1;
  std::lock_guard<std::mutex> lock(state().mutex);
  if (state().open)
    return fail("nmsRecordBegin: a recording is already open: call "
                "nmsRecordEnd first");
  state().open = true;
  return 0;
}

extern "C" int nmsRecordNext() {
  std::lock_guard<std::mutex> lock(state().mutex);
  if (!state().open)
    return fail("nmsRecordNext: no recording is open: call nmsRecordBegin "
                "first");
  if (!hasLaunch(getActions(state().ends.size())))
    return fail("nmsRecordNext: no launch of the program before was recorded: "
                "call its compiled function first");
  state().ends.push_back(state().actions.size());
  return 0;
}

extern "C" int nmsRecordEnd() {
  std::vector<void *> freed;
  std::map<void *, size_t> unregistered;
  {
    std::lock_guard<std::mutex> lock(state().mutex);
    if (!state().open)
      return fail("nmsRecordEnd: no recording is open: call nmsRecordBegin "
                  "first");
    state().open = false;
    state().actions.clear();
    state().ends.clear();
    state().launches = 0;
    freed.swap(state().freed);
    unregistered.swap(state().unregistered);
  }
  Context cu;
  if (!cu)
    return 1;
  // Release everything, whatever fails; the first failure is the one to report.
  cuda::Result first = cu->ctxSynchronize();
  auto keepFirst = [&](cuda::Result result) {
    if (first == cuda::success)
      first = result;
  };
  for (void *pointer : freed)
    keepFirst(cu->memFree(reinterpret_cast<cuda::DevicePtr>(pointer)));
  for (auto &range : unregistered)
    keepFirst(cu->memHostUnregister(range.first));
  return !cu.check(first, "releasing the memory of a recording");
}

extern "C" int64_t nmsRecordCount() {
  std::lock_guard<std::mutex> lock(state().mutex);
  return state().launches;
}

extern "C" const char *nmsRecordKernelName(int64_t launch) {
  std::lock_guard<std::mutex> lock(state().mutex);
  for (const Action &action : state().actions)
    if (action.function && launch-- == 0)
      return action.name.c_str();
  return nullptr;
}

int64_t nmsRecordOverlapCount() {
  std::lock_guard<std::mutex> lock(state().mutex);
  return std::count_if(
      state().actions.begin(), state().actions.end(),
      [](const Action &action) { return action.shape.overlaps; });
}

extern "C" int64_t nmsRecordMemsetCount() {
  std::lock_guard<std::mutex> lock(state().mutex);
  return static_cast<int64_t>(state().actions.size()) - state().launches;
}
