"""The charts of a page in a browser: numbers that are not cut off, legends, scales, switches, and charts as files.

charts_test.py RUBATO
"""

import json
import math
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml

import browser

SVG = "{http://www.w3.org/2000/svg}"
RUBATO = pathlib.Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else None

# What is drawn of a figure: its texts with their places in the chart, whose size is given, and its paths.
DRAWN = """figures.map(figure => {
  if (!figure.drawn) draw(figure);
  const svg = figure.chart.firstChild;
  const frame = svg && svg.getBoundingClientRect();
  return {
    title: figure.spec.title, type: figure.spec.type,
    texts: svg ? [...svg.querySelectorAll("text")].map(text => {
      const box = text.getBoundingClientRect();
      return { text: text.textContent, key: text.classList.contains("key"),
        left: box.left - frame.left, right: box.right - frame.right,
        top: box.top - frame.top, bottom: box.bottom - frame.bottom };
    }) : [],
    curves: svg ? [...svg.querySelectorAll(".curve")].map(path => path.getAttribute("class")) : [],
    hidden: figure.node.hidden,
  };
})"""


def step_line(index, **more):
    step = {"kind": "step", "step": index, "epoch": 0, "batch": 64, "cores": 2, "lr": 0.1, "gain": 1.0, "loss": 1.0,
            "substeps": [1, 2], "seconds": {"wall": 0.25}}
    return json.dumps({**step, **more})


class Charts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def run_of(self, name, lines):
        folder = self.folder / name
        folder.mkdir(parents=True)
        (folder / "metrics.jsonl").write_text("\n".join(lines) + "\n")
        (folder / "config.toml").write_text('model = "softmax"\n')
        return name

    def page_of(self, *folders):
        page = self.folder / "page.html"
        subprocess.run([RUBATO, "report", *folders, "-o", page], cwd=self.folder, check=True, stdout=subprocess.DEVNULL)
        return page

    def drawn(self, page, width=1400):
        with browser.Browser(width) as shown:
            shown.open(page)
            charts = shown.value(DRAWN)
            self.assertEqual(shown.errors, [])
        return {chart["title"]: chart for chart in charts if not chart["hidden"]}

    def assert_whole(self, charts):
        """No text is cut off at an edge of its chart."""
        for chart in charts.values():
            self.assertTrue(chart["texts"], chart["title"])
            for text in chart["texts"]:
                for side, sign in ("left", 1), ("top", 1), ("right", -1), ("bottom", -1):
                    self.assertGreaterEqual(sign * text[side], -1, f"{chart['title']}: {text}")

    def test_runs(self):
        lines = [step_line(i, loss=-0.4 + 0.014 * i, cores=1 + i % 2, substeps=[1, 2][:1 + i % 2], metrics={})
                 for i in range(60)]
        fault = {"kind": "fault", "step": 20, "core": 1, "substep": 0, "cores_left": 1}
        lines[20] = json.dumps(fault) + "\n" + lines[20]
        long_name = "trace-spot-most-16_linear_learning-rate-0.01_momentum-0.9_seed-1"
        runs = [self.run_of(f"runs/{long_name}-{i}", lines) for i in range(1, 11)]
        for width in 1400, 360:
            charts = self.drawn(self.page_of(*runs), width)
            self.assert_whole(charts)
            cores = charts["Cores"]
            ticks = [text["text"] for text in cores["texts"] if text["text"].replace(".", "").isdigit()]
            self.assertFalse([tick for tick in ticks if "." in tick], ticks)
            keys = [text["text"] for text in cores["texts"] if text["key"]]
            self.assertEqual(len(keys), 8, "the first eight runs are shown")
            self.assertEqual(len(set(keys)), 8, "names are told apart where they differ")
            self.assertEqual(len(set(charts["Loss"]["curves"])), 8, "each has looks of its own")
        one = self.drawn(self.page_of(runs[0]))
        keys = [text["text"] for text in one["Cores"]["texts"] if text["key"]]
        self.assertEqual(keys, ["core died (1)", "fewer cores (28)"])
        self.assert_whole(one)

    def test_scale(self):
        losses = [1000 * math.exp(-i / 100) + 0.1 for i in range(2000)]
        losses[777] = 1e-12
        run = self.run_of("scale", [step_line(i, loss=loss) for i, loss in enumerate(losses)])
        loss = self.drawn(self.page_of(run))["Loss"]
        words = [text["text"] for text in loss["texts"]]
        self.assertIn("Loss, logarithmic", words)
        self.assertFalse([word for word in words if word.startswith("1e-")], "the means are all above 0.01")
        with browser.Browser() as shown:
            shown.open(self.folder / "page.html")
            shown.value("chosen.scale = 'linear'; chosen.smoothing = 5; redrawAll()")
            words = [text["text"] for text in shown.value(DRAWN)[0]["texts"]]
        self.assertIn("Loss, mean over 5 %", words)

    def test_experiment_and_file(self):
        subprocess.run([RUBATO, "compare", "--model", "softmax", "--rule", "linear,root", "--seed", "1..2",
                        "--epochs", "2", "--target", "60", "--tune", "never", "--out", "experiment", "--quiet"],
                       cwd=self.folder, check=True, stdout=subprocess.DEVNULL)
        page = self.page_of("experiment")
        charts = self.drawn(page)
        self.assert_whole(charts)
        self.assertEqual([text["text"] for text in charts["Mean of the seeds"]["texts"] if text["key"]],
                         ["linear", "root", "constant (baseline)"])
        self.assertIn("curve base d0", charts["Mean of the seeds"]["curves"])
        self.assertIn("one seed", [text["text"] for text in charts["Cost to target"]["texts"]])
        with browser.Browser() as shown:
            shown.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
            shown.open(page)
            shown.value(DRAWN)
            text = shown.value("svgText(figures.find(figure => figure.spec.title === 'Mean of the seeds'))")
        svg = xml.fromstring(text)
        texts = [node.text for node in svg.iter(f"{SVG}text")]
        for wanted in "test accuracy, %", "samples", "linear", "constant (baseline)":
            self.assertIn(wanted, texts)
        self.assertTrue(float(svg.get("width")) > 200)
        for node in svg.iter():
            self.assertIsNone(node.get("class"))
            self.assertIsNone(node.get("style"))
        lines = {node.get("stroke") for node in svg.iter(f"{SVG}path")} - {None, "none"}
        self.assertIn("rgb(27, 31, 36)", lines, "the baseline, as on paper, whatever the screen is")


if __name__ == "__main__":
    if browser.chromium() is None:
        print("there is no chromium")
        sys.exit(77)
    unittest.main()
