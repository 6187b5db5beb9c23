#pragma once

#include <string>

#include <rubato/base/error.hpp>

namespace rubato::test {

/// The message of the rubato::Error that `action` throws; "no error" when it throws none. What it
/// returns is dropped.
template <class Action>
std::string error_of(const Action& action) {
  try {
    static_cast<void>(action());
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace rubato::test

namespace rubato {

using test::error_of;  // NOLINT(misc-unused-using-decls): tests use it

}  // namespace rubato
