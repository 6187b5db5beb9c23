#include <string>

#include <fmt/format.h>

#include <rubato/base/error.hpp>

#include "base/core/tables/field.hpp"
#include "importers.hpp"
#include "steps/trace/microseconds.hpp"

namespace rubato::detail {

namespace {

constexpr std::size_t kLongestName = 200;

}  // namespace

void ChangeList::add(std::int64_t microseconds, std::int64_t devices) {
  const double seconds = seconds_of(microseconds);
  if (!changes_.empty() && changes_.back().seconds == seconds) changes_.pop_back();
  if (!changes_.empty() && changes_.back().devices == devices) return;
  changes_.push_back({.seconds = seconds, .devices = devices});
}

void NodeEvents::at(std::int64_t milliseconds) {
  if (milliseconds > kMaxMilliseconds) {
    reader_.fail(fmt::format("an event at {} ms", milliseconds),
                 fmt::format("milliseconds from the start of the trace on, up to {} (ten years)",
                             kMaxMilliseconds));
  }
  if (milliseconds < milliseconds_) {
    reader_.fail(fmt::format("time goes backwards, from {} to {} ms", milliseconds_, milliseconds),
                 "events in the order of their time");
  }
  milliseconds_ = milliseconds;
}

void NodeEvents::add(std::string_view node) {
  if (node.empty() || node.size() > kLongestName) {
    reader_.fail(fmt::format("a name of {} characters", node.size()),
                 fmt::format("the name of a node, of 1 to {}", kLongestName));
  }
  if (nodes_.contains(node)) {
    reader_.fail(fmt::format("{} is added, but is there already", excerpt(node)),
                 "a node that is not there");
  }
  if (static_cast<std::int64_t>(nodes_.size()) == kMaxCores) {
    reader_.fail("there are too many nodes", fmt::format("up to {} at a time", kMaxCores));
  }
  nodes_.emplace(node);
  note();
}

void NodeEvents::remove(std::string_view node) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) {
    reader_.fail(fmt::format("{} is removed, but is not there", excerpt(node)),
                 "a node that was added and not removed");
  }
  nodes_.erase(found);
  note();
}

void NodeEvents::note() {
  changes_.add(milliseconds_ * 1000, static_cast<std::int64_t>(nodes_.size()));
}

AvailabilityParts NodeEvents::take(std::int64_t milliseconds) {
  const std::int64_t length = milliseconds_ + milliseconds;
  if (length == 0) {
    throw Error(
        fmt::format("{}: all events are at 0 ms, so it has no duration; accepted: a "
                    "later event, where it ends",
                    reader_.source()));
  }
  return {.changes = changes_.take(), .length = seconds_of(length * 1000)};
}

}  // namespace rubato::detail
