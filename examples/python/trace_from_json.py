"""Traces of spot instances that are published as JSON, as CSV that `rubato trace import` and `--trace` read:

    trace_from_json.py FILE > trace.csv
    trace_from_json.py PRICES DEVICES [ZONE|TYPE|PRODUCT...] > zone.csv

The second form is for prices: those that `aws ec2 describe-spot-price-history` prints, those of Azure's retail prices
(https://prices.azure.com/api/retail/prices), and those of Google's `advice.capacityHistory` for spot machines. They
tell nothing of devices, whose number is taken to be DEVICES all the time, and they are of one zone or region, type and
product: what there are several of has to be named. A file may have several answers, such as pages, each in a line.
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


def prices_in(document):
    """[({name: value, ...}, time, price, end or None), ...]: what each price is of, and from when until when it holds."""
    if isinstance(document, list):
        document = {"SpotPriceHistory": document}
    found = []
    # AWS: newest first, zones mixed.
    for row in document.get("SpotPriceHistory", ()):
        of = named(row, "AvailabilityZone", "InstanceType", "ProductDescription")
        found.append((of, time_of(row["Timestamp"]), row["SpotPrice"], None))
    # Azure: "D2 v3 Spot" is another meter than "D2 v3", and a reservation another type than consumption.
    for row in document.get("Items", ()):
        of = named(row, "armRegionName", "meterName", "productName", "type", "unitOfMeasure")
        found.append((of, time_of(row["effectiveStartDate"]), row["retailPrice"], None))
    # Google: money in whole units and billionths, each of which is left out where it is 0.
    for row in document.get("priceHistory", ()):
        money = row["listPrice"]
        end = row["interval"].get("endTime")
        found.append((named(document, "location", "machineType"), time_of(row["interval"]["startTime"]),
                      int(money.get("units", 0)) + money.get("nanos", 0) / 1e9, end and time_of(end)))
    return found


def named(row, *names):
    return {name: row.get(name, "") for name in names}


def prices(rows, devices, chosen):
    """Prints the prices of one series among those of prices_in()."""
    # A price holds until the next one. Where nothing says for how long the last one does, it is until an hour after the
    # latest of all zones.
    end = max(end or time + 3600 for _, time, _, end in rows)
    for key in rows[0][0]:
        values = sorted({of[key] for of, *_ in rows})
        rows = [row for row in rows if len(values) == 1 or row[0][key] in chosen]
        if not rows or len({of[key] for of, *_ in rows}) > 1:
            sys.exit(f"{sys.argv[1]}: {key} is {', '.join(values)}; accepted: one of them after the number of devices")
    unit = rows[0][0].get("unitOfMeasure", "1 Hour")
    if unit != "1 Hour":
        sys.exit(f"{sys.argv[1]}: these are prices for {unit}; accepted: 1 Hour")
    changes = {time: price for _, time, price, _ in reversed(rows)}
    print("seconds,count,price")
    before = None
    for time, price in sorted(changes.items()):
        if price != before:
            print(f"{time:.0f},{devices},{price}")
        before = price
    print(f"{end:.0f},,")


def time_of(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        text = file.read()
    try:
        values = [json.loads(text)]
    except ValueError:
        values = [json.loads(line) for line in text.splitlines() if line.strip()]
    first = values[0] if len(values) == 1 else values
    if isinstance(first, list) and first and isinstance(first[0], dict) and "SpotPrice" in first[0]:
        rows = prices_in(first)
    else:
        rows = [row for value in values if isinstance(value, dict) for row in prices_in(value)]
    if rows:
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
                 "gaps, events, or prices of AWS, Azure or Google")


def is_event(value):
    return isinstance(value, list) and len(value) == 3 and isinstance(value[1], str) and isinstance(value[2], dict)


if len(sys.argv) < 2:
    sys.exit(__doc__)
try:
    main()
except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
    sys.exit(f"{sys.argv[1]}: {type(error).__name__}: {error}; accepted: JSON of one of the forms in this script")
