#pragma once

#include <stdexcept>

namespace rubato {

/// A failure that a user or a file can cause.
///
/// The message is one or two lines: what is wrong, where (file and line, option, step) and what
/// would be accepted. A failure that only a bug can cause is a failed RUBATO_CHECK instead.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace rubato
