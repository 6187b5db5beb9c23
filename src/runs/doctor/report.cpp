#include <algorithm>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/core/text/json.hpp"
#include "base/core/text/text_table.hpp"
#include "findings.hpp"

namespace rubato::doctor {

namespace {

using OrderedJson = nlohmann::ordered_json;

std::int64_t count(std::span<const Finding> findings, Health health) {
  return std::count_if(findings.begin(), findings.end(),
                       [&](const Finding& finding) { return finding.health == health; });
}

std::string counted(std::int64_t number, std::string_view noun) {
  return fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s");
}

OrderedJson facts_json(const Facts& facts) {
  OrderedJson json{{"processor", facts.processor},
                   {"instruction_set", choice_name(kInstructionSets, facts.instruction_set)},
                   {"cpus_online", facts.online},
                   {"cores", facts.cores},
                   {"cpus_allowed", facts.cpus.allowed},
                   {"cpu_quota", or_null(facts.cpus.quota)},
                   {"threads", facts.threads},
                   {"load", or_null(facts.load)},
                   {"huge_pages", facts.huge_pages},
                   {"governor", facts.governor}};
  if (facts.training) {
    const TrainingProcess& training = *facts.training;
    json["blas"] = training.blas;
    json["blas_file"] = training.blas_file;
    json["gflops"] = training.gflops;
    json["openblas"] = training.openblas_core;
    json["openblas_by_itself"] = training.openblas_by_itself;
    json["aten"] = training.aten;
    json["onednn"] = training.onednn;
    json["malloc_file"] = training.malloc_file;
    for (const Version& version : training.versions) {
      json["versions"][version.library] = {{"built", version.built}, {"runs", version.runs}};
    }
  }
  return json;
}

}  // namespace

bool is_well(std::span<const Finding> findings) {
  return count(findings, Health::problem) == 0;
}

std::string report_text(std::span<const Finding> findings, LineWidth width) {
  TextTable table({Column::left, Column::left, Column::wrapped});
  for (const Finding& finding : findings) {
    table.add({std::string(choice_name(kHealths, finding.health)), finding.subject, finding.what});
    if (!finding.advice.empty()) table.add({"", "", "to do: " + finding.advice});
  }
  const std::int64_t problems = count(findings, Health::problem);
  const std::int64_t notes = count(findings, Health::note);
  return table.text(width) +
         fmt::format("\n{}, {}\n", problems == 0 ? "all is well" : counted(problems, "problem"),
                     counted(notes, "note"));
}

std::string report_json(const Facts& facts, std::span<const Finding> findings) {
  OrderedJson list = OrderedJson::array();
  for (const Finding& finding : findings) {
    list.push_back({{"subject", finding.subject},
                    {"health", choice_name(kHealths, finding.health)},
                    {"what", finding.what},
                    {"advice", or_null(finding.advice)}});
  }
  return json_text(
             OrderedJson{
                 {"well", is_well(findings)}, {"findings", list}, {"facts", facts_json(facts)}},
             2) +
         "\n";
}

}  // namespace rubato::doctor
