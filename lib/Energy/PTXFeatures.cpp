//===- PTXFeatures.cpp - what the code of a kernel says of it -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Energy/PTXFeatures.h"

#include "PTXInstruction.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir::nm_sparse;
using llvm::StringRef;

llvm::ArrayRef<PTXCountField> mlir::nm_sparse::getPTXCountFields() {
  static const PTXCountField fields[] = {
      {"instructions", &PTXCounts::instructions},
      {"f64_flops", &PTXCounts::f64Flops},
      {"f32_flops", &PTXCounts::f32Flops},
      {"f16_flops", &PTXCounts::f16Flops},
      {"special", &PTXCounts::special},
      {"conversions", &PTXCounts::conversions},
      {"integer", &PTXCounts::integer},
      {"tensor_flops", &PTXCounts::tensorFlops},
      {"sparse_tensor_flops", &PTXCounts::sparseTensorFlops},
      {"global_read", &PTXCounts::globalRead},
      {"global_written", &PTXCounts::globalWritten},
      {"shared_read", &PTXCounts::sharedRead},
      {"shared_written", &PTXCounts::sharedWritten},
      {"copied", &PTXCounts::copied},
      {"bulk_copies", &PTXCounts::bulkCopies},
      {"atomics", &PTXCounts::atomics},
      {"branches", &PTXCounts::branches},
      {"barriers", &PTXCounts::barriers},
      {"shuffles", &PTXCounts::shuffles}};
  return fields;
}

PTXCounts &PTXCounts::operator+=(const PTXCounts &other) {
  for (const PTXCountField &field : getPTXCountFields())
    this->*field.field += other.*field.field;
  return *this;
}

PTXCounts PTXKernel::getTotal() const {
  PTXCounts total;
  for (const PTXCounts &counts : byDepth)
    total += counts;
  return total;
}

namespace {

/// The instructions of a kernel, and where they jump.
struct Body {
  llvm::SmallVector<PTXCounts> instructions;
  llvm::StringMap<size_t> labels;
  llvm::SmallVector<std::pair<size_t, StringRef>> jumps;

  llvm::SmallVector<PTXCounts> countByDepth() const;
};

/// Reads PTX statement by statement.
class Reader {
public:
  explicit Reader(StringRef text) : all(text), rest(text) {}

  llvm::Expected<llvm::SmallVector<PTXKernel>> read();

private:
  void skipSpace();
  llvm::Error failAt(const llvm::Twine &what) const;
  /// Takes the text up to the next `end`, and `end` itself.
  llvm::Expected<StringRef> takeUntil(char end);
  llvm::Error readDirective();
  llvm::Error readHeader(StringRef header);
  llvm::Error readThreads(StringRef directive, StringRef sizes);
  llvm::Error readStatement();
  void finishKernel();

  StringRef all, rest;
  llvm::SmallVector<PTXKernel> kernels;
  Body body;
  bool isInKernel = false;
  int64_t braces = 0;
};

} // namespace

llvm::SmallVector<PTXCounts> Body::countByDepth() const {
  // Loops with one head are one.
  llvm::SmallVector<size_t> ends(instructions.size() + 1, 0);
  for (auto [at, target] : jumps)
    if (auto found = labels.find(target);
        found != labels.end() && found->second <= at)
      ends[found->second] = std::max(ends[found->second], at + 1);
  llvm::SmallVector<PTXCounts> result(1);
  llvm::SmallVector<size_t> open;
  for (size_t i = 0; i < instructions.size(); ++i) {
    llvm::erase_if(open, [&](size_t end) { return end <= i; });
    if (ends[i] > i)
      open.push_back(ends[i]);
    if (result.size() <= open.size())
      result.resize(open.size() + 1);
    result[open.size()] += instructions[i];
  }
  return result;
}

llvm::Error Reader::failAt(const llvm::Twine &what) const {
  size_t line = 1 + all.drop_back(rest.size()).count('\n');
  return llvm::createStringError("line " + llvm::Twine(line) + ": " + what);
}

void Reader::skipSpace() {
  while (true) {
    rest = rest.ltrim();
    if (rest.starts_with("//"))
      rest = rest.drop_until([](char c) { return c == '\n'; });
    else if (rest.starts_with("/*"))
      rest = rest.drop_front(std::min(rest.size(), rest.find("*/", 2)))
                 .drop_front(rest.contains("*/") ? 2 : 0);
    else
      return;
  }
}

llvm::Expected<StringRef> Reader::takeUntil(char end) {
  size_t at = rest.find(end);
  if (at == StringRef::npos) {
    StringRef name = getName(rest.ltrim(".@!"));
    return failAt((name.empty() ? "a statement" : "'" + name.str() + "'") +
                  " does not end with '" + llvm::Twine(end) + "'");
  }
  StringRef found = rest.take_front(at);
  rest = rest.drop_front(at + 1);
  return found;
}

void Reader::finishKernel() {
  kernels.back().byDepth = body.countByDepth();
  body = Body();
  isInKernel = false;
}

/// Reads `128, 1, 1` and what follows.
llvm::Error Reader::readThreads(StringRef directive, StringRef sizes) {
  int64_t threads = 1;
  do {
    sizes = sizes.ltrim();
    StringRef text = getName(sizes);
    int64_t size = 0;
    if (text.getAsInteger(10, size) || size < 1 || size > 1024)
      return failAt(directive + " of " + text +
                    ": legal are 1 to 1024 threads");
    threads *= size;
    sizes = sizes.drop_front(text.size()).ltrim();
  } while (sizes.consume_front(","));
  kernels.back().maxThreads = threads;
  return llvm::Error::success();
}

