//===- CommandLine.h - arguments of our tools -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// llvm::cl would list hundreds of options of LLVM in --help, and ends with
// status 1 on bad usage. Errors here are one sentence.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_SUPPORT_COMMANDLINE_H
#define NM_SPARSE_SUPPORT_COMMANDLINE_H

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Error.h"
#include <functional>
#include <string>

namespace mlir::nm_sparse {

class CommandLine {
public:
  /// An option without a value.
  void addFlag(llvm::StringRef name, bool &target) {
    options.push_back({name.str(), false, [&target](llvm::StringRef) {
                         target = true;
                         return llvm::Error::success();
                       }});
  }
  void addString(llvm::StringRef name, std::string &target) {
    addValue(name, [&target](llvm::StringRef value) -> llvm::Error {
      if (value.empty())
        return llvm::createStringError("the value is empty");
      target = value.str();
      return llvm::Error::success();
    });
  }
  template <typename T>
  void addNumber(llvm::StringRef name, T &target, T least, T most) {
    addValue(name, [=, &target](llvm::StringRef value) -> llvm::Error {
      T number;
      if (value.getAsInteger(10, number) || number < least || number > most)
        return llvm::createStringError(
            ("'" + value + "' is not a whole number from " +
             std::to_string(least) + " to " + std::to_string(most))
                .str());
      target = number;
      return llvm::Error::success();
    });
  }
  /// One of a few words. `target` is a string, or an option that holds one.
  template <typename T>
  void addChoice(llvm::StringRef name, T &target,
                 const llvm::SmallVector<llvm::StringRef> &legal) {
    addValue(name, [=, &target](llvm::StringRef value) -> llvm::Error {
      if (!llvm::is_contained(legal, value))
        return llvm::createStringError("'" + value.str() + "' is not one of " +
                                       llvm::join(legal, ", "));
      target = value.str();
      return llvm::Error::success();
    });
  }
  void addValue(llvm::StringRef name,
                std::function<llvm::Error(llvm::StringRef)> parse) {
    options.push_back({name.str(), true, std::move(parse)});
  }

  /// Positional arguments, with the options removed and applied.
  llvm::Expected<llvm::SmallVector<std::string>>
  parse(llvm::ArrayRef<const char *> arguments) const {
    llvm::SmallVector<std::string> positional;
    for (size_t i = 0; i < arguments.size(); ++i) {
      llvm::StringRef argument = arguments[i];
      if (!argument.starts_with("-") || argument == "-") {
        positional.push_back(argument.str());
        continue;
      }
      auto [name, value] = argument.split('=');
      bool attached = name.size() != argument.size();
      llvm::StringRef bare = name.ltrim('-');
      const Option *option = llvm::find_if(
          options, [&](const Option &option) { return option.name == bare; });
      if (option == options.end())
        return llvm::createStringError("unknown option " + name.str() +
                                       "; --help lists all");
      if (!option->hasValue && attached)
        return llvm::createStringError(name.str() + " takes no value");
      if (option->hasValue && !attached) {
        if (++i == arguments.size())
          return llvm::createStringError(name.str() + " needs a value");
        value = arguments[i];
      }
      if (llvm::Error error = option->parse(value))
        return llvm::createStringError(name.str() + ": " +
                                       llvm::toString(std::move(error)));
    }
    return positional;
  }

private:
  struct Option {
    std::string name;
    bool hasValue;
    std::function<llvm::Error(llvm::StringRef)> parse;
  };
  llvm::SmallVector<Option> options;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_SUPPORT_COMMANDLINE_H
