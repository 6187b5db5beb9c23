#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace rubato {

/// A failure that a user or a file can cause.
///
/// The message is one or two lines: what is wrong, where (file and line, option, step) and what
/// would be accepted. A failure that only a bug can cause is a failed RUBATO_CHECK instead.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A choice that contradicts another one. It is refused in the same words wherever it is made: the
/// message is "CHOICE: WHY; accepted: ACCEPTED", and programs put their own name of it first.
class Refused : public Error {
 public:
  /// `choice` is a name as in Python: "clip_value".
  Refused(std::string choice, std::string why, std::string accepted)
      : Error(choice + ": " + why + "; accepted: " + accepted),
        choice_(std::move(choice)),
        why_(std::move(why)),
        accepted_(std::move(accepted)) {}

  [[nodiscard]] const std::string& choice() const { return choice_; }
  [[nodiscard]] const std::string& why() const { return why_; }
  [[nodiscard]] const std::string& accepted() const { return accepted_; }

 private:
  std::string choice_;
  std::string why_;
  std::string accepted_;
};

}  // namespace rubato
