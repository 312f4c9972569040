"""Every public name says what it is, and every parameter of a public function what it takes."""

import importlib
import inspect

import pytest
from conftest import CONFIG

FILES = sorted(path for path in CONFIG.lib_path.rglob("*.py") if path.name != "_modidx.py")
PATHS = [path.relative_to(CONFIG.config_path).with_suffix("") for path in FILES]
MODULES = [".".join(path.parts).removesuffix(".__init__") for path in PATHS]


def public(module) -> dict:
    """Give the functions and classes that a module defines for others, and the public methods of those classes."""
    values = {}
    for name in getattr(module, "__all__", ()):
        value = getattr(module, name)
        own = getattr(value, "__module__", None) == module.__name__
        if not own or not (inspect.isfunction(value) or inspect.isclass(value)):
            continue
        values[name] = value
        if inspect.isclass(value):
            members = {key: getattr(member, "__func__", member) for key, member in vars(value).items()}
            methods = {key: member for key, member in members.items() if inspect.isfunction(member) and key[0] != "_"}
            values |= {f"{name}.{key}": each for key, each in methods.items() if each.__module__ == module.__name__}
    return values


def faults(name: str, value) -> list[str]:
    """Say what is missing: the docstring, or the type of a parameter or of the result."""
    missing = [] if (value.__doc__ or "").strip() else [f"{name}: no docstring"]
    if inspect.isclass(value):
        return missing
    parameters = inspect.signature(value).parameters
    untyped = [p for p in parameters.values() if p.annotation is p.empty and p.name not in ("self", "cls")]
    missing += [f"{name}: no type for {p.name}" for p in untyped]
    return missing


@pytest.mark.parametrize("name", MODULES)
def test_public_names_are_documented(name):
    """The module, its public functions and classes, and their public methods."""
    module = importlib.import_module(name)
    said = [fault for key, value in public(module).items() for fault in faults(key, value)]
    if getattr(module, "__all__", None) and not module.__doc__:
        said.append("no docstring of the module")
    assert not said
