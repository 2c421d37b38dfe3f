//===- DatabaseFile.cpp - files that several searches write to ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Tuning/DatabaseFile.h"

#include "nm_sparse/Support/OutputFile.h"
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace mlir;
using namespace mlir::nm_sparse;

DatabaseFile::~DatabaseFile() {
  if (descriptor >= 0)
    close(descriptor);
}

static llvm::Error makeError(StringRef path) {
  return llvm::createStringError("cannot write " + path.str() + ": " +
                                 std::strerror(errno));
}

/// The descriptor is of the file that has this name now.
static bool isCurrent(int descriptor, const char *path) {
  struct stat own, named;
  return !fstat(descriptor, &own) && !stat(path, &named) &&
         own.st_ino == named.st_ino && own.st_dev == named.st_dev;
}

llvm::Expected<DatabaseFile> DatabaseFile::open(StringRef path) {
  DatabaseFile file;
  file.path = path.str();
  const char *name = file.path.c_str();
  // Whoever held the lock may have put another file in the place of this one.
  do {
    if (file.descriptor >= 0)
      close(file.descriptor);
    file.descriptor =
        ::open(name, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (file.descriptor < 0 || flock(file.descriptor, LOCK_EX))
      return makeError(path);
  } while (!isCurrent(file.descriptor, name));
  return std::move(file);
}

llvm::Error DatabaseFile::append(const TunedEntry &entry) {
  std::string line;
  llvm::raw_string_ostream(line) << llvm::json::Value(toJSON(entry)) << "\n";
  // A line of hands may have no end yet.
  char last = '\n';
  off_t size = lseek(descriptor, 0, SEEK_END);
  if (size > 0 && pread(descriptor, &last, 1, size - 1) == 1 && last != '\n')
    line.insert(line.begin(), '\n');
  for (StringRef rest = line; !rest.empty();) {
    ssize_t count = write(descriptor, rest.data(), rest.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0) {
      llvm::Error error = makeError(path);
      // Nothing is left half written.
      (void)!ftruncate(descriptor, size);
      return error;
    }
    rest = rest.drop_front(static_cast<size_t>(count));
  }
  return llvm::Error::success();
}

llvm::Error DatabaseFile::replace(const TuningDatabase &database) {
  std::string text;
  llvm::raw_string_ostream os(text);
  database.print(os);
  auto file = OutputFile::create(path, std::move(text));
  return file ? file->keep() : file.takeError();
}
