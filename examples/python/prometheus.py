"""The newest numbers of a run, in the text format of Prometheus: rubato_step_loss, rubato_epoch_test_loss, ...

    prometheus.py RUN > run.prom.new && mv run.prom.new /var/lib/node_exporter/run.prom

A timer calls it, and the node exporter reads the file: its `--collector.textfile.directory` is that folder. The names
are those of metrics.jsonl (docs/records.md).
"""

import json
import pathlib
import sys

run = pathlib.Path(sys.argv[1])
newest = {}
with open(run / "metrics.jsonl", encoding="utf-8") as lines:
    for line in lines:
        if line.endswith("\n"):  # The last line of a run that is training may be incomplete.
            newest[line.split('"', 4)[3]] = line  # {"kind":"step",...; there may be a million of them.
for kind in "step", "epoch":
    for name, value in json.loads(newest.get(kind, "{}")).items():
        numbers = value if isinstance(value, dict) else {"": value}
        for key, number in numbers.items():
            if isinstance(number, (int, float)):
                metric = "_".join(part for part in ("rubato", kind, name, key) if part)
                print(f"{metric}{{run={json.dumps(run.resolve().name)}}} {float(number)}")
