"""Traces of spot instances that are published as JSON, as CSV that `rubato trace import` and `--trace` read:

    trace_from_json.py FILE > trace.csv
    trace_from_json.py PRICES DEVICES [ZONE|TYPE|PRODUCT...] > zone.csv

The second form is for prices as `aws ec2 describe-spot-price-history` prints them. They tell nothing of devices, whose
number is taken to be DEVICES all the time, and they are of one zone, instance type and product: what there are several
of has to be named.
"""

import datetime
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


def prices(rows, devices, chosen):
    """[{"AvailabilityZone": ..., "SpotPrice": "0.918", "Timestamp": ...}, ...] of AWS: newest first, zones mixed."""
    latest = max(time_of(row) for row in rows)
    for key in ("AvailabilityZone", "InstanceType", "ProductDescription"):
        values = sorted({row.get(key, "") for row in rows})
        rows = [row for row in rows if len(values) == 1 or row.get(key, "") in chosen]
        if not rows or len({row.get(key, "") for row in rows}) > 1:
            sys.exit(f"{sys.argv[1]}: {key} is {', '.join(values)}; accepted: one of them after the number of devices")
    changes = {time_of(row): row["SpotPrice"] for row in reversed(rows)}
    print("seconds,count,price")
    before = None
    for time, price in sorted(changes.items()):
        if price != before:
            print(f"{time:.0f},{devices},{price}")
        before = price
    # A price holds until the next one. Nothing says for how long the last one does: until an hour after the latest
    # of all zones.
    print(f"{latest + 3600:.0f},,")


def time_of(row):
    return datetime.datetime.fromisoformat(row["Timestamp"].replace("Z", "+00:00")).timestamp()


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        text = file.read()
    try:
        values = [json.loads(text)]
    except ValueError:
        values = [json.loads(line) for line in text.splitlines() if line.strip()]
    first = values[0] if len(values) == 1 else values
    rows = first.get("SpotPriceHistory") if isinstance(first, dict) else first
    if rows and isinstance(rows, list) and isinstance(rows[0], dict) and "SpotPrice" in rows[0]:
        if len(sys.argv) < 3 or not sys.argv[2].isdecimal():
            sys.exit(f"{sys.argv[1]}: these are prices without devices; accepted: trace_from_json.py FILE DEVICES")
        prices(rows, sys.argv[2], sys.argv[3:])
    elif isinstance(first, dict) and "gap_seconds" in first.get("metadata", ()) and "data" in first:
        counts(first)
    elif isinstance(first, list) and first and all(isinstance(row, dict) for row in first):
        records(first)
    elif isinstance(first, list) and len(values) >= 1 and all(is_event(value) for value in values):
        events(values)
    else:
        sys.exit(f"{sys.argv[1]}: a form of JSON that is not known here; accepted: records of pandas, counts at equal "
                 "gaps, events, or prices of AWS")


def is_event(value):
    return isinstance(value, list) and len(value) == 3 and isinstance(value[1], str) and isinstance(value[2], dict)


if len(sys.argv) < 2:
    sys.exit(__doc__)
try:
    main()
except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
    sys.exit(f"{sys.argv[1]}: {type(error).__name__}: {error}; accepted: JSON of one of the forms in this script")
