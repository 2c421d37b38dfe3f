//===- Pool.cpp - runs in a pool of processes -----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Workers take the next run from a shared counter and report through a pipe.
// A failed launch leaves a CUDA context unusable, so such a worker ends and a
// new one takes its place; the same happens after a crash or a run that does
// not end. The parent never touches CUDA.
//
//===----------------------------------------------------------------------===//

#include "Pool.h"

#include "nm_sparse/Runtime/Error.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include <atomic>
#include <chrono>
#include <csignal>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

using Clock = std::chrono::steady_clock;

/// The data that a worker's error handler needs to report before it ends.
struct WorkerState {
  int pipe = -1;
  size_t line = 0;
};
WorkerState worker;

void send(int pipe, llvm::json::Object message) {
  std::string text =
      llvm::formatv("{0}\n", llvm::json::Value(std::move(message))).str();
  for (StringRef rest = text; !rest.empty();) {
    ssize_t written = write(pipe, rest.data(), rest.size());
    if (written <= 0)
      _exit(1);
    rest = rest.drop_front(written);
  }
}

/// A worker that cannot go on reports why, and ends.
void reportAndExit(const char *message, void *) {
  send(worker.pipe,
       llvm::json::Object{{"line", int64_t(worker.line)},
                          {"error", llvm::json::fixUTF8(message)}});
  _exit(1);
}

[[noreturn]] void runWorker(ArrayRef<RunOptions> runs, int pipe,
                            std::atomic<size_t> &next,
                            Clock::time_point deadline) {
  worker.pipe = pipe;
  nmsSetErrorHandler(reportAndExit, nullptr);
  for (size_t line; Clock::now() < deadline && (line = next++) < runs.size();) {
    worker.line = line;
    send(pipe, llvm::json::Object{{"line", int64_t(line)}, {"start", true}});
    auto report = run(runs[line].request);
    if (!report) {
      send(pipe,
           llvm::json::Object{{"line", int64_t(line)},
                              {"error", llvm::json::fixUTF8(llvm::toString(
                                            report.takeError()))}});
      continue;
    }
    send(pipe, llvm::json::Object{{"line", int64_t(line)},
                                  {"text", llvm::json::fixUTF8(report->text)},
                                  {"passed", report->passed},
                                  {"report", std::move(report->json)}});
  }
  _exit(0);
}

struct Worker {
  pid_t process = -1;
  int pipe = -1;
  std::string pending;          ///< An incomplete line.
  std::optional<size_t> active; ///< The run that it works on.
  Clock::time_point started;
};

