#include "show_hosts.hpp"

#include "clients/app/line/output.hpp"
#include "hosts/run_status/read_run.hpp"
#include "hosts_arguments.hpp"
#include "hosts_table.hpp"

namespace rubato::app {

int show_hosts(std::span<const std::string> arguments) {
  const auto options = parse_hosts_arguments(arguments);
  const HostArguments& meeting = options.meeting;
  const c10d_hosts_detail::RunPlace place{
      .host = meeting.address,
      .port = meeting.port,
      .run = meeting.run,
      .token = meeting.token_file.empty() ? "" : token_in(meeting.token_file)};
  const auto status = c10d_hosts_detail::status_of(c10d_hosts_detail::read_run(place));
  if (options.json) {
    print_out(hosts_json(status));
  } else {
    print_text(hosts_text(status, output_width()));
  }
  return 0;
}

}  // namespace rubato::app
