#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/base/index.hpp>
#include <rubato/base/parse.hpp>

namespace rubato {

/// The largest batch size and the largest number of cores that a trace may name. Beyond them lies a
/// typing error, and below them sums and products of a plan stay far within 64 bits.
inline constexpr std::int64_t kMaxBatchSize = std::int64_t{1} << 40;
inline constexpr std::int64_t kMaxCores = std::int64_t{1} << 20;

/// What one row of a trace says.
struct TraceStep {
  /// Samples in the global batch; 1 to kMaxBatchSize.
  std::int64_t batch_size = 0;
  /// Accelerator cores at this step, 1 to kMaxCores; empty where the trace does not say.
  std::optional<std::int64_t> cores{};
  /// How many of them each of several hosts has, by rank: at least 0 each, and `cores` together.
  /// Empty where the trace does not say.
  std::vector<std::int64_t> host_cores{};

  friend bool operator==(const TraceStep&, const TraceStep&) = default;
};

/// What is wrong with a step's numbers, and what would be accepted; empty where nothing is.
[[nodiscard]] std::string objection_to(const TraceStep& step);

/// What follows the last row of a trace.
enum class TraceEnd {
  error,  ///< nothing; needing more is the user's mistake
  hold,   ///< the last row, for ever
  cycle,  ///< the trace from its start again
  stop,   ///< nothing; training ends there
};
inline constexpr std::array<Choice<TraceEnd>, 4> kTraceEnds{{{TraceEnd::error, "error"},
                                                             {TraceEnd::hold, "hold"},
                                                             {TraceEnd::cycle, "cycle"},
                                                             {TraceEnd::stop, "stop"}}};

/// The global batch size, and optionally the number of cores, of every step. Never empty.
class Trace {
 public:
  /// `source` names the trace in messages ("trace.csv", "constant 128"); `scaling` is
  /// StepOfDeviceCount::scaling() where it is made of an availability. Throws Error, naming the
  /// step, when `steps` is empty or holds a value out of its range.
  Trace(std::vector<TraceStep> steps, TraceEnd end, std::string source, std::string scaling = {});

  /// Reads a CSV file (or pipe) with the header `step,batchsize` or `step,batchsize,cores` and
  /// steps counted from 0 without gap. A cores field is a number, or one for each of several hosts,
  /// such as "4+2+2"; an empty one is a step for which the trace does not say. A count that begins
  /// at 0 again, after two rows or more, is another trace appended to the first.
  ///
  /// What spreadsheets and pandas leave in it is accepted, as long as it can mean one thing only:
  /// a byte-order mark, any ends of lines, blanks and quotes around fields, semicolons or tabs in
  /// place of commas where the header has them, "Step" for "step", "8.0" for 8, and empty columns
  /// and rows behind all others. Anything else throws Error with file, line and what would be
  /// accepted.
  [[nodiscard]] static Trace read_csv(const std::filesystem::path& path,
                                      TraceEnd end = TraceEnd::error);
  /// The same for text at hand; `source` stands for the file's name in messages.
  [[nodiscard]] static Trace parse_csv(std::string_view text, std::string source,
                                       TraceEnd end = TraceEnd::error);
  /// The same batch size at every step, without end. Throws Error when it is out of range.
  [[nodiscard]] static Trace constant(std::int64_t batch_size);
  /// The built-in elastic trace: batch sizes, all multiples of 32 from 32 to 512, that rise and
  /// fall as a spot market would make them; it cycles. With minibatches of 32 on 8 cores some steps
  /// leave cores idle and some give them uneven numbers of substeps.
  [[nodiscard]] static Trace elastic();

  /// The row of `step`, continued beyond the last row as end() says; empty when nothing follows.
  /// Requires step >= 0.
  [[nodiscard]] std::optional<TraceStep> at(StepIndex step) const;

  /// Rows in the trace itself, without what follows them.
  [[nodiscard]] std::int64_t length() const { return static_cast<std::int64_t>(steps_.size()); }
  [[nodiscard]] const std::vector<TraceStep>& steps() const { return steps_; }
  [[nodiscard]] TraceEnd end() const { return end_; }
  /// Whether at() answers for every step, however late.
  [[nodiscard]] bool endless() const { return end_ == TraceEnd::hold || end_ == TraceEnd::cycle; }
  [[nodiscard]] const std::string& source() const { return source_; }
  [[nodiscard]] const std::string& scaling() const { return scaling_; }
  /// Where a step stands, for messages: "trace.csv:17" for a trace read from a file (line numbers
  /// from 1), "constant 128, step 16" (from 1, too) for another. Of a step beyond the last row of a
  /// file it names the row that it repeats, or the line behind the last row when none follows.
  [[nodiscard]] std::string where(StepIndex step) const;

  /// Writes the rows as the CSV that read_csv() reads, with a cores column if any row has cores.
  [[nodiscard]] std::string to_csv() const;

 private:
  // The row that stands for `step`, or empty when nothing follows the last one.
  [[nodiscard]] std::optional<std::size_t> row_of(StepIndex step) const;

  std::vector<TraceStep> steps_;
  TraceEnd end_;
  std::string source_;
  std::string scaling_;
  bool from_csv_ = false;
};

}  // namespace rubato
