#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/core/of_part.hpp"
#include "base/core/text/json.hpp"
#include "base/core/text/output_fields.hpp"
#include "base/core/text/text_table.hpp"
#include "findings.hpp"

namespace rubato::doctor {

namespace {

std::int64_t count(std::span<const Finding> findings, Health health) {
  return std::count_if(findings.begin(), findings.end(),
                       [&](const Finding& finding) { return finding.health == health; });
}

std::string counted(std::int64_t number, std::string_view noun) {
  return fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s");
}

std::optional<ByName<Version>> versions_of(const Facts& facts) {
  if (!facts.training || facts.training->versions.empty()) return std::nullopt;
  ByName<Version> versions;
  for (const Version& one : facts.training->versions) versions.emplace_back(one.library, one);
  return versions;
}

JsonForm<Facts> facts_form() {
  // They are left out without a process that trains.
  const auto of_training = [](auto member) {
    return [member](const Facts& facts) {
      return facts.training ? std::optional((*facts.training).*member) : std::nullopt;
    };
  };
  return form_of_object<Facts>(
      {{"processor", "its name", &Facts::processor},
       {"instruction_set", "the best that rubato's kernels can use", &Facts::instruction_set,
        form_of_choice(kInstructionSets)},
       {"cpus_online", "logical CPUs of the machine", &Facts::online},
       {"cores", "physical cores; 0 where nobody knows", &Facts::cores},
       {"cpus_allowed", "logical CPUs that the process may use",
        of_part(&Facts::cpus, &Cpus::allowed)},
       {"cpu_quota", "CPUs that its control group grants; null without a limit",
        of_part(&Facts::cpus, &Cpus::quota)},
       {"threads", "the default of --threads", &Facts::threads},
       {"load",
        "threads of the machine that wanted a CPU, over the last minute; null where it does not "
        "say",
        &Facts::load},
       {"huge_pages", "the setting of transparent huge pages", &Facts::huge_pages},
       {"governor", "governor of the frequency", &Facts::governor},
       {"blas?", "what multiplies matrices", of_training(&TrainingProcess::blas)},
       {"blas_file?", "the library of that", of_training(&TrainingProcess::blas_file)},
       {"gflops?", "what one thread reached", of_training(&TrainingProcess::gflops)},
       {"openblas?", "the kernels of OpenBLAS", of_training(&TrainingProcess::openblas_core)},
       {"openblas_by_itself?", "those that it would choose",
        of_training(&TrainingProcess::openblas_by_itself)},
       {"aten?", "the kernels of libtorch", of_training(&TrainingProcess::aten)},
       {"onednn?", "the kernels of oneDNN", of_training(&TrainingProcess::onednn)},
       {"malloc_file?", "the library whose malloc is in use",
        of_training(&TrainingProcess::malloc_file)},
       {"versions?", "versions of libraries, by name", versions_of,
        form_of_object<Version>({{"built", "what rubato was compiled with", &Version::built},
                                 {"runs", "what it runs with", &Version::runs}})}});
}

// All that --json prints.
struct Report {
  std::vector<Finding> findings{};
  Facts facts{};
};
JsonForm<Report> report_form() {
  return form_of_object<Report>(
      {{"well", "whether nothing is a problem",
        [](const Report& report) { return is_well(report.findings); }},
       {"findings", "in the order in which they are printed", &Report::findings,
        form_of_object<Finding>(
            {{"subject", "what it is about", &Finding::subject},
             {"health", "how grave it is", &Finding::health, form_of_choice(kHealths)},
             {"what", "what was found", &Finding::what},
             {"advice", "what to do; null where there is nothing to do",
              text_or_none(&Finding::advice)}})},
       {"facts", "what the findings are drawn from", &Report::facts, facts_form()}});
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
  const Report report{{findings.begin(), findings.end()}, facts};
  return json_text(report_form().write(report), 2) + "\n";
}

nlohmann::ordered_json report_schema() {
  return report_form().schema;
}

}  // namespace rubato::doctor
