// The method is that of docs/adr/0081-fit-of-lives.md: the lives are divided into two halves, all
// possible laws are fitted to the first by maximum likelihood (fit_law()), and the one with the
// least AIC is tested by the second (test_law()); each half needs at least ten losses. An
// availability does not tell which machine was lost; there, the machine-hours between two losses
// take the place of lives, and only the exponential law is possible. A refuted law is still
// printed, and the report says so. The generator is checked like any other and is the last line of
// the report, so that --trace takes it.

#include "trace_fit.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <rubato/base/parse.hpp>
#include <rubato/base/spec.hpp>
#include <rubato/steps/availability.hpp>

#include "base/core/file.hpp"
#include "base/core/seconds.hpp"
#include "base/core/text/json.hpp"
#include "base/core/text/text.hpp"
#include "base/core/text/text_table.hpp"
#include "base/core/throw_error.hpp"
#include "clients/app/line/command_line.hpp"
#include "clients/app/line/drawing.hpp"
#include "clients/app/line/number_text.hpp"
#include "clients/app/line/output.hpp"
#include "counted_progress.hpp"
#include "runs/config/values/trace_source.hpp"
#include "runs/recorded/plot.hpp"
#include "steps/trace/fit/fit_law.hpp"
#include "steps/trace/fit/fit_machines.hpp"

