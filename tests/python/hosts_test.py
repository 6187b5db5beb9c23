"""Elastic runs from Python: hosts are killed, and the run is that of one host."""

import json
import signal
import subprocess
import sys
import time
import unittest

import rubato  # Before numpy, which loads OpenBLAS.
from support import PROGRAM, TestCase

RUN = {"model": "softmax", "trace": [32, 64, 160, 96], "on_trace_end": "cycle"}

# A host as a process of its own: prints the hash of its weights, its folder, and how many steps it has records of, and
# to stderr the reason that the core gives. The time limit is long, so that hosts begin together, and none is given up
# that the machine has held up.
HOST = """
import ast, rubato, sys
from rubato import _train
finish = _train._finish
def report(found, parts):
    print("reason:", found["reason"], file=sys.stderr)
    return finish(found, parts)
_train._finish = report
run, rendezvous, out, count, epochs = sys.argv[1:]
hosts = rubato.Hosts(rendezvous, count=int(count), least=1, most=4, timeout=100)
result = rubato.train(epochs=int(epochs), out=out, hosts=hosts, **ast.literal_eval(run))
print(result.sha256, result.folder, result.steps.rows)
"""


class Hosts(TestCase):
    def setUp(self):
        self.place = self.folder()
        self.server = subprocess.Popen([PROGRAM, "rendezvous", "--port=0"], stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.server.stdout.close)
        self.addCleanup(self.server.wait)
        self.addCleanup(self.server.kill)
        port = self.server.stdout.readline().split()[-1]
        self.rendezvous = f"127.0.0.1:{port}/run"

    def start(self, out, epochs=1000000):
        host = subprocess.Popen([sys.executable, "-c", HOST, repr(RUN), self.rendezvous, str(self.place / out), "2", str(epochs)],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(host.communicate)
        self.addCleanup(host.kill)
        return host

    def wait_until(self, condition, hosts):
        end = time.monotonic() + 120
        while not condition():
            for host in hosts:
                if host.poll() is not None:
                    self.fail(f"a host has ended with {host.returncode}: {host.communicate()}")
            self.assertLess(time.monotonic(), end, "nothing came of it")
            time.sleep(0.02)

    def lines(self, out):
        file = self.place / out / "metrics.jsonl"
        return len(file.read_bytes().splitlines()) if file.exists() else 0

    def result_of(self, host):
        out, errors = host.communicate(timeout=240)
        self.assertEqual(host.returncode, 0, errors)
        sha256, folder, steps = out.split()
        return sha256, folder, int(steps)

    def expect_that_of_one_host(self, run):
        """Brings a run that was stopped to an end: it is that of one host from the beginning."""
        epochs = json.loads((run / "metrics.jsonl").read_text().splitlines()[-1])["epoch"] + 3
        resumed = rubato.train(resume=run, epochs=epochs)
        self.assertEqual(resumed.sha256, rubato.train(epochs=epochs, **RUN).sha256)

    def test_two_hosts_train_one_run(self):
        hosts = [self.start("run", epochs=2) for _ in range(2)]
        results = [self.result_of(host) for host in hosts]
        alone = rubato.train(epochs=2, **RUN)
        for sha256, _, steps in results:
            self.assertEqual((sha256, steps), (alone.sha256, alone.steps.rows))
        # One host has written the folder.
        self.assertEqual(sorted(folder for _, folder, _ in results), sorted([str(self.place / "run"), "None"]))
        summary = json.loads((self.place / "run" / "summary.json").read_text())
        self.assertEqual(summary["weights_sha256"], alone.sha256)

    def test_the_writer_is_killed_and_another_host_joins(self):
        hosts = {out: self.start(out) for out in ("first", "second")}
        self.wait_until(lambda: self.lines("first") + self.lines("second") > 20, hosts.values())
        writer = "first" if self.lines("first") > 0 else "second"
        run = self.place / writer
        hosts.pop(writer).kill()
        # The other host continues in the same folder, and lets the third one in.
        groups = lambda: len((run / "hosts.log").read_text().splitlines())  # noqa: E731
        self.wait_until(lambda: groups() == 2, hosts.values())
        hosts["third"] = self.start("third")
        self.wait_until(lambda: groups() == 3, hosts.values())
        lines = self.lines(writer)
        self.wait_until(lambda: self.lines(writer) > lines + 20, hosts.values())
        self.stop(hosts.pop("third"), hosts.values())
        self.assertFalse((self.place / "third").exists())
        self.expect_that_of_one_host(run)

    def stop(self, host, others):
        """Ctrl-C at one host stops all."""
        host.send_signal(signal.SIGINT)
        errors = host.communicate(timeout=120)[1]
        self.assertIn("KeyboardInterrupt", errors)
        self.assertNotIn("another host has stopped the run", errors)
        for other in others:
            self.assertIn("Error: another host has stopped the run", other.communicate(timeout=120)[1])

    def test_control_c_stops_all_hosts(self):
        hosts = [self.start("run") for _ in range(2)]
        self.wait_until(lambda: self.lines("run") > 20, hosts)
        self.stop(hosts[0], hosts[1:])
        self.expect_that_of_one_host(self.place / "run")


class Mistakes(TestCase):
    def test_what_hosts_need(self):
        with self.assertRaisesRegex(ValueError, "HOST:PORT/NAME"):
            rubato.Hosts("127.0.0.1:29500")
        hosts = rubato.Hosts("127.0.0.1:29500/run", count=2)
        with self.assertRaisesRegex(rubato.Error, "accepted: with out"):
            rubato.train("softmax", hosts=hosts)
        with self.assertRaisesRegex(rubato.Error, "is not a rendezvous"):
            rubato.train("softmax", out=self.folder() / "run", hosts=rubato.Hosts("here/run"))


if __name__ == "__main__":
    unittest.main()
