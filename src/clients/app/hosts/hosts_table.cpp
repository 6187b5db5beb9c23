// This file formats a RunStatus; run_status.cpp has already decided in which state the run and its
// hosts are. kRunStates and kHostStates have the names of the states in the JSON, and the text has
// a sentence for each; "-" stands for what is not known. Folders and refusals are texts of other
// hosts, so printable() replaces their control characters before a terminal gets them.

#include "hosts_table.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include <rubato/base/parse.hpp>

#include "base/core/text/json.hpp"
#include "base/core/text/output_fields.hpp"
#include "base/core/text/text_table.hpp"
#include "clients/app/line/output.hpp"
#include "runs/report/progress.hpp"

namespace rubato::app {

namespace {

using namespace hosts_detail;

// A state of a run as --json names it, and as people read it.
struct RunStateText {
  RunState value;
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

const RunStateText& text_of(RunState state) {
  return *std::ranges::find(kRunStates, state, &RunStateText::value);
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

OutputFields<HostStatus> host_fields() {
  return {
      {"host", "number of the host", &HostStatus::host, OutputColumn{"host"}},
      {"rank", "rank in the group; null where it is in none", &HostStatus::rank,
       OutputColumn{"rank"}},
      {"state", "state of the host", &HostStatus::state, form_of_choice(kHostStates)},
      {"machine", "name of its machine", text_or_none(&HostStatus::machine),
       OutputColumn{"machine", Column::left}},
      {"address", "by which the others reach it", text_or_none(&HostStatus::interface),
       OutputColumn{"address", Column::left}},
      {"process", "identifier of its process", &HostStatus::process, OutputColumn{"process"}},
      {"weight", "its share of the work", &HostStatus::weight,
       OutputColumn{"weight", Column::right, [](double weight) { return fmt::to_string(weight); }}},
      {"steps", "steps that it has done", &HostStatus::steps, OutputColumn{"steps"}},
      {"here_for_seconds", "since it came", &HostStatus::here_for,
       OutputColumn{"here for", Column::right, clock_time}},
      {"silent_for_seconds", "since it was heard of last, where that is long ago",
       &HostStatus::silent_for},
      {"refusal", "why it was refused", text_or_none(&HostStatus::refusal)},
      {"state", Column::left, in_words}};
}

}  // namespace

JsonForm<RunStatus> hosts_form() {
  return form_of_object<RunStatus>(
      {{"state", "state of the run", &RunStatus::state, form_of_choice(kRunStates)},
       {"group", "number of the group of hosts; 0 before the first", &RunStatus::generation},
       {"there", "hosts that are there", &RunStatus::there},
       {"wanted", "hosts that it waits for; null where it does not wait",
        [](const RunStatus& status) {
          const bool waits = status.state == RunState::waits;
          return waits ? std::optional(status.wanted) : std::nullopt;
        }},
       {"first_hosts", "hosts that it begins with", &RunStatus::first},
       {"min_hosts", "hosts that it goes on with at least", &RunStatus::least},
       {"max_hosts", "hosts that it takes at most", &RunStatus::most},
       {"cores", "cores of all hosts together", &RunStatus::cores},
       {"last_step", "steps that are done", &RunStatus::steps},
       {"writer", "who writes the run folder; null where nobody does", &RunStatus::writer,
        form_of_object<AnnouncedWriter>(
            {{"host", "number of the host", &AnnouncedWriter::host},
             {"folder", "as it calls the folder", &AnnouncedWriter::folder}})},
       {"hosts", "all that came, by number", &RunStatus::hosts, form_of_object(host_fields())}});
}

std::string hosts_text(const RunStatus& status, LineWidth width) {
  std::string text = head(status, width);
  if (!status.hosts.empty()) {
    text += '\n' + table_of<HostStatus>(host_fields(), status.hosts, 2).text(width);
  }
  return text;
}

std::string hosts_json(const RunStatus& status) {
  // json_text() also accepts folders and names of machines that are not valid UTF-8.
  return json_text(hosts_form().write(status), 2) + '\n';
}

}  // namespace rubato::app