namespace rubato::app {

namespace {

// The lives that the law is tested by; it is fitted to the others.
enum class TestedBy { every_other, last_half };
constexpr std::array<Choice<TestedBy>, 2> kTestedBy{
    {{TestedBy::every_other, "every-other"}, {TestedBy::last_half, "last-half"}}};

constexpr double kLongestHours = kMaxAvailabilitySeconds / kSecondsOfHour;
constexpr RealRange kHours{0, kLongestHours, false, true, "a number above 0 and up to 87660"};
constexpr std::string_view kTerminal = "terminal";

struct FitOptions {
  std::string operand;
  std::optional<AvailabilityFormat> format;
  double deadline = std::numeric_limits<double>::infinity();
  std::optional<LifeLawKind> law;
  TestedBy tested_by = TestedBy::every_other;
  std::int64_t resamples = 199;
  std::optional<std::int64_t> machine;
  std::optional<double> hours;
  std::int64_t seed = 0;
  std::string plot;
  std::string out;
  bool json = false;
};

FitOptions read_options(std::span<const std::string> arguments, CommandLine& line) {
  FitOptions options;
  line.operands(OperandCount::one, "FILE",
                "lives of machines as JSON lines or events, or an availability",
                [&](const std::string& text) { options.operand = text; });
  line.choice("format", "the format of a file with devices over time (docs/traces.md)",
              "recognised", "format", kAvailabilityFormats, options.format);
  line.group("Fit");
  line.real("deadline", "HOURS", "the age at which the provider ends every machine", "none",
            options.deadline, kHours);
  line.choice("law", "the law of the lifetimes", "the one with the least AIC", "law", kLifeLaws,
              options.law);
  line.choice("tested-by", "the half of the lives that the fit does not see", "every-other", "half",
              kTestedBy, options.tested_by);
  line.whole("resamples", "N", "resamples of the bootstrap", "199", options.resamples, 19, 99999);
  line.group("Generator");
  line.option("machine", "N", "devices in each machine", "1, or by the availability",
              [&](const std::string& text) { options.machine = parse_whole(text, 1, kMaxCores); });
  line.option("hours", "HOURS", "the hours that are generated, 8760 for a year", "as the file",
              [&](const std::string& text) { options.hours = parse_real(text, kHours); });
  line.whole("seed", "N", "the seed of the generator, and of the resamples", "0", options.seed, 0,
             std::numeric_limits<std::int64_t>::max());
  line.group("Output");
  line.option("plot", "terminal|FILE.svg|FILE.png|FILE.pdf",
              "plot the law and the lives that it is tested by", "", [&](const std::string& text) {
                if (text != kTerminal) static_cast<void>(picture_type(text));
                options.plot = text;
              });
  line.text("out", "FILE", "write the generator to FILE, too", "", options.out);
  line.flag("json", "print the fit as JSON", options.json);
  line.footer(
      "Examples:\n"
      "  rubato trace fit lives.jsonl --deadline 24 --plot terminal\n"
      "  rubato trace fit events.csv --machine 8 --hours 8760 --out year.txt\n"
      "  rubato simulate --trace \"$(cat year.txt)\" --cluster substep=0.1");
  line.parse(arguments);
  line.refuse_idle("json", options.json && options.plot == kTerminal,
                   "a plot on the terminal is not JSON", "with --plot FILE");
  return options;
}

// The machines of a file.
struct Machines {
  // The lives of machines or, of an availability, the hours of all machines between two losses.
  std::vector<MachineLife> lives;
  std::optional<MachineCounts> counts;
  // Devices in each machine.
  std::int64_t machine = 1;
  bool is_availability = false;
};

Machines read(const FitOptions& options, const CommandLine& line) {
  const TraceFile file = parse_trace_file(options.operand);
  auto loaded = read_machines(file.path, options.format, file.columns);
  if (auto* lives = std::get_if<std::vector<MachineLife>>(&loaded)) {
    auto counts = counts_of(*lives);
    return {.lives = std::move(*lives), .counts = counts, .machine = options.machine.value_or(1)};
  }
  constexpr std::string_view kWhy = "an availability does not tell which machine was lost";
  constexpr std::string_view kAccepted = "lives of machines, as JSON lines or events";
  for (const char* option : {"deadline", "law"}) {
    line.refuse_idle(option, line.given().contains(option), kWhy, kAccepted);
  }
  const auto& availability = std::get<Availability>(loaded);
  if (summary_of(availability).most == 0) {
    throw_error("{}: there is never a device; accepted: one that has some", availability.source());
  }
  MachineCounts counts = counts_of(availability);
  line.refuse_idle("machine", options.machine && *options.machine != counts.machine,
                   fmt::format("all numbers of devices are multiples of {}", counts.machine),
                   "that number");
  return {.lives = hours_between_losses(availability, counts),
          .counts = counts,
          .machine = counts.machine,
          .is_availability = true};
}

// The lives that the provider ended before the deadline, and those that reached it.
std::int64_t preempted_in(const std::vector<MachineLife>& lives, double deadline) {
  return std::ranges::count_if(lives_until(deadline, lives), &MachineLife::preempted);
}
std::int64_t ended_at(double deadline, const std::vector<MachineLife>& lives) {
  return std::ranges::count_if(lives,
                               [&](const MachineLife& life) { return life.hours >= deadline; });
}

struct Halves {
  std::vector<MachineLife> fitted_to;
  std::vector<MachineLife> unseen;
};

Halves halves_of(const Machines& machines, const FitOptions& options) {
  constexpr std::int64_t kFewest = 10;
  Halves halves;
  for (std::size_t i = 0; i < machines.lives.size(); ++i) {
    const bool unseen =
        options.tested_by == TestedBy::every_other ? i % 2 == 1 : 2 * i >= machines.lives.size();
    (unseen ? halves.unseen : halves.fitted_to).push_back(machines.lives[i]);
  }
  for (const auto& half : {halves.fitted_to, halves.unseen}) {
    const std::int64_t preempted = preempted_in(half, options.deadline);
    if (preempted >= kFewest) continue;
    throw_error("{}: {} losses in half of it{}; accepted: at least {}", options.operand, preempted,
                std::isfinite(options.deadline) ? " before the deadline" : "", kFewest);
  }
  return halves;
}

// The laws that are possible, each fitted.
std::vector<FittedLaw> fits_of(const Halves& halves, const Machines& machines,
                               const FitOptions& options) {
  std::vector<FittedLaw> fits;
  for (const auto& [kind, name] : kLifeLaws) {
    const bool possible = kind == LifeLawKind::exponential ||
                          (!machines.is_availability &&
                           (kind != LifeLawKind::bathtub || std::isfinite(options.deadline)));
    if (possible) fits.push_back(fit_law(kind, options.deadline, halves.fitted_to));
  }
  return fits;
}

FittedLaw chosen_of(const std::vector<FittedLaw>& fits, const FitOptions& options) {
  if (!options.law) return std::ranges::min(fits, {}, &FittedLaw::aic);
  const auto found =
      std::ranges::find(fits, *options.law, [](const FittedLaw& fit) { return fit.law.kind; });
  if (found != fits.end()) return *found;
  throw_error("--law: the bathtub has a deadline; accepted: with --deadline HOURS");
}

std::string lives_text(const Machines& machines, double deadline) {
  const std::string preempted = grouped(preempted_in(machines.lives, deadline));
  if (machines.is_availability) {
    return fmt::format("{}; the machine-hours between them take the place of lives", preempted);
  }
  std::string text =
      fmt::format("{}, {} preempted", grouped(std::ssize(machines.lives)), preempted);
  if (!std::isfinite(deadline)) return text;
  return text + fmt::format(" before and {} at the deadline of {:g} h",
                            grouped(ended_at(deadline, machines.lives)), deadline);
}

std::string counts_text(const Machines& machines) {
  const auto& counts = machines.counts;
  if (!counts) return "unknown over time: most, start and wait keep their defaults";
  std::string text = fmt::format("up to {}, {:.1f} on average over {:.1f} h", grouped(counts->most),
                                 counts->mean, counts->hours);
  if (machines.machine > 1) text += fmt::format(", of {} devices each", machines.machine);
  const std::int64_t uncounted =
      std::ranges::count_if(machines.lives, [](const MachineLife& life) { return !life.begin; });
  if (uncounted > 0 && !machines.is_availability) {
    text += fmt::format(" ({} lives without a beginning do not count)", grouped(uncounted));
  }
  return text;
}

// The parameters behind the name: "life=3.2,shape=0.5".
std::string parameters_of(const LifeLaw& law) {
  const std::string text = law.text();
  return text.substr(text.find(',') + 1, text.find(",deadline") - text.find(',') - 1);
}

std::string laws_text(const std::vector<FittedLaw>& fits, const FittedLaw& chosen) {
  TextTable table({Column::left, Column::left, Column::right, Column::right, Column::left});
  table.add({"law", "parameters", "log-likelihood", "AIC", ""});
  for (const FittedLaw& fit : fits) {
    table.add({std::string(choice_name(kLifeLaws, fit.law.kind)), parameters_of(fit.law),
               fmt::format("{:.2f}", fit.log_likelihood), fmt::format("{:.2f}", fit.aic()),
               fit.law.kind == chosen.law.kind ? "taken" : ""});
  }
  return table.text(output_width());
}

std::string report(const Machines& machines, const Halves& halves, const FitOptions& options) {
  TextTable table({Column::left, Column::wrapped});
  table.add(
      {machines.is_availability ? "losses" : "lives", lives_text(machines, options.deadline)});
  table.add({"machines", counts_text(machines)});
  if (machines.counts && machines.counts->wait) {
    table.add({"arrivals", fmt::format("a missing machine comes after {:.3g} h on average",
                                       *machines.counts->wait)});
  }
  if (machines.counts && machines.counts->most_lost > 0) {
    table.add(
        {"lost", fmt::format("up to {} at once, {:.2f} on average",
                             grouped(machines.counts->most_lost), machines.counts->mean_lost)});
  }
  table.add(
      {"fitted to",
       fmt::format("{}, tested by the other {} ({})", grouped(std::ssize(halves.fitted_to)),
                   grouped(std::ssize(halves.unseen)), choice_name(kTestedBy, options.tested_by))});
  return table.text(output_width());
}

// A hint at a deadline that was not given: many preemptions at about the greatest age.
std::string hint_at_deadline(const std::vector<MachineLife>& lives, double deadline) {
  constexpr double kNearly = 0.95;
  constexpr double kMany = 0.2;
  const double longest = std::ranges::max(lives, {}, &MachineLife::hours).hours;
  const auto preempted_from = [&](double hours) {
    return std::ranges::count_if(
        lives, [&](const MachineLife& life) { return life.preempted && life.hours >= hours; });
  };
  const std::int64_t last = preempted_from(kNearly * longest);
  const std::int64_t all = preempted_from(0);
  if (std::isfinite(deadline) || static_cast<double>(last) < kMany * static_cast<double>(all)) {
    return {};
  }
  return fmt::format(
      "{} of {} preempted lives end between {:.1f} and {:.1f} h: if the provider ends all machines "
      "at some age, --deadline says so.\n",
      grouped(last), grouped(all), kNearly * longest, longest);
}

LawTest tested(const LifeLaw& law, const Halves& halves, const FitOptions& options) {
  CountedProgress progress("resampled", options.resamples);
  return test_law(law, halves.fitted_to, halves.unseen, options.resamples, options.seed,
                  [&](std::int64_t done) { progress.show(done); });
}

bool is_refuted(const LawTest& test) {
  constexpr double kLevel = 0.05;
  return test.p <= kLevel;
}

std::string test_text(const LawTest& test, std::int64_t resamples) {
  return fmt::format(
      "The distance to the lives not seen (Kolmogorov-Smirnov) is {:.4f}; p = {:.3g} by {} "
      "resamples: "
      "{}.\n",
      test.distance, test.p, resamples, is_refuted(test) ? "refuted" : "not refuted");
}

// A step of a distribution is drawn by two points.
void plot(const LifeLaw& law, const Halves& halves, const std::string& where) {
  constexpr int kPoints = 200;
  const std::vector<MachineLife> lives = lives_until(law.deadline, halves.unseen);
  const double end = std::ranges::max(lives, {}, &MachineLife::hours).hours;
  Plot::Curve seen{.name = "lives not seen", .points = {{0, 0}}};
  for (const EndedShare& point : ended_shares(lives)) {
    seen.points.push_back({point.hours, seen.points.back().y});
    seen.points.push_back({point.hours, 100 * point.share});
  }
  seen.points.push_back({end, seen.points.back().y});
  Plot::Curve fitted{.name = std::string(choice_name(kLifeLaws, law.kind))};
  for (int i = 0; i <= kPoints; ++i) {
    const double hours = end * i / kPoints;
    fitted.points.push_back({hours, 100 * law.ended_by(hours)});
  }
  const bool terminal = where == kTerminal;
  const std::string drawn = drawn_by_gnuplot(gnuplot_script(
      {.across = "hours", .up = "machines preempted by then, %", .curves = {seen, fitted}},
      terminal ? terminal_form() : PlotForm{.type = picture_type(where)}));
  if (terminal) {
    print_drawing(drawn);
  } else {
    write_file(where, drawn);
  }
}

std::string generator_of(const LifeLaw& law, const Machines& machines, const FitOptions& options) {
  constexpr double kDay = 24;
  const double recorded = machines.counts ? std::ceil(machines.counts->hours) : kDay;
  const double hours = options.hours.value_or(std::min(recorded, kLongestHours));
  std::string text =
      machines.is_availability
          ? spot_text(law, *machines.counts, hours, options.seed)
          : machines_text(law, machines.counts, machines.machine, hours, options.seed);
  // A mistake in it is told before anybody trains by it.
  require_generator(text);
  return text;
}

nlohmann::ordered_json json_of(const std::optional<MachineCounts>& counts) {
  if (!counts) return nullptr;
  return {{"hours", counts->hours},        {"start", counts->start},
          {"most", counts->most},          {"mean", counts->mean},
          {"wait", or_null(counts->wait)}, {"most_lost", counts->most_lost},
          {"mean_lost", counts->mean_lost}};
}

nlohmann::ordered_json json_of(const FittedLaw& fit) {
  const std::string text = parameters_of(fit.law);
  nlohmann::ordered_json parameters;
  for (const std::string_view parameter : split_at(text, ',')) {
    const std::size_t equals = parameter.find('=');
    parameters[std::string(parameter.substr(0, equals))] =
        parse_real(parameter.substr(equals + 1), kAnyReal);
  }
  return {{"law", choice_name(kLifeLaws, fit.law.kind)},
          {"parameters", parameters},
          {"log_likelihood", fit.log_likelihood},
          {"aic", fit.aic()}};
}

// The results once a law is chosen and tested.
struct Fit {
  std::vector<FittedLaw> laws;
  FittedLaw chosen{};
  LawTest test{};
  std::string generator{};
};

std::string json_of(const Machines& machines, const Halves& halves, const Fit& fit,
                    const FitOptions& options) {
  const bool has_deadline = std::isfinite(options.deadline);
  auto laws = nlohmann::ordered_json::array();
  for (const FittedLaw& law : fit.laws) laws.push_back(json_of(law));
  const nlohmann::ordered_json json{
      {"source", options.operand},
      {"kind", machines.is_availability ? "availability" : "lives"},
      {"lives", machines.lives.size()},
      {"preempted", preempted_in(machines.lives, options.deadline)},
      {"deadline", or_null(has_deadline ? std::optional(options.deadline) : std::nullopt)},
      {"at_deadline", ended_at(options.deadline, machines.lives)},
      {"machine", machines.machine},
      {"machines", json_of(machines.counts)},
      {"fitted_to", halves.fitted_to.size()},
      {"unseen", halves.unseen.size()},
      {"tested_by", choice_name(kTestedBy, options.tested_by)},
      {"laws", laws},
      {"law", choice_name(kLifeLaws, fit.chosen.law.kind)},
      {"distance", fit.test.distance},
      {"p", fit.test.p},
      {"resamples", options.resamples},
      {"refuted", is_refuted(fit.test)},
      {"generator", fit.generator}};
  return json_text(json, 2) + '\n';
}

}  // namespace

int fit_trace(std::span<const std::string> arguments) {
  CommandLine line(
      "rubato trace fit",
      "Makes a generator from recorded lives of machines: fits laws of their lifetimes "
      "to half of the lives by maximum likelihood, takes the one with the least AIC, "
      "and tests it by the other half. --trace takes the last line that it prints.");
  const FitOptions options = read_options(arguments, line);
  const Machines machines = read(options, line);
  const Halves halves = halves_of(machines, options);
  Fit fit{.laws = fits_of(halves, machines, options)};
  fit.chosen = chosen_of(fit.laws, options);
  // The test is of the law that the generator has, to its last digit.
  const LifeLaw law = fit.chosen.law.rounded();
  if (!options.json) {
    print_out(fmt::format("{}\n{}\n", report(machines, halves, options),
                          laws_text(fit.laws, fit.chosen)));
  }
  fit.test = tested(law, halves, options);
  fit.generator = generator_of(law, machines, options);
  if (!options.json) {
    print_text(test_text(fit.test, options.resamples));
    if (!machines.is_availability) print_text(hint_at_deadline(machines.lives, options.deadline));
  }
  if (!options.plot.empty()) plot(law, halves, options.plot);
  if (!options.out.empty()) write_file(options.out, fit.generator + "\n");
  print_out(options.json ? json_of(machines, halves, fit, options)
                         : fmt::format("\n{}\n", fit.generator));
  return 0;
}

}  // namespace rubato::app
