#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <rubato/state/state.hpp>

namespace rubato {

/// The event files of one run: one of each process that went on with it. Their names ascend in that
/// order, which is the order in which TensorBoard reads them.
class EventFolder {
 public:
  /// Makes the folder and those above it. Throws OutputError when that fails.
  explicit EventFolder(std::filesystem::path path);

  /// A new one, behind those that there are; it is not made yet.
  [[nodiscard]] std::filesystem::path next();
  [[nodiscard]] bool empty() const { return names_.empty(); }

  /// Which files there are, the last of which is `bytes` long.
  void save(State& state, std::int64_t bytes) const;
  /// Makes the folder what it was when the state was saved: cuts off what the last file has got
  /// since, and removes the files since. Before it, nothing counts as being there. Throws Error when
  /// a file has gone, or the last one has become shorter; OutputError.
  void load(const State& state);
  /// Removes them all, those included that nothing is known of. Throws OutputError.
  void remove_all();

 private:
  void remove_if_not_among(const std::vector<std::string>& names) const;

  std::filesystem::path path_;
  std::vector<std::string> names_;
};

}  // namespace rubato
