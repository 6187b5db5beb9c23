#!/usr/bin/env python3
"""Hosts at an emulated network (bench/hosts): its delay and rate, what `rubato train` comes to and sends there, and
that nothing is left of it. Exits with 77 where there can be no such network."""

import json
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench" / "hosts"))
from emulated_network import TCP_SHARE, EmulatedNetwork, objection, train  # noqa: E402

SKIPPED = 77  # as CTest has it
PYTHON = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable
RUBATO, SWITCH = (str(Path(program).resolve()) for program in sys.argv[1:3])

# Gives back what comes, and says how much it was when that has ended.
SERVER = """
import socket, sys
connection, _ = socket.create_server(("0.0.0.0", 5000)).accept()
connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
for _ in range(10):
    connection.sendall(connection.recv(1))
count = 0
while data := connection.recv(1 << 20):
    count += len(data)
connection.sendall(b"!")
print(count)
"""
CLIENT = """
import json, socket, sys, time
for _ in range(1200):
    try:
        connection = socket.create_connection((sys.argv[1], 5000))
        break
    except OSError:
        time.sleep(0.05)
connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
times = []
for _ in range(10):
    begin = time.perf_counter()
    connection.sendall(b"?")
    connection.recv(1)
    times.append(time.perf_counter() - begin)
begin = time.perf_counter()
connection.sendall(bytes(int(sys.argv[2])))
connection.shutdown(socket.SHUT_WR)
connection.recv(1)
print(json.dumps([min(times), time.perf_counter() - begin]))
"""


