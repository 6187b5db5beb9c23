"""Traces of spot instances that are published as JSON, as CSV that `rubato trace import` and `--trace` read:

    trace_from_json.py FILE > trace.csv
"""

import json
import sys


def records(rows):
    """[{"Time": seconds, "GPUs": count}, ...], as to_json(orient="records") of pandas writes them."""
    print(",".join(rows[0]))
    for row in rows:
        print(",".join("" if row[name] is None else str(row[name]) for name in rows[0]))


def counts(document):
    """{"metadata": {"gap_seconds": 60}, "data": [8, 8, 4]}: a count for each gap; "prices" may stand beside "data"."""
    gap = document["metadata"]["gap_seconds"]
    columns = [document[name] for name in ("data", "prices") if name in document]
    print(",".join(["seconds", "count", "price"][: len(columns) + 1]))
    for i, row in enumerate([*zip(*columns, strict=True), [""] * len(columns)]):
        print(i * gap, *row, sep=",")


def events(lines):
    """[milliseconds, "add|remove|...", {"nodes": [...], "duration": milliseconds}]: a line for each event."""
    nodes, counts = set(), {0: 0}
    for time, kind, event in lines:
        if kind == "add":
            nodes.update(event["nodes"])
        elif kind == "remove":
            nodes.difference_update(event["nodes"])
        counts[time] = len(nodes)
        end = time + event.get("duration", 0)
    print("seconds,count")
    before = None
    for time, count in counts.items():
        if count != before and time < end:
            print(f"{time / 1000},{count}")
        before = count
    print(f"{end / 1000},")


with open(sys.argv[1], encoding="utf-8") as file:
    text = file.read()
if text.lstrip().startswith("{"):
    counts(json.loads(text))
elif text.lstrip()[1:].lstrip().startswith("{"):
    records(json.loads(text))
else:
    events([json.loads(line) for line in text.splitlines() if line.strip()])
