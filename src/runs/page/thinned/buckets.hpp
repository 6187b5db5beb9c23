#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace rubato::page {

/// What a curve can be drawn against.
enum class Axis : std::size_t { steps, samples, seconds, hours, money };
inline constexpr std::size_t kAxes = 5;

struct AxisRow {
  /// In JSON.
  std::string_view key;
  /// On the page.
  std::string_view label;
  /// The axis counts something, so that its values are whole numbers.
  bool is_whole = false;
};
inline constexpr std::array<AxisRow, kAxes> kAxisRows{{{"steps", "steps", true},
                                                       {"samples", "samples", true},
                                                       {"seconds", "measured seconds"},
                                                       {"hours", "modelled hours"},
                                                       {"money", "money"}}};

/// How far a run has come, on each axis.
struct Position {
  std::array<double, kAxes> values{};

  [[nodiscard]] double& operator[](Axis axis) { return values[static_cast<std::size_t>(axis)]; }
  [[nodiscard]] double operator[](Axis axis) const {
    return values[static_cast<std::size_t>(axis)];
  }
};

/// The numbers of a run's steps, thinned while they are read: neighbours share a bucket, which
/// keeps the least, the greatest and the mean of each number, so that no extreme is lost. However
/// many steps there are, between half of `most` and `most` buckets hold them.
class Buckets {
 public:
  struct Range {
    double low = std::numeric_limits<double>::infinity();
    double high = -std::numeric_limits<double>::infinity();
    double sum = 0;
    std::int64_t count = 0;

    [[nodiscard]] double mean() const { return sum / static_cast<double>(count); }
    void add(double value);
    void add(const Range& other);
  };
  struct Bucket {
    /// After its last step.
    Position at{};
    std::int64_t steps = 0;
    /// By the number of the name; shorter where the last names have no value.
    std::vector<Range> ranges{};
  };

  static constexpr std::size_t kMostNames = 200;

  /// `most` is even.
  explicit Buckets(std::size_t most) : most_(most) {}

  /// The next step, after which the run stands at `at`.
  void begin_step(const Position& at);
  /// A number of that step. One that is not finite is left out, and so are names beyond kMostNames,
  /// of which a damaged file may have any number.
  void add(std::string_view name, double value);

  [[nodiscard]] const std::vector<Bucket>& buckets() const { return buckets_; }
  /// The number of a name; empty Range where the bucket has none.
  [[nodiscard]] Range range_of(const Bucket& bucket, std::string_view name) const;
  /// That have a value, in the order in which they came.
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  [[nodiscard]] bool has(std::string_view name) const { return numbers_.contains(name); }
  /// The steps of a full bucket.
  [[nodiscard]] std::int64_t width() const { return width_; }

 private:
  void halve();

  std::size_t most_;
  std::int64_t width_ = 1;
  std::vector<Bucket> buckets_{};
  std::map<std::string, std::size_t, std::less<>> numbers_{};
  std::vector<std::string> names_{};
};

}  // namespace rubato::page
