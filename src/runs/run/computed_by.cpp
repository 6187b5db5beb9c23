#include "computed_by.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <rubato/base/error.hpp>
#include <rubato/base/machine.hpp>
#include <rubato/base/state.hpp>
#include <rubato/runs/run_folder.hpp>

#include "base/core/file.hpp"
#include "base/core/text/text.hpp"

namespace rubato {

namespace {

namespace fs = std::filesystem;

// Reads the text of a summary.
ComputedBy facts_in(const std::string& text) {
  ComputedBy facts;
  const auto summary = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  for (const char* const part : {"kernels", "versions"}) {
    if (!summary.is_object() || !summary.contains(part) || !summary[part].is_object()) continue;
    for (const auto& [name, fact] : summary[part].items()) {
      if (fact.is_string()) facts[fmt::format("{}.{}", part, name)] = fact.get<std::string>();
    }
  }
  return facts;
}

// Reads what a KernelRecord has written: kernels_text() and the version of libtorch.
ComputedBy facts_in(const State& checkpoint) {
  ComputedBy facts;
  const State record = observer_state(checkpoint, KernelRecord::kName);
  const auto text = [&](std::string_view name) {
    return record.has_text(name) ? record.text(name) : std::string();
  };
  const std::string libtorch = text(KernelRecord::kLibtorch);
  if (!libtorch.empty()) facts["versions.torch"] = libtorch;
  const std::string kernels = text(KernelRecord::kInUse);
  for (std::string_view one : split_at(kernels, ',')) {
    one = trimmed(one, " ");
    const std::size_t blank = one.find(' ');
    if (blank == std::string_view::npos || one.substr(blank + 1) == "unknown") continue;
    facts["kernels." + lower_case(one.substr(0, blank))] = one.substr(blank + 1);
  }
  return facts;
}

// The checkpoint that was written next after a step, or else the newest.
std::optional<fs::path> checkpoint_at(const fs::path& run, std::int64_t step) {
  const auto newest_first = CheckpointFolder(run / RunFolder::kCheckpoints, 1).files();
  if (newest_first.empty()) return std::nullopt;
  const auto before = std::ranges::find_if(newest_first, [&](const fs::path& file) {
    return CheckpointFolder::steps_of(file).value_or(0) < step;
  });
  return before == newest_first.begin() ? newest_first.front() : *(before - 1);
}

}  // namespace

ComputedBy computed_by(const EngineFacts& engine, Kernels wanted) {
  RunSummary now;
  now.engine = engine;
  now.kernels_wanted = choice_name(kKernels, wanted);
  now.kernel_start = kernel_start();
  return facts_in(to_json(now));
}

ComputedBy computed_by(const fs::path& run, std::int64_t step) {
  const fs::path file = run / RunFolder::kSummary;
  ComputedBy last = is_there(file) ? facts_in(read_file(file)) : ComputedBy();
  const auto checkpoint = checkpoint_at(run, step);
  if (!checkpoint) return last;
  try {
    ComputedBy then = facts_in(read_state(*checkpoint));
    return last.empty() || !differing_facts(then, last).empty() ? then : last;
  } catch (const Error&) {
    // A damaged checkpoint tells nothing.
    return last;
  }
}

std::vector<NamedDifference> differing_facts(const ComputedBy& a, const ComputedBy& b) {
  std::vector<NamedDifference> differing;
  for (const auto& [name, text] : a) {
    const auto other = b.find(name);
    if (other == b.end() || other->second == text) continue;
    differing.push_back({.name = name, .texts = {text, other->second}});
  }
  return differing;
}

namespace {

std::string said_of_difference(std::string_view before, std::string_view now,
                               std::string_view advice) {
  return fmt::format(
      "the run was computed with {}\nand continues with {}: its bits may differ from those of a "
      "run that was not interrupted{}",
      before, now, advice);
}

}  // namespace

void KernelRecord::visit_state(StateVisitor& state, const Training& /*training*/) {
  const std::string kernels = state.bound_if_there(kInUse, kernels_);
  const std::string libtorch = state.bound_if_there(kLibtorch, libtorch_);
  if (kernels != kernels_) {
    difference_ = said_of_difference(kernels, kernels_, " (--kernels portable keeps them)");
  } else if (libtorch != libtorch_) {
    difference_ = said_of_difference("libtorch " + libtorch, "libtorch " + libtorch_, "");
  }
}

}  // namespace rubato
