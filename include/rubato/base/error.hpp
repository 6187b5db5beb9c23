#pragma once

#include <stdexcept>

namespace rubato {

/// A failure that a user or a file can cause.
///
/// The message is one or two lines: what is wrong, where (file and line, option, step) and what
/// would be accepted. What only a bug can cause is not an Error but a failed RUBATO_CHECK.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace rubato
