"""A notebook is executed: what its cells show, progress in place, and an interrupted training that goes on."""

import re
import sys
import unittest
from html.parser import HTMLParser

try:
    import ipykernel  # noqa: F401: the kernel is a process of its own
    import nbclient
    import nbformat
except ImportError as missing:
    print(f"skipped: {missing} (Debian: python3-nbclient, python3-ipykernel)")
    sys.exit(77)

from support import TestCase

SETUP = """
import os, sys, threading, time
import signal
import rubato
"""
# The kernel gets the signal that "interrupt the kernel" sends, when the file has a step.
INTERRUPT = """
def interrupt(metrics):
    while not (os.path.exists(metrics) and os.path.getsize(metrics)):
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)

def on_step(step):
    if step["step"] == 4:
        os.kill(os.getpid(), signal.SIGINT)
"""


class Parts(HTMLParser):
    """The tags of a piece of HTML, which are closed in turn, and its styles and attributes."""

    def __init__(self, html):
        super().__init__()
        self.open, self.tags, self.attributes, self.styles = [], [], [], ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        self.tags.append(tag)
        self.attributes += attributes

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "style":
            self.styles += data


def as_shown(text):
    """What a notebook shows of a stream: "\\r" goes back to the beginning of the line."""
    lines = []
    for line in text.split("\n"):
        shown = ""
        for piece in line.split("\r"):
            shown = piece + shown[len(piece):]
        lines.append(shown.rstrip())
    return lines


class Notebook(TestCase):
    def run_cells(self, *cells):
        """The outputs of each cell, after those of SETUP."""
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in (SETUP, *cells)])
        notebook.metadata.kernelspec = {"name": "python3", "display_name": "python3", "language": "python"}
        client = nbclient.NotebookClient(notebook, timeout=300, allow_errors=True,
                                         resources={"metadata": {"path": str(self.folder())}})
        client.execute()
        return [cell.outputs for cell in notebook.cells[1:]]

    def assert_small_and_alone(self, html):
        parts = Parts(html)
        self.assertEqual(parts.open, [])
        self.assertLess(len(html), 60_000)
        for tag in ("script", "link", "img", "iframe", "object"):
            self.assertNotIn(tag, parts.tags)
        for name, value in parts.attributes:
            self.assertNotIn(name, ("src", "href", "id", "style"), value)
            self.assertFalse(name.startswith("on"), name)
        for forbidden in ("url(", "@import", "http"):
            self.assertNotIn(forbidden, parts.styles)
        # No rule is for an element outside of the part: others are nested in its rule.
        outermost = re.sub(r"/\*.*?\*/", "", parts.styles)
        while "{" in outermost:
            outermost = re.sub(r"\{[^{}]*\}", ";", outermost)
        for selector in re.split("[,;]", outermost.strip().strip(";")):
            self.assertIn(".rubato-part", selector)
        return parts

    def html_of(self, outputs):
        found = [output.data["text/html"] for output in outputs if "text/html" in output.get("data", {})]
        self.assertEqual(len(found), 1, outputs)
        return found[0]

    def test_values_show_themselves(self):
        result, run, trace, devices, comparison, text = self.run_cells(
            "rubato.train('softmax', epochs=2, samples=20000, out='run', fault='core=1,step=5')", "rubato.Run('run')",
            "rubato.Trace([(64, 2), (32, 1), (128, 4)], end='cycle')",
            "rubato.Availability([0, 600], [4, 2], 3600)",
            "rubato.compare(model='softmax', rule=['linear', 'root'], seed=[1, 2], samples=3200, tune='never')",
            "print(rubato.Trace([64]))")
        html = self.html_of(result)
        parts = self.assert_small_and_alone(html)
        self.assertGreaterEqual(parts.tags.count("svg"), 3)
        self.assertIn("Trained softmax on digits with the rule linear", html)
        self.assertRegex(html, "<figcaption>Loss ")
        self.assertIn("core died (1)", html)
        # The folder has the same records.
        of_run = self.html_of(run)
        self.assert_small_and_alone(of_run)
        charts = re.compile(r'<path class="curve[^>]*>')
        self.assertEqual(charts.findall(of_run), charts.findall(html))
        self.assertRegex(self.html_of(trace), r"a list of 3 steps: 3 steps of 32 to 128 samples, 74\.7 on average; end: cycle\.")
        self.assertEqual(self.assert_small_and_alone(self.html_of(trace)).tags.count("svg"), 2)
        self.assertIn("2 to 4 devices", self.html_of(devices))
        parts = self.assert_small_and_alone(self.html_of(comparison))
        self.assertIn("table", parts.tags)
        self.assertIn("circle", parts.tags)
        self.assertIn("Difference to the baseline", self.html_of(comparison))
        self.assertEqual(text[0].text, "<rubato.Trace: 1 steps, a list of 1 steps>\n")

    def test_progress_is_one_line(self):
        outputs, = self.run_cells("result = rubato.train('softmax', trace=32, samples=64000, epochs=2, progress=True)")
        self.assertEqual({output.name for output in outputs}, {"stderr"})
        text = "".join(output.text for output in outputs)
        # Nothing but the beginning of a line is known to every notebook.
        self.assertNotIn("\x1b", text)
        self.assertGreater(text.count("\r"), 2)
        lines = [line for line in as_shown(text) if line]
        self.assertTrue(all(line.startswith("epoch") for line in lines), lines)
        self.assertEqual(len(lines), 2)

    def test_an_interrupted_training_goes_on(self):
        cells = (INTERRUPT, "rubato.train('softmax', trace=32, epochs=100000, on_step=on_step, progress=True)",
                 "part = sys.last_value.result; print(part.steps.rows); part",
                 "rubato.train(resume=part, on_step=lambda step: step['step'] < 19).sha256",
                 "rubato.train('softmax', trace=32, epochs=100000, samples=640).sha256",
                 "threading.Thread(target=interrupt, args=['run/metrics.jsonl']).start()\n"
                 "rubato.train('softmax', trace=32, epochs=100000, out='run')",
                 "rubato.train(resume=sys.last_value.result, on_step=lambda step: False).steps.rows")
        _, interrupted, part, sha256, whole, in_folder, going_on = self.run_cells(*cells)
        error = interrupted[-1]
        self.assertEqual((error.output_type, error.ename), ("error", "KeyboardInterrupt"))
        streams = "".join(output.text for output in interrupted if output.output_type == "stream")
        self.assertIn("to go on: rubato.train(resume=sys.last_value.result)", streams)
        # The line of progress is cleared.
        self.assertNotRegex("\n".join(as_shown(streams)), r"(?m)^epoch")
        rows = int(part[0].text)
        self.assertGreaterEqual(rows, 5)
        self.assertIn("It has no summary: it was interrupted", self.html_of(part[1:]))
        self.assertEqual(sha256[-1].data["text/plain"], whole[-1].data["text/plain"])
        self.assertEqual(in_folder[-1].ename, "KeyboardInterrupt")
        self.assertIn("the checkpoint is run/checkpoints/", in_folder[0].text)
        self.assertEqual(going_on[-1].data["text/plain"], "1")


if __name__ == "__main__":
    unittest.main()
