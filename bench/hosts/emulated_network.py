"""Hosts on one machine, connected by a network with delays: each is a network namespace with an
interface to an Ethernet switch in user space (emulated_switch.cpp).

Needs root, `ip netns` and /dev/net/tun. Nothing is left behind, however this process ends: a second
process waits for its end, then ends the hosts and removes their namespaces.
"""

import contextlib
import itertools
import json
import os
import shutil
import subprocess
from pathlib import Path

# A full frame of 1,514 bytes carries 1,448 bytes of TCP payload.
TCP_SHARE = 1448 / 1514

# Settings of each host's kernel. Hosts alternate between computing and exchanging. After each pause TCP
# would begin with ten frames again. BBR, the default of some machines, would include these pauses when
# it measures the rate of a connection, and then send no faster; every kernel has Reno. Nothing is lost
# here, but frames may wait in a queue for longer than TCP waits before it sends them again.
_SETTINGS = {"ipv4/tcp_slow_start_after_idle": 0, "ipv4/tcp_congestion_control": "reno",
             "ipv4/tcp_early_retrans": 0, "ipv6/conf/all/disable_ipv6": 1}

_networks = itertools.count()

# Waits until its stdin ends, which happens once no process is left that could write to it. Cleans up
# twice, in case a namespace was just being made the first time.
_CLEANER = """
trap '' INT TERM HUP
cat > /dev/null
for time in first second; do
  for name in "$@"; do
    [ -e "/run/netns/$name" ] || continue
    ip netns pids "$name" 2> /dev/null | xargs -r kill -KILL 2> /dev/null
    ip netns delete "$name" 2> /dev/null
  done
  [ $time = first ] && sleep 0.1
done
"""


def _ip(*arguments):
    return subprocess.run(["ip", *arguments], check=True, text=True, capture_output=True).stdout


def objection():
    """The reason why there can be no such network here; None if there can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if shutil.which("ip") is None:
        return "there is no `ip` (package iproute2)"
    try:
        os.close(os.open("/dev/net/tun", os.O_RDWR))
    except OSError as error:
        return f"/dev/net/tun: {error.strerror}"
    name = f"rubato-{os.getpid()}-trial"
    try:
        _ip("netns", "add", name)
        _ip("netns", "delete", name)
    except subprocess.CalledProcessError as error:
        return f"`ip netns add` fails: {error.stderr.strip()}"
    return None


class EmulatedNetwork:
    """`hosts` network namespaces at a switch, with links of `rate` bits per second and a delay of
    `delay` seconds from one host to another. A context manager."""

    def __init__(self, switch, hosts, rate, delay):
        self._command = [str(switch), "--rate", str(rate / 8), "--delay", str(delay)]
        number = f"{os.getpid()}-{next(_networks)}"
        self.names = [f"rubato-{number}-{host}" for host in range(hosts)]
        # The name of a device may have at most 15 characters.
        self.interfaces = [f"r{number}-{host}" for host in range(hosts)]
        self.addresses = [f"10.77.0.{host + 1}" for host in range(hosts)]

    def __enter__(self):
        self._cleaner = subprocess.Popen(["sh", "-c", _CLEANER, "cleaner", *self.names],
                                         stdin=subprocess.PIPE, start_new_session=True)
        self._switch = None
        try:
            # The switch also ends when its stdin does, and its devices disappear with it.
            self._switch = subprocess.Popen([*self._command, *self.interfaces], text=True,
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            start_new_session=True)
            if self._switch.stdout.readline() != "ready\n":
                raise RuntimeError("the switch has not started")
            for name, interface, address in zip(self.names, self.interfaces, self.addresses):
                _ip("netns", "add", name)
                _ip("link", "set", interface, "netns", name)
                inside = ["ip", "netns", "exec", name]
                for path, value in _SETTINGS.items():
                    subprocess.run([*inside, "sh", "-c", f"echo {value} > /proc/sys/net/{path}"],
                                   check=True)
                _ip("-n", name, "address", "add", f"{address}/24", "dev", interface)
                _ip("-n", name, "link", "set", "lo", "up")
                _ip("-n", name, "link", "set", interface, "up")
                _ip("-n", name, "route", "replace", "10.77.0.0/24", "dev", interface, "rto_min", "10s")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self._switch is not None:
            self._switch.stdin.close()
            counts = self._switch.stdout.read()
            self._switch.wait()
            # The counts of each interface; emulated_switch.cpp explains them.
            self.counts = json.loads(counts) if counts else {}
        self._cleaner.stdin.close()
        self._cleaner.wait()

    def start(self, host, command, **options):
        """Starts a program on a host, as subprocess.Popen() does."""
        return subprocess.Popen(["ip", "netns", "exec", self.names[host], *map(str, command)],
                                stdin=subprocess.DEVNULL, **options)

    def cut(self, one, other):
        """Cuts the connection between two hosts: each then sends the other's frames to an address that nobody has."""
        for host, to in ((one, other), (other, one)):
            _ip("-n", self.names[host], "neighbor", "replace", self.addresses[to], "lladdr", "02:00:00:00:00:00",
                "dev", self.interfaces[host], "nud", "permanent")

    def sent(self, host):
        """The bytes that a host has sent, as counted by its interface."""
        shown = json.loads(_ip("-n", self.names[host], "-j", "-s", "link", "show", "dev",
                               self.interfaces[host]))
        return shown[0]["stats64"]["tx"]["bytes"]


def train(network, program, options, out):
    """Runs `rubato train` on all hosts of the network. Returns the bytes that each has sent."""
    before = [network.sent(host) for host in range(len(network.names))]
    processes = []
    with contextlib.ExitStack() as stack:
        for host, interface in enumerate(network.interfaces):
            command = [program, "train", *options, "--hosts", len(network.names), "--rank", host,
                       "--rendezvous", f"{network.addresses[0]}:29500", "--interface", interface,
                       "--host-timeout", "60", "--quiet"]
            if host == 0:
                command += ["--out", out]
            errors = stack.enter_context(open(f"{out}.{host}.err", "w+"))
            processes.append((network.start(host, command, stdout=subprocess.DEVNULL,
                                            stderr=errors, cwd=Path(out).parent), errors))
        for process, errors in processes:
            if process.wait() != 0:
                errors.seek(0)
                raise RuntimeError(errors.read().strip() or f"exit code {process.returncode}")
    return [network.sent(host) - sent for host, sent in enumerate(before)]


def records(out):
    """The records of the steps of a run."""
    lines = (json.loads(line) for line in (Path(out) / "metrics.jsonl").read_text().splitlines())
    return [line for line in lines if line["kind"] == "step"]