class Network(unittest.TestCase):
    def test_has_its_delay_and_its_rate(self):
        bytes_sent, rate, delay = 5_000_000, 100e6, 0.01
        at_best = bytes_sent * 8 / (rate * TCP_SHARE)
        with EmulatedNetwork(SWITCH, 2, rate, delay) as network:
            # Whatever else the machine does takes time, too, but not each time.
            for attempt in range(1, 11):
                server = network.start(0, [PYTHON, "-c", SERVER], stdout=subprocess.PIPE, text=True)
                client = network.start(1, [PYTHON, "-c", CLIENT, network.addresses[0], bytes_sent],
                                       stdout=subprocess.PIPE, text=True)
                there_and_back, seconds = json.loads(client.communicate()[0])
                self.assertEqual(int(server.communicate()[0]), bytes_sent)
                self.assertGreater(network.sent(1), attempt * bytes_sent)
                self.assertGreaterEqual(there_and_back, 2 * delay)
                # Nothing is faster than the link.
                self.assertGreater(seconds, at_best)
                # Windows grow for some times there and back.
                if there_and_back < 1.5 * 2 * delay and seconds < 1.5 * at_best + 10 * 2 * delay:
                    break
            else:
                self.fail(f"the last time {there_and_back} s there and back, and {seconds} s for all bytes")
        self.assertEqual([port["dropped"] for port in network.counts.values()], [0, 0])

    def test_has_hosts_that_train_what_one_does_and_send_what_is_predicted(self):
        steps, batch = 40, 256
        options = ["--model", "mlp", "--trace", batch, "--cores", 2, "--threads", 1, "--epochs", 100, "--samples",
                   steps * batch]
        with tempfile.TemporaryDirectory() as folder:
            with EmulatedNetwork(SWITCH, 2, 1e9, 0.001) as network:
                sent = train(network, RUBATO, options, Path(folder) / "two")
            subprocess.run([RUBATO, "train", *map(str, options), "--quiet", "--out", f"{folder}/one"], check=True)
            one, two = (json.loads((Path(folder) / run / "summary.json").read_text()) for run in ("one", "two"))
        self.assertEqual(two["steps"], steps)
        self.assertEqual(two["weights_sha256"], one["weights_sha256"])
        simulated = json.loads(subprocess.run(
            [RUBATO, "simulate", "--json", "--cluster", "hosts=2", "--model", "mlp", "--trace", str(batch), "--cores",
             "2", "--epochs", "100", "--samples", str(steps * batch)],
            check=True, text=True, stdout=subprocess.PIPE).stdout)[0]
        self.assertEqual(simulated["steps"], steps)
        for host in sent:
            self.assertGreater(host, steps * simulated["host_bytes_per_step"])
            self.assertLess(host, 1.2 * steps * simulated["host_bytes_per_step"])

    # Of so many hosts that come and go and meet at a rendezvous of another one, where these links are cut: how each
    # ends, what it says, and the log of the run's groups, where it comes to its end.
    def elastic(self, count, cuts, least):
        with tempfile.TemporaryDirectory() as folder, EmulatedNetwork(SWITCH, count + 1, 1e9, 0.0001) as network:
            for link in cuts:
                network.cut(*link)
            with network.start(count, [RUBATO, "rendezvous", "--port", 29500], stdout=subprocess.PIPE,
                               text=True) as server:
                server.stdout.readline()
                hosts = []
                for host in range(count):
                    with open(f"{folder}/{host}", "w") as said:
                        hosts.append(network.start(
                            host, [RUBATO, "train", "--model", "softmax", "--trace", 32, "--cores", 2, "--threads", 1,
                                   "--samples", 320, "--hosts", count, "--min-hosts", least, "--host-timeout", 8,
                                   "--rendezvous", f"{network.addresses[count]}:29500/run", "--interface",
                                   network.interfaces[host], "--out", f"{folder}/run"], stdout=said, stderr=said))
                codes = [host.wait() for host in hosts]
                server.terminate()
            said = [Path(folder, str(host)).read_text() for host in range(count)]
            run = Path(folder, "run")
            if not run.exists():
                return codes, said, None
            self.assertEqual(json.loads((run / "summary.json").read_text())["steps"], 10)
            return codes, said, (run / "hosts.log").read_text()

    # The two that do not reach each other are at 10.77.0.1 and 10.77.0.2; numbers are given as they come.
    WHY = r"host \d cannot reach host \d at 10\.77\.0\.[12]:\d+: "

    def test_has_hosts_of_which_two_do_not_reach_each_other(self):
        codes, said, log = self.elastic(3, [(0, 1)], least=2)
        self.assertEqual((sorted(codes[:2]), codes[2]), ([0, 28], 0), said)
        self.assertRegex(said[codes.index(28)],
                         "rubato train: the hosts of the run go on without this one: " + self.WHY)
        self.assertRegex(log, r"group \d: 2 hosts; new: \d, \d; " + self.WHY + ".*; formed in ")

    def test_has_hosts_that_do_not_reach_each_other(self):
        codes, said, log = self.elastic(2, [(0, 1)], least=1)
        self.assertEqual(sorted(codes), [0, 28], said)
        self.assertRegex(said[codes.index(28)],
                         "rubato train: the hosts of the run go on without this one: " + self.WHY)
        self.assertRegex(log, r"group \d: 1 host; new: \d; " + self.WHY + ".*; formed in ")
        # Where one alone may not train, both say so, and give up.
        codes, said, _ = self.elastic(2, [(0, 1)], least=2)
        self.assertEqual(codes, [28, 28], said)
        for host in said:
            self.assertRegex(host, r"group \d+ is not connected: " + self.WHY)
            self.assertRegex(host, "rubato train: the hosts could not be connected: " + self.WHY)

    def test_leaves_nothing_behind_when_it_is_killed(self):
        # In a process of its own, which is killed while a host is at work.
        source = f"""
import sys
sys.path.insert(0, {sys.path[0]!r})
from emulated_network import EmulatedNetwork
with EmulatedNetwork({SWITCH!r}, 2, 1e9, 0.001) as network:
    host = network.start(1, ["sleep", "1000"])
    print(host.pid, *network.names, flush=True)
    host.wait()
"""
        with subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, text=True) as process:
            host, *names = process.stdout.readline().split()
            self.assertTrue(all(Path("/run/netns", name).exists() for name in names))
            process.send_signal(signal.SIGKILL)
        left = [*(Path("/run/netns", name) for name in names), Path("/proc", host)]
        end = time.monotonic() + 20
        while any(path.exists() for path in left) and time.monotonic() < end:
            time.sleep(0.05)
        self.assertEqual([str(path) for path in left if path.exists()], [])


if __name__ == "__main__":
    WHY = objection()
    if WHY is not None:
        print(f"skipped: {WHY}")
        sys.exit(SKIPPED)
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
