"""Stubs and docstrings say what the table of options says."""

import ast
import inspect
import unittest

import rubato
from rubato import _options
from support import BINARY, TestCase

FILE = BINARY / "python" / "rubato" / "__init__.pyi"


def signature_of_stub(function):
    """(name, default) of each parameter that the stub of a function names; no default is None, and None is "None"."""
    arguments = function.args
    plain = arguments.args
    defaults = [None] * (len(plain) - len(arguments.defaults)) + arguments.defaults + arguments.kw_defaults
    return [(argument.arg, default and repr(ast.literal_eval(default)))
            for argument, default in zip(plain + arguments.kwonlyargs, defaults)]


def signature_of(function):
    """The same of a function of the package."""
    several = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return [(name, None if parameter.default is parameter.empty else repr(parameter.default))
            for name, parameter in inspect.signature(function).parameters.items() if parameter.kind not in several]


class Stubs(TestCase):
    def test_are_those_of_the_package(self):
        tree = ast.parse(FILE.read_text(encoding="utf-8"))
        stubbed = {node.name: node for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
        for name in rubato.__all__:
            thing = getattr(rubato, name)
            if inspect.ismodule(thing):
                continue
            self.assertIn(name, stubbed)
            if inspect.isfunction(thing):
                self.assertEqual(signature_of_stub(stubbed[name]), signature_of(thing), name)
                continue
            members = {node.name: node for node in stubbed[name].body if isinstance(node, ast.FunctionDef)}
            for member, stub in members.items():
                found = inspect.getattr_static(thing, member)
                is_property = any(isinstance(of, ast.Name) and of.id == "property" for of in stub.decorator_list)
                self.assertEqual(isinstance(found, property), is_property, f"{name}.{member}")
                if not is_property:
                    function = found.__func__ if isinstance(found, (classmethod, staticmethod)) else found
                    self.assertEqual(signature_of_stub(stub), signature_of(function), f"{name}.{member}")
            if not issubclass(thing, (Exception, dict)):
                public = {member for member in vars(thing) if not member.startswith("_")}
                inherited = {"param_groups", "state", "defaults", "zero_grad", "add_param_group", "state_dict", "load_state_dict"}
                self.assertLessEqual(public - inherited if name == "AdaScale" else public, set(members), name)


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