class Pool {
public:
  Pool(const RunOptions &options, std::vector<RunOptions> runs,
       std::vector<std::string> texts)
      : options(options), runs(std::move(runs)), texts(std::move(texts)),
        results(this->runs.size()) {
    void *memory =
        mmap(nullptr, sizeof(std::atomic<size_t>), PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    next = new (memory) std::atomic<size_t>(0);
    if (options.deadline)
      deadline = Clock::now() + std::chrono::seconds(options.deadline);
  }
  ~Pool() { munmap(next, sizeof(std::atomic<size_t>)); }

  void run() {
    for (int64_t i = 0; i < options.jobs && size_t(i) < runs.size(); ++i)
      start();
    while (!workers.empty())
      step();
  }
  llvm::json::Array takeResults() {
    llvm::json::Array array;
    // Those that the deadline left out are empty.
    for (llvm::json::Object &result : results)
      if (!result.empty())
        array.push_back(std::move(result));
    return array;
  }
  size_t done = 0, failed = 0, errors = 0;

private:
  void start();
  void step();
  void finish(Worker &worker);
  void receive(Worker &worker, StringRef line);
  void record(size_t line, llvm::json::Object result, StringRef text);

  const RunOptions &options;
  std::vector<RunOptions> runs;
  std::vector<std::string> texts;
  std::vector<llvm::json::Object> results;
  std::atomic<size_t> *next;
  std::vector<Worker> workers;
  Clock::time_point deadline = Clock::time_point::max();
};

void Pool::start() {
  int ends[2];
  if (pipe(ends))
    return;
  llvm::outs().flush();
  pid_t process = fork();
  if (process == 0) {
    close(ends[0]);
    runWorker(runs, ends[1], *next, deadline);
  }
  close(ends[1]);
  if (process < 0) {
    close(ends[0]);
    return;
  }
  Worker worker;
  worker.process = process;
  worker.pipe = ends[0];
  worker.started = Clock::now();
  workers.push_back(std::move(worker));
}

void Pool::record(size_t line, llvm::json::Object result, StringRef text) {
  result["arguments"] = llvm::json::fixUTF8(texts[line]);
  results[line] = std::move(result);
  ++done;
  llvm::outs() << "[" << done << "/" << runs.size() << "] " << text;
  llvm::outs().flush();
}

void Pool::receive(Worker &worker, StringRef text) {
  auto parsed = llvm::json::parse(text);
  if (!parsed) {
    llvm::consumeError(parsed.takeError());
    return;
  }
  llvm::json::Object &message = *parsed->getAsObject();
  size_t line = *message.getInteger("line");
  if (message.getBoolean("start")) {
    worker.active = line;
    worker.started = Clock::now();
    return;
  }
  worker.active.reset();
  if (std::optional<StringRef> error = message.getString("error")) {
    ++errors;
    record(line, llvm::json::Object{{"error", error->str()}},
           ("ERROR " + texts[line] + ": " + *error + "\n").str());
    return;
  }
  if (!*message.getBoolean("passed"))
    ++failed;
  record(line, std::move(*message.getObject("report")),
         *message.getString("text"));
}

/// Reaps a worker whose pipe is closed; replaces it while there is work.
void Pool::finish(Worker &worker) {
  int status = 0;
  waitpid(worker.process, &status, 0);
  close(worker.pipe);
  if (worker.active) {
    std::string why =
        WIFSIGNALED(status)
            ? llvm::formatv("ended by signal {0} ({1})", WTERMSIG(status),
                            strsignal(WTERMSIG(status)))
                  .str()
            : llvm::formatv("ended with status {0}", WEXITSTATUS(status)).str();
    ++errors;
    record(*worker.active, llvm::json::Object{{"error", why}},
           ("ERROR " + texts[*worker.active] + ": " + why + "\n"));
  }
}

void Pool::step() {
  std::vector<pollfd> polled;
  polled.reserve(workers.size());
  for (Worker &worker : workers)
    polled.push_back({worker.pipe, POLLIN, 0});
  poll(polled.data(), polled.size(), 1000);
  std::vector<Worker> alive;
  size_t replace = 0;
  for (auto [worker, state] : llvm::zip(workers, polled)) {
    bool closed = false;
    if (state.revents) {
      char buffer[4096];
      ssize_t count = read(worker.pipe, buffer, sizeof(buffer));
      closed = count <= 0;
      if (!closed)
        worker.pending.append(buffer, count);
      for (size_t end;
           (end = worker.pending.find('\n')) != std::string::npos;) {
        receive(worker, StringRef(worker.pending).take_front(end));
        worker.pending.erase(0, end + 1);
      }
    }
    if (worker.active &&
        Clock::now() - worker.started > std::chrono::seconds(options.timeout)) {
      kill(worker.process, SIGKILL);
      worker.started = Clock::now();
    }
    if (!closed) {
      alive.push_back(std::move(worker));
      continue;
    }
    finish(worker);
    replace += *next < runs.size() && Clock::now() < deadline;
  }
  workers = std::move(alive);
  for (; replace; --replace)
    start();
}

} // namespace

PoolResults nm_sparse::runPool(const RunOptions &options,
                               std::vector<RunOptions> runs,
                               std::vector<std::string> texts) {
  // The workers share the cores.
  unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  for (RunOptions &run : runs)
    run.request.emulatorJobs = std::max<int64_t>(1, cores / options.jobs);
  Pool pool(options, std::move(runs), std::move(texts));
  pool.run();
  return {pool.takeResults(), pool.done, pool.failed, pool.errors};
}

int nm_sparse::finishPool(const RunOptions &options, llvm::json::Object header,
                          PoolResults pool) {
  if (!options.json.empty()) {
    header["runs"] = std::move(pool.reports);
    if (llvm::Error error = writeJSON(options.json, std::move(header))) {
      llvm::errs() << "nm-run: " << llvm::toString(std::move(error)) << "\n";
      return 1;
    }
  }
  return pool.failed || pool.errors ? 1 : 0;
}
