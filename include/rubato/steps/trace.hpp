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

/// The largest batch size and the largest number of cores in a trace. Larger ones indicate a typing
/// error; with these limits sums and products in a plan stay far within 64 bits.
inline constexpr std::int64_t kMaxBatchSize = std::int64_t{1} << 40;
inline constexpr std::int64_t kMaxCores = std::int64_t{1} << 20;

/// A row of a trace.
struct TraceStep {
  /// Samples in the global batch; 1 to kMaxBatchSize.
  std::int64_t batch_size = 0;
  /// Accelerator cores at this step, 1 to kMaxCores; empty if the trace gives none.
  std::optional<std::int64_t> cores{};
  /// The cores of each of several hosts, by rank: at least 0 each, and `cores` in total. Empty if
  /// the trace gives none.
  std::vector<std::int64_t> host_cores{};

  friend bool operator==(const TraceStep&, const TraceStep&) = default;
};

/// The error in a step's numbers, and what would be accepted; empty if there is none.
[[nodiscard]] std::string objection_to(const TraceStep& step);

/// The continuation of a trace after its last row.
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
  /// StepOfDeviceCount::scaling() if it is made from an availability. Throws Error, naming the
  /// step, if `steps` is empty or holds a value out of range.
  Trace(std::vector<TraceStep> steps, TraceEnd end, std::string source, std::string scaling = {});

  /// Reads a CSV file (or pipe) with the header `step,batchsize` or `step,batchsize,cores` and
  /// steps counted from 0 without gaps. A cores field is a number, or one for each of several
  /// hosts, such as "4+2+2"; it is empty for a step without given cores. If the count begins at 0
  /// again, after at least two rows, another trace has been appended to the first.
  ///
  /// The traces of spreadsheets and pandas are accepted as long as they are unambiguous: a byte
  /// order mark, any line ends, blanks and quotes around fields, semicolons or tabs instead of
  /// commas if the header has them, "Step" for "step", "8.0" for 8, and empty columns and rows
  /// after all others. Anything else throws Error with file, line and what would be accepted.
  [[nodiscard]] static Trace read_csv(const std::filesystem::path& path,
                                      TraceEnd end = TraceEnd::error);
  /// Like read_csv(), for text in memory; `source` replaces the file's name in messages.
  [[nodiscard]] static Trace parse_csv(std::string_view text, std::string source,
                                       TraceEnd end = TraceEnd::error);
  /// The same batch size at every step, without end. Throws Error if it is out of range.
  [[nodiscard]] static Trace constant(std::int64_t batch_size);
  /// The built-in elastic trace: batch sizes, all multiples of 32 from 32 to 512, that rise and
  /// fall as on a spot market; it cycles. With minibatches of 32 on 8 cores some steps leave cores
  /// idle and some give them unequal numbers of substeps.
  [[nodiscard]] static Trace elastic();

  /// The row of `step`, continued beyond the last row according to end(); empty if nothing follows.
  /// Requires step >= 0.
  [[nodiscard]] std::optional<TraceStep> at(StepIndex step) const;

  /// Rows in the trace itself, without its continuation.
  [[nodiscard]] std::int64_t length() const { return static_cast<std::int64_t>(steps_.size()); }
  [[nodiscard]] const std::vector<TraceStep>& steps() const { return steps_; }
  [[nodiscard]] TraceEnd end() const { return end_; }
  /// The same rows, after which something else follows.
  [[nodiscard]] Trace with_end(TraceEnd end) const {
    Trace other = *this;
    other.end_ = end;
    return other;
  }
  /// True if at() has a result for every step, however late.
  [[nodiscard]] bool endless() const { return end_ == TraceEnd::hold || end_ == TraceEnd::cycle; }
  [[nodiscard]] const std::string& source() const { return source_; }
  [[nodiscard]] const std::string& scaling() const { return scaling_; }
  /// The place of a step, for messages: "trace.csv:17" in a trace read from a file (lines count
  /// from 1), "constant 128, step 16" (also from 1) in others. For a step beyond the last row of a
  /// file it is the row that it repeats, or the line after the last row if nothing follows.
  [[nodiscard]] std::string where(StepIndex step) const;

  /// The rows as the CSV that read_csv() reads, with a cores column if any row has cores.
  [[nodiscard]] std::string to_csv() const;

 private:
  // Index of the row for `step`; empty if nothing follows the last one.
  [[nodiscard]] std::optional<std::size_t> row_of(StepIndex step) const;

  std::vector<TraceStep> steps_;
  TraceEnd end_;
  std::string source_;
  std::string scaling_;
  bool from_csv_ = false;
};

}  // namespace rubato