/// Reads `.visible .entry name(...) .maxntid 128, 1, 1`, or the header of a
/// function.
llvm::Error Reader::readHeader(StringRef header) {
  auto [before, entry] = header.split(".entry");
  if (entry.empty())
    return llvm::Error::success();
  kernels.emplace_back();
  kernels.back().name = getName(entry.ltrim()).str();
  if (kernels.back().name.empty())
    return failAt("a kernel has no name: expected one behind .entry");
  for (StringRef directive : {".maxntid", ".reqntid"})
    if (size_t at = header.find(directive); at != StringRef::npos)
      if (llvm::Error error =
              readThreads(directive, header.drop_front(at + directive.size())))
        return error;
  isInKernel = true;
  return llvm::Error::success();
}

llvm::Error Reader::readDirective() {
  StringRef word = getName(rest.drop_front());
  if (word == "visible" || word == "weak" || word == "entry" ||
      word == "func" || word == "extern" || word == "common") {
    // A declaration ends with a semicolon, a definition goes on with a body.
    size_t end = rest.find_first_of(";{");
    if (end == StringRef::npos)
      return failAt("'." + word + "' has neither a body nor a ';'");
    StringRef header = rest.take_front(end);
    // Else the braces are around the initial values of a variable.
    bool isFunction = header.contains(".entry") || header.contains(".func");
    if (rest[end] == '{' && isFunction) {
      llvm::Error error = readHeader(header);
      rest = rest.drop_front(end);
      return error;
    }
  }
  for (StringRef line : {"version", "target", "address_size", "loc", "file"})
    if (word == line) {
      rest = rest.drop_until([](char c) { return c == '\n'; });
      return llvm::Error::success();
    }
  // Debug information is a table of bytes in braces.
  StringRef start = rest;
  llvm::Expected<StringRef> found = takeUntil(word == "section" ? '}' : ';');
  if (!found)
    return found.takeError();
  if (!isInKernel || word != "shared")
    return llvm::Error::success();
  auto bytes =
      countDeclaredBytes(found->drop_front(StringRef(".shared").size()));
  if (!bytes) {
    rest = start;
    return failAt(llvm::toString(bytes.takeError()));
  }
  kernels.back().sharedBytes += *bytes;
  return llvm::Error::success();
}

/// A label or an instruction.
llvm::Error Reader::readStatement() {
  StringRef name = getName(rest);
  StringRef behind = rest.drop_front(name.size()).ltrim();
  if (!name.empty() && behind.starts_with(":") && !behind.starts_with("::")) {
    body.labels[name] = body.instructions.size();
    rest = behind.drop_front();
    return llvm::Error::success();
  }
  llvm::Expected<StringRef> found = takeUntil(';');
  if (!found)
    return found.takeError();
  StringRef statement = found->trim();
  if (statement.consume_front("@"))
    statement = statement.drop_until(llvm::isSpace).ltrim();
  StringRef opcode = statement.take_until(llvm::isSpace);
  StringRef operands = statement.drop_front(opcode.size()).trim();
  if (opcode.empty() || !isInKernel)
    return llvm::Error::success();
  if (opcode == "bra" || opcode == "bra.uni")
    body.jumps.emplace_back(body.instructions.size(), operands);
  body.instructions.push_back(countInstruction(opcode, operands));
  return llvm::Error::success();
}

llvm::Expected<llvm::SmallVector<PTXKernel>> Reader::read() {
  for (skipSpace(); !rest.empty(); skipSpace()) {
    if (rest.consume_front("{")) {
      ++braces;
      continue;
    }
    if (rest.front() == '}') {
      if (--braces < 0)
        return failAt("'}' without a '{'");
      rest = rest.drop_front();
      if (braces == 0 && isInKernel)
        finishKernel();
      continue;
    }
    if (llvm::Error error =
            rest.front() == '.' ? readDirective() : readStatement())
      return std::move(error);
  }
  if (braces > 0)
    return failAt("the text ends inside of '{'");
  if (kernels.empty())
    return failAt("no kernel: expected PTX with an .entry");
  return std::move(kernels);
}

llvm::Expected<llvm::SmallVector<PTXKernel>>
mlir::nm_sparse::countPTX(StringRef text) {
  return Reader(text).read();
}

static llvm::json::Object toJSON(const PTXCounts &counts) {
  llvm::json::Object object;
  for (const PTXCountField &field : getPTXCountFields())
    object[field.name] = counts.*field.field;
  return object;
}

llvm::json::Array mlir::nm_sparse::toJSON(llvm::ArrayRef<PTXKernel> kernels) {
  llvm::json::Array array;
  for (const PTXKernel &kernel : kernels) {
    llvm::json::Array depths;
    for (const PTXCounts &counts : kernel.byDepth)
      depths.push_back(::toJSON(counts));
    array.push_back(llvm::json::Object{{"name", kernel.name},
                                       {"max_threads", kernel.maxThreads},
                                       {"shared_bytes", kernel.sharedBytes},
                                       {"total", ::toJSON(kernel.getTotal())},
                                       {"by_depth", std::move(depths)}});
  }
  return array;
}
