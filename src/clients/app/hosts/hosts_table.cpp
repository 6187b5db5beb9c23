// This file formats a RunStatus; run_status.cpp has already decided in which state the run and its
// hosts are. kRunStates and kHostStates have the names of the states in the JSON, and the text has
// a sentence for each; "-" stands for what is not known. Folders and refusals are texts of other
// hosts, so printable() replaces their control characters before a terminal gets them.

#include "hosts_table.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <rubato/base/parse.hpp>

#include "base/core/text/json.hpp"
#include "base/core/text/text_table.hpp"
#include "clients/app/line/output.hpp"
#include "runs/report/progress.hpp"

namespace rubato::app {

namespace {

using namespace hosts_detail;
using Json = nlohmann::ordered_json;

// A state of a run as --json names it, and as people read it.
struct RunStateText {
  RunState state;
  const char* name;
  // {0} hosts have joined, {1} are needed.
  const char* words;
};
constexpr std::array<RunStateText, 6> kRunStates{
    {{RunState::waits, "waits", "waits for hosts: {} of {} have joined"},
     {RunState::trains, "trains", "trains"},
     {RunState::regroups, "regroups",
      "between two groups: a host has joined, has left or is silent"},
     {RunState::deserted, "deserted", "no host is left, and the run has not ended"},
     {RunState::stopped, "stopped", "was stopped by a signal"},
     {RunState::complete, "complete", "complete"}}};
constexpr std::array<Choice<HostState>, 5> kHostStates{{{HostState::alive, "alive"},
                                                        {HostState::silent, "silent"},
                                                        {HostState::left, "left"},
                                                        {HostState::ended, "ended"},
                                                        {HostState::refused, "refused"}}};

constexpr std::string_view kUnknown = "-";

template <class T>
std::string shown(const std::optional<T>& value) {
  return value ? fmt::to_string(*value) : std::string(kUnknown);
}
std::string shown(const std::string& text) {
  return text.empty() ? std::string(kUnknown) : printable(text);
}

const RunStateText& text_of(RunState state) {
  return *std::ranges::find(kRunStates, state, &RunStateText::state);
}

std::string in_words(const HostStatus& host) {
  switch (host.state) {
    case HostState::alive:
      return host.rank ? "takes part" : "waits to take part";
    case HostState::silent:
      return host.silent_for ? fmt::format("silent for {} s", *host.silent_for) : "silent";
    case HostState::left:
      return "has left";
    case HostState::ended:
      return "its process has ended";
    case HostState::refused:
      break;
  }
  return "refused: " + printable(host.refusal);
}

// "host 1 (node0), into /data/spring".
std::string writer_text(const RunStatus& status) {
  const AnnouncedWriter& writer = *status.writer;
  const auto host = std::ranges::find(status.hosts, writer.host, &HostStatus::host);
  const bool is_known = host != status.hosts.end() && !host->machine.empty();
  return fmt::format("host {}{}, into {}", writer.host,
                     is_known ? fmt::format(" ({})", host->machine) : "", printable(writer.folder));
}

std::string head(const RunStatus& status, LineWidth width) {
  TextTable table({Column::left, Column::wrapped});
  table.add(
      {"run", fmt::format(fmt::runtime(text_of(status.state).words), status.there, status.wanted)});
  if (status.generation > 0) table.add({"group", fmt::to_string(status.generation)});
  if (status.first && status.least && status.most) {
    table.add({"hosts", fmt::format("begins with {}, continues with {} to {}", *status.first,
                                    *status.least, *status.most)});
  }
  if (status.cores) {
    table.add({"cores", fmt::format("{}, of all hosts together", *status.cores)});
  }
  if (status.steps) table.add({"last step", fmt::to_string(*status.steps)});
  if (status.writer) table.add({"written by", writer_text(status)});
  return table.text(width);
}

Json host_json(const HostStatus& host) {
  return {{"host", host.host},
          {"rank", or_null(host.rank)},
          {"state", choice_name(kHostStates, host.state)},
          {"machine", or_null(host.machine)},
          {"address", or_null(host.interface)},
          {"process", or_null(host.process)},
          {"weight", or_null(host.weight)},
          {"steps", or_null(host.steps)},
          {"here_for_seconds", or_null(host.here_for)},
          {"silent_for_seconds", or_null(host.silent_for)},
          {"refusal", or_null(host.refusal)}};
}

}  // namespace

std::string hosts_text(const RunStatus& status, LineWidth width) {
  TextTable table({Column::right, Column::right, Column::left, Column::left, Column::right,
                   Column::right, Column::right, Column::right, Column::left},
                  0, 2);
  table.add(
      {"host", "rank", "machine", "address", "process", "weight", "steps", "here for", "state"});
  for (const HostStatus& host : status.hosts) {
    table.add(
        {fmt::to_string(host.host), shown(host.rank), shown(host.machine), shown(host.interface),
         shown(host.process), shown(host.weight), shown(host.steps),
         host.here_for ? clock_time(static_cast<double>(*host.here_for)) : std::string(kUnknown),
         in_words(host)});
  }
  std::string text = head(status, width);
  if (!status.hosts.empty()) text += '\n' + table.text(width);
  return text;
}

std::string hosts_json(const RunStatus& status) {
  Json writer;
  if (status.writer) writer = {{"host", status.writer->host}, {"folder", status.writer->folder}};
  Json hosts = Json::array();
  for (const HostStatus& host : status.hosts) hosts.push_back(host_json(host));
  const bool waits = status.state == RunState::waits;
  const Json json{{"state", text_of(status.state).name},
                  {"group", status.generation},
                  {"there", status.there},
                  {"wanted", waits ? Json(status.wanted) : Json()},
                  {"first_hosts", or_null(status.first)},
                  {"min_hosts", or_null(status.least)},
                  {"max_hosts", or_null(status.most)},
                  {"cores", or_null(status.cores)},
                  {"last_step", or_null(status.steps)},
                  {"writer", std::move(writer)},
                  {"hosts", std::move(hosts)}};
  // json_text() also accepts folders and names of machines that are not valid UTF-8.
  return json_text(json, 2) + '\n';
}

}  // namespace rubato::app
