"""Real traces as numbers of ranks over time."""

import csv


def read_trace(file):
    """A trace in rubato's format, a CSV file with the columns step, batchsize and perhaps cores, as a list of (ranks, steps).

    Ranks are the cores or, without that column, the batch size in units of the smallest one. Raises ValueError.
    """
    with open(file, newline="") as lines:
        rows = list(csv.DictReader(lines))
    if not rows or "batchsize" not in rows[0]:
        raise ValueError(f"{file} is not a trace; accepted: CSV with the columns step, batchsize and perhaps cores")
    try:
        # The cores of several hosts are written as a sum, such as 4+2+2.
        numbers = [sum(map(int, (row.get("cores") or row["batchsize"]).split("+"))) for row in rows]
    except (AttributeError, ValueError) as error:
        raise ValueError(f"{file}: {error}") from None
    unit = 1 if rows[0].get("cores") else max(1, min(numbers))
    runs = []
    for number in numbers:
        ranks = max(1, round(number / unit))
        if runs and runs[-1][0] == ranks:
            runs[-1] = (ranks, runs[-1][1] + 1)
        else:
            runs.append((ranks, 1))
    return runs
