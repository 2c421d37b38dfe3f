//===- InlineText.cpp - the text of inline PTX ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ops/Inline/InlineText.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/Regex.h"

using namespace mlir::nm_sparse::emulator;
using llvm::Error;
using llvm::StringRef;

namespace {

/// Without comments, and with the placeholders {$r0}, {$w0} and {$rw0} of
/// nvvm.inline_ptx as plain names.
std::string simplify(StringRef text) {
  std::string plain;
  while (!text.empty()) {
    if (text.starts_with("//")) {
      text = text.drop_until([](char c) { return c == '\n'; });
    } else if (text.starts_with("/*")) {
      text = text.split("*/").second;
      plain += ' ';
    } else {
      plain += text.front();
      text = text.drop_front();
    }
  }
  static const llvm::Regex placeholder("[{](\\$(rw|r|w)[0-9]+)[}]");
  llvm::SmallVector<StringRef> matches;
  while (placeholder.match(plain, &matches)) {
    size_t at = matches[0].data() - plain.data();
    std::string name = matches[1].str();
    plain.replace(at, matches[0].size(), name);
  }
  return plain;
}

class Parser {
public:
  explicit Parser(StringRef text) : rest(text) {}

  llvm::Expected<PtxText> run() {
    while (skipSpace(), !rest.empty()) {
      // Braces around statements only limit the scope of registers.
      if (take('{') || take('}') || take(';'))
        continue;
      if (Error error = parseStatement())
        return std::move(error);
    }
    return std::move(result);
  }

private:
  static bool isNameChar(char c) {
    return llvm::isAlnum(c) || StringRef("_$%.").contains(c);
  }

  void skipSpace() { rest = rest.ltrim(); }
  bool take(char c) {
    skipSpace();
    return rest.consume_front(StringRef(&c, 1));
  }
  StringRef takeWord(bool (*isPart)(char)) {
    skipSpace();
    StringRef word = rest.take_while(isPart);
    rest = rest.drop_front(word.size());
    return word;
  }
  StringRef takeName() { return takeWord(isNameChar); }

  Error expect(char c) {
    if (take(c))
      return Error::success();
    return fail(std::string("expected '") + c + "'");
  }
  Error fail(const llvm::Twine &what) {
    return llvm::createStringError(what + " before '" + rest.take_front(24) +
                                   "'");
  }

  Error parseStatement();
  Error parseRegisters();
  Error parseNumber(int64_t &value);
  Error parseOperand(PtxOperand &operand);
  Error parseList(std::vector<PtxOperand> &operands);
  Error parseAddress(PtxOperand &operand);

  StringRef rest;
  PtxText result;
};

} // namespace

Error Parser::parseStatement() {
  if (rest.starts_with(".reg"))
    return parseRegisters();
  PtxInstruction instruction;
  if (take('@')) {
    instruction.isGuardNegated = take('!');
    instruction.guard = takeName().str();
  }
  StringRef mnemonic =
      takeWord([](char c) { return isNameChar(c) || c == ':'; });
  if (mnemonic.empty())
    return fail("expected an instruction");
  if (mnemonic.ends_with(":")) {
    result.labels[mnemonic.drop_back()] = result.instructions.size();
    return Error::success();
  }
  instruction.mnemonic = mnemonic.str();
  skipSpace();
  if (!rest.empty() && !rest.starts_with(";") && !rest.starts_with("}"))
    if (Error error = parseList(instruction.operands))
      return error;
  result.instructions.push_back(std::move(instruction));
  skipSpace();
  return rest.empty() || rest.starts_with("}") ? Error::success() : expect(';');
}

/// .reg .b32 x, y, z<4>;
Error Parser::parseRegisters() {
  rest.consume_front(".reg");
  StringRef type = takeName();
  if (!type.consume_front("."))
    return fail("expected the type of a register");
  do {
    StringRef name = takeName();
    if (name.empty())
      return fail("expected the name of a register");
    if (!take('<')) {
      result.registers.push_back({name.str(), type.str()});
      continue;
    }
    int64_t count = 0;
    if (Error error = parseNumber(count))
      return error;
    for (int64_t i = 0; i < count; ++i)
      result.registers.push_back({(name + llvm::Twine(i)).str(), type.str()});
    if (Error error = expect('>'))
      return error;
  } while (take(','));
  return expect(';');
}

/// 0f and 0d are followed by the bits of a float or a double; a decimal
/// fraction stands for a float.
Error Parser::parseNumber(int64_t &value) {
  bool isNegative = take('-');
  StringRef word =
      takeWord([](char c) { return llvm::isAlnum(c) || c == '.'; });
  StringRef digits = word;
  uint64_t bits = 0;
  if (digits.consume_front("0f") || digits.consume_front("0F") ||
      digits.consume_front("0d") || digits.consume_front("0D")) {
    if (digits.getAsInteger(16, bits))
      return fail("'" + word + "' is not a number");
  } else if (digits.contains('.')) {
    double number = 0;
    if (digits.getAsDouble(number))
      return fail("'" + word + "' is not a number");
    bits = llvm::bit_cast<uint32_t>(float(isNegative ? -number : number));
    isNegative = false;
  } else {
    digits.consume_back("U");
    if (digits.getAsInteger(0, bits))
      return fail("'" + word + "' is not a number");
  }
  value = isNegative ? -int64_t(bits) : int64_t(bits);
  return Error::success();
}

/// Parses the rest of an address, behind '['.
Error Parser::parseAddress(PtxOperand &operand) {
  operand.kind = PtxOperand::Kind::Address;
  skipSpace();
  if (!rest.empty() && (llvm::isDigit(rest.front()) || rest.front() == '-')) {
    if (Error error = parseNumber(operand.value))
      return error;
    return expect(']');
  }
  operand.name = takeName().str();
  if (operand.name.empty())
    return fail("expected an address");
  skipSpace();
  if (rest.consume_front("+") || rest.starts_with("-"))
    if (Error error = parseNumber(operand.value))
      return error;
  if (take(','))
    if (Error error = parseList(operand.elements))
      return error;
  return expect(']');
}

Error Parser::parseOperand(PtxOperand &operand) {
  if (take('['))
    return parseAddress(operand);
  if (take('{')) {
    operand.kind = PtxOperand::Kind::Vector;
    if (Error error = parseList(operand.elements))
      return error;
    return expect('}');
  }
  operand.isNegated = take('!');
  skipSpace();
  if (rest.empty())
    return fail("expected an operand");
  if (llvm::isDigit(rest.front()) || rest.front() == '-') {
    operand.kind = PtxOperand::Kind::Immediate;
    return parseNumber(operand.value);
  }
  operand.name = takeName().str();
  if (operand.name.empty())
    return fail("expected an operand");
  if (!take('|'))
    return Error::success();
  PtxOperand first = operand, second;
  second.name = takeName().str();
  operand = {};
  operand.kind = PtxOperand::Kind::Pair;
  operand.elements = {first, second};
  return second.name.empty() ? fail("expected an operand") : Error::success();
}

Error Parser::parseList(std::vector<PtxOperand> &operands) {
  do
    if (Error error = parseOperand(operands.emplace_back()))
      return error;
  while (take(','));
  return Error::success();
}

llvm::Expected<PtxText> mlir::nm_sparse::emulator::parsePtx(StringRef text) {
  std::string plain = simplify(text);
  return Parser(plain).run();
}
