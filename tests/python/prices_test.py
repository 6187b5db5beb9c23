"""The prices of three clouds as traces (examples/python/trace_from_json.py, docs/traces.md)."""

import json
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

from support import TestCase, rubato_program

SCRIPT = Path(os.environ["RUBATO_SOURCE_DIR"], "examples/python/trace_from_json.py")


def aws(zone, time, price, product="Linux/UNIX"):
    return {"AvailabilityZone": zone, "InstanceType": "p3.2xlarge", "ProductDescription": product, "SpotPrice": price,
            "Timestamp": f"2023-05-01T{time}:00+00:00"}


# Newest first, as the program prints them.
AWS = {"SpotPriceHistory": [aws("us-east-1b", "03:00", "0.950000"), aws("us-east-1a", "02:00", "1.100000"),
                            aws("us-east-1a", "01:00", "0.918000"), aws("us-east-1b", "00:30", "0.900000"),
                            aws("us-east-1a", "00:00", "0.918000")]}


def azure(meter, date, price, kind="Consumption", unit="1 Hour"):
    return {"currencyCode": "USD", "tierMinimumUnits": 0.0, "retailPrice": price, "unitPrice": price,
            "armRegionName": "eastus", "location": "US East", "effectiveStartDate": f"{date}T00:00:00Z",
            "meterName": meter, "productName": "Virtual Machines NCSv3 Series", "skuName": meter,
            "serviceName": "Virtual Machines", "unitOfMeasure": unit, "type": kind, "armSkuName": "Standard_NC6s_v3"}


AZURE = {"BillingCurrency": "USD", "NextPageLink": None, "Count": 4, "Items": [
    azure("NC6s v3 Spot", "2024-01-02", 0.5), azure("NC6s v3", "2024-01-01", 3.06),
    azure("NC6s v3 Spot", "2024-01-01", 0.306), azure("NC6s v3", "2024-01-01", 17000.0, "Reservation")]}


def google(start, end, **money):
    return {"interval": {"startTime": f"2025-03-0{start}T08:00:00Z", "endTime": f"2025-03-0{end}T08:00:00Z"},
            "listPrice": {"currencyCode": "USD", **money}}


GOOGLE = {"machineType": "a2-highgpu-1g", "location": "projects/p/zones/us-central1-a",
          "preemptionHistory": [{"interval": {"startTime": "2025-03-01T08:00:00Z"}, "preemptionRate": 0.25}],
          "priceHistory": [google(1, 2, units="1", nanos=250000000), google(2, 4, nanos=750000000),
                           google(4, 5, units="2")]}


class Prices(TestCase):
    def converted(self, documents, *arguments):
        """What the script prints for a file with a line for each document: (exit code, stdout, stderr)."""
        file = self.folder() / "prices.json"
        file.write_text("".join(json.dumps(document) + "\n" for document in documents))
        done = subprocess.run([sys.executable, SCRIPT, file, *arguments], capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout, done.stderr.replace(f"{file}: ", "")

    def rows(self, documents, *arguments):
        code, out, error = self.converted(documents, *arguments)
        self.assertEqual(code, 0, error)
        header, *rows = out.splitlines()
        self.assertEqual(header, "seconds,count,price")
        rows = [row.split(",") for row in rows]
        self.assertEqual(rows[-1][1:], ["", ""])
        start = int(rows[0][0])
        return [((int(time) - start) / 3600, price) for time, _, price in rows]

    def test_aws(self):
        # Until an hour after the latest price of both zones.
        self.assertEqual(self.rows([AWS], "8", "us-east-1a"), [(0, "0.918000"), (2, "1.100000"), (4, "")])
        self.assertEqual(self.rows([AWS], "8", "us-east-1b"), [(0, "0.900000"), (2.5, "0.950000"), (3.5, "")])
        self.assertEqual(self.rows([AWS["SpotPriceHistory"]], "8", "us-east-1a")[-1], (4, ""))
        code, _, error = self.converted([AWS], "8")
        self.assertEqual((code, error), (1, "AvailabilityZone is us-east-1a, us-east-1b; accepted: one of them after the "
                                            "number of devices\n"))
        self.assertIn("these are prices without devices", self.converted([AWS])[2])

    def test_documentation(self):
        page = Path(os.environ["RUBATO_SOURCE_DIR"], "docs/traces.md").read_text()
        document, csv = re.search(r"this `prices.json`\n```\n(.*?)```\nbecomes `prices.csv`:\n```\n(.*?)```", page,
                                  re.DOTALL).groups()
        self.assertEqual(self.converted([json.loads(document)], "8"), (0, csv, ""))

    def test_azure(self):
        expected = [(0, "0.306"), (24, "0.5"), (25, "")]
        self.assertEqual(self.rows([AZURE], "8", "NC6s v3 Spot"), expected)
        pages = [{**AZURE, "Items": AZURE["Items"][:2]}, {**AZURE, "Items": AZURE["Items"][2:]}]
        self.assertEqual(self.rows(pages, "8", "NC6s v3 Spot"), expected)
        self.assertEqual(self.rows([AZURE], "8", "NC6s v3", "Consumption"), [(0, "3.06"), (25, "")])
        self.assertIn("type is Consumption, Reservation; accepted: one", self.converted([AZURE], "8", "NC6s v3")[2])
        by_month = {"Items": [azure("NC6s v3", "2024-01-01", 3.06, unit="1/Month")]}
        self.assertIn("these are prices for 1/Month; accepted: 1 Hour", self.converted([by_month], "8")[2])

    def test_google(self):
        self.assertEqual(self.rows([GOOGLE], "8"), [(0, "1.25"), (24, "0.75"), (72, "2.0"), (96, "")])
        other = {**GOOGLE, "location": "projects/p/zones/us-central1-b", "priceHistory": [google(1, 9, units="3")]}
        self.assertEqual(self.rows([GOOGLE, other], "8", other["location"]), [(0, "3.0"), (192, "")])
        self.assertIn("location is projects", self.converted([GOOGLE, other], "8")[2])

    def test_are_those_of_a_trace(self):
        file = self.folder() / "google.csv"
        file.write_text(self.converted([GOOGLE], "8")[1])
        code, out, error = rubato_program("trace", "show", "--json", str(file))
        self.assertEqual(code, 0, error)
        # A day at 1.25, two at 0.75 and one at 2.
        self.assertEqual(json.loads(out)["prices"],
                         {"lowest": 0.75, "highest": 2, "mean": 1.1875, "changes": 2, "hours_without": 0})

    def test_refuses_other_documents(self):
        self.assertIn("prices of AWS, Azure or Google", self.converted([{"Items": []}], "8")[2])


if __name__ == "__main__":
    unittest.main()
