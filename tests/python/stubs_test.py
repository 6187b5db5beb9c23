"""Stubs and docstrings say what the table of options says."""

import ast
import inspect
import os
import subprocess
import sys
import unittest

import rubato
from rubato import _options
from support import SOURCE, TestCase

FILE = SOURCE / "src" / "clients" / "python" / "rubato" / "__init__.pyi"


class Stubs(TestCase):
    def test_are_up_to_date(self):
        made = subprocess.run([sys.executable, SOURCE / "src" / "clients" / "python" / "make_stubs.py"], capture_output=True, text=True,
                              check=True).stdout
        if os.environ.get("RUBATO_UPDATE_DOCS"):
            FILE.write_text(made, encoding="utf-8")
        self.assertEqual(FILE.read_text(encoding="utf-8"), made, "RUBATO_UPDATE_DOCS=1 ctest -R python.Stubs")

    def test_have_all_names(self):
        tree = ast.parse(FILE.read_text(encoding="utf-8"))
        stubbed = {node.name: node for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
        for name in rubato.__all__:
            thing = getattr(rubato, name)
            if inspect.ismodule(thing):
                continue
            self.assertIn(name, stubbed)
            if inspect.isfunction(thing):
                arguments = stubbed[name].args
                words = [argument.arg for argument in arguments.args + arguments.kwonlyargs]
                self.assertEqual(words, [word for word, parameter in inspect.signature(thing).parameters.items()
                                         if parameter.kind != inspect.Parameter.VAR_KEYWORD])
            elif not issubclass(thing, (Exception, dict)):
                members = {node.name for node in stubbed[name].body if isinstance(node, ast.FunctionDef)}
                public = {member for member in vars(thing) if not member.startswith("_")}
                inherited = {"param_groups", "state", "defaults", "zero_grad", "add_param_group", "state_dict", "load_state_dict"}
                self.assertLessEqual(public - inherited if name == "AdaScale" else public, members, name)


class Docstrings(TestCase):
    def test_have_every_option(self):
        for option in _options.TABLE:
            word = _options.keyword(option["name"])
            self.assertIn(f"\n{word}", rubato.train.__doc__)
            self.assertIn(word, inspect.signature(rubato.train).parameters)
        self.assertIn("emulated accelerator cores, where the trace does not say [8]", rubato.train.__doc__)
        self.assertNotIn("lr:\n", rubato.plan.__doc__)
        self.assertIn("cluster:\n", rubato.simulate.__doc__)

    def test_everything_has_one(self):
        for name in rubato.__all__:
            self.assertTrue(getattr(rubato, name).__doc__, name)


if __name__ == "__main__":
    unittest.main()
