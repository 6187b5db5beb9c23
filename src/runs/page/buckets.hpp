#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace rubato::page {

/// The quantities that a curve can be drawn against.
enum class Axis : std::size_t { steps, samples, seconds, hours, money };
inline constexpr std::size_t kAxes = 5;

struct AxisRow {
  /// Key in JSON.
  std::string_view key;
  /// Label on the page.
  std::string_view label;
  /// Whether the axis counts something, so that its values are whole numbers.
  bool is_whole = false;
};
inline constexpr std::array<AxisRow, kAxes> kAxisRows{{{"steps", "steps", true},
                                                       {"samples", "samples", true},
                                                       {"seconds", "measured seconds"},
                                                       {"hours", "modelled hours"},
                                                       {"money", "money"}}};

/// The position of a run on each axis.
struct Position {
  std::array<double, kAxes> values{};

  [[nodiscard]] double& operator[](Axis axis) { return values[static_cast<std::size_t>(axis)]; }
  [[nodiscard]] double operator[](Axis axis) const {
    return values[static_cast<std::size_t>(axis)];
  }
};

/// The numbers of a run's steps, thinned while they are read: neighbouring steps share a bucket,
/// which keeps the smallest, the largest and the mean of each number, so that no extreme is lost.
/// As soon as there are enough steps, between half of `most` and `most` buckets hold them.
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
    /// Position after its last step.
    Position at{};
    std::int64_t steps = 0;
    /// Ranges indexed like names(); shorter if the last names have no value.
    std::vector<Range> ranges{};
  };

  static constexpr std::size_t kMostNames = 200;

  /// `most` is the maximum number of buckets; must be even.
  explicit Buckets(std::size_t most) : most_(most) {}

  /// Begins the next step, after which the run is at position `at`.
  void begin_step(const Position& at);
  /// Adds a number of this step. Numbers that are not finite are left out, and so are names beyond
  /// kMostNames, because a damaged file may have any number of them.
  void add(std::string_view name, double value);

  [[nodiscard]] const std::vector<Bucket>& buckets() const { return buckets_; }
  /// The range of a name in a bucket; its count is 0 if the bucket has no value.
  [[nodiscard]] Range range_of(const Bucket& bucket, std::string_view name) const;
  /// Names that have a value, in the order of their first one.
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  [[nodiscard]] bool has(std::string_view name) const { return numbers_.contains(name); }
  /// Number of steps in a full bucket.
  [[nodiscard]] std::int64_t width() const { return width_; }

 private:
  void halve();

  std::size_t most_;
  std::int64_t width_ = 1;
  std::vector<Bucket> buckets_{};
  std::map<std::string, std::size_t, std::less<>> numbers_{};
  std::vector<std::string> names_{};
  // Index of the name after that of the last number: most steps have their numbers in the same
  // order.
  std::size_t next_ = 0;
};

// JSON of buckets, in the form that web/lines.js reads.

using Json = nlohmann::ordered_json;

/// A number rounded to the digits that a chart can show; null if it is not finite.
[[nodiscard]] Json chart_number(double value);

/// All axes that a reader can choose from.
[[nodiscard]] Json axis_rows_json();
/// The end of each bucket on each axis, except axes on which the run never moved.
[[nodiscard]] Json axes_json(const Buckets& buckets);

/// The values of a number, multiplied by `factor`: one for each bucket, or the lists `low`, `mean`
/// and `high` if any bucket has several values.
[[nodiscard]] Json numbers_json(const Buckets& buckets, const std::string& name, double factor);

/// The number of substeps of each core in each step, thinned while it is read: neighbouring steps
/// share a column and neighbouring cores a row, which has the mean over the cores that took part.
class SubstepMap {
 public:
  /// Limits of the map; `columns` must be even.
  SubstepMap(std::size_t columns, std::size_t rows) : most_columns_(columns), most_rows_(rows) {}

  /// Adds a step: the substeps of its first cores, and how many cores it had, if it had others that
  /// were idle.
  void add(const std::vector<std::int64_t>& substeps, std::int64_t cores = 0);

  /// Whether any two cores or steps have different numbers, so that there is something to see.
  [[nodiscard]] bool has_differences() const { return differs_; }
  /// Means indexed by row and column; empty where no core of the row took part.
  [[nodiscard]] std::vector<std::vector<std::optional<double>>> means() const;
  [[nodiscard]] std::int64_t steps_of_column() const { return width_; }
  [[nodiscard]] std::size_t cores_of_row() const { return (cores_ + most_rows_ - 1) / most_rows_; }
  [[nodiscard]] std::size_t cores() const { return cores_; }
  [[nodiscard]] std::int64_t steps() const { return steps_; }

 private:
  // The steps that share a column. Idle cores take no memory.
  struct Column {
    // Sums of the busy cores.
    std::vector<std::int64_t> substeps{};
    // Numbers of steps by how many cores they had.
    std::map<std::size_t, std::int64_t> steps{};
  };

  std::size_t most_columns_;
  std::size_t most_rows_;
  std::int64_t width_ = 1;
  std::int64_t steps_ = 0;
  std::size_t cores_ = 0;
  bool differs_ = false;
  std::optional<std::int64_t> first_{};
  std::vector<Column> columns_{};
};

}  // namespace rubato::page
