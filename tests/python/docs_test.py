"""What docs/python.md and the README say of Python does what they say."""

import linecache
import os
import re
import unittest

import rubato
from support import SOURCE, TestCase


def blocks(page, language="python"):
    return re.findall(rf"^```{language}\n(.*?)^```$", (SOURCE / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


class Pages(TestCase):
    def setUp(self):
        # What they write lies here.
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder())

    def test_python_md(self):
        found = blocks("docs/python.md")
        self.assertGreaterEqual(len(found), 5)
        scope = {"__name__": "python_md"}
        for block in found:
            # TorchScript looks up the source of what is in it.
            name = f"docs/python.md, block {len(linecache.cache)}"
            linecache.cache[name] = len(block), None, block.splitlines(keepends=True), name
            exec(compile(block, name, "exec"), scope)
        self.assertGreater(scope["result"].test_accuracy, 0)

    def test_readme(self):
        found = blocks("README.md")
        self.assertTrue(found)
        for block in found:
            exec(compile(block, "README.md", "exec"), {})

    def test_models_are_those_of_the_page(self):
        for source in blocks("docs/models.md"):
            if not source.startswith("class "):
                continue
            scope = {}
            exec("import torch\nfrom torch import nn\nfrom torch.nn import functional as F\n" + source, scope)
            # The last class is the network.
            name = re.findall(r"^class (\w+)", source, re.MULTILINE)[-1]
            arguments = {"MnistNetwork": (), "ToyNet": (8192, 10), "ResNet20": (16, 1),
                         "Transformer": (28, 28, 10)}.get(name, (784, 10))
            # Of any widths here.
            own = ((784, 128, 64, 10),) if name == "Mlp" else arguments
            ours, theirs = getattr(rubato.models, name)(*own), scope[name](*arguments)
            theirs.load_state_dict(ours.state_dict(), strict=True)
            images = scope["torch"].rand(2, 1, 28, 28)
            self.assertTrue(scope["torch"].equal(ours.eval()(images), theirs.eval()(images)), name)


if __name__ == "__main__":
    unittest.main()
