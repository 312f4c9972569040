"""Every public name says what it is, and every parameter of a public function what it takes."""

import importlib
import inspect
import re

import pytest
from conftest import CONFIG

import citerec

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


def unexplained(name: str, value) -> list[str]:
    """Name the parameters of which the docstring, as `?` shows it, says nothing."""
    made = value if inspect.isfunction(value) else value.__init__
    is_record = inspect.isclass(value) and hasattr(value, "model_fields")
    names = list(value.model_fields) if is_record else list(inspect.signature(made).parameters)
    known = [n for n in names if n not in ("self", "cls", "args", "kwargs")]
    return [f"{name}({n})" for n in known if not re.search(rf"^{n} : .+\n    \S", value.__doc__ or "", flags=re.M)]


@pytest.mark.parametrize("name", citerec.__all__)
def test_every_argument_is_explained(name):
    """Of what `import citerec` gives, and of its public methods: type, default and meaning of each argument."""
    value = getattr(citerec, name)
    meant = {name: value}
    if inspect.isclass(value) and not hasattr(value, "model_fields"):
        members = {key: getattr(member, "__func__", member) for key, member in inspect.getmembers(value)}
        meant |= {f"{name}.{key}": member for key, member in members.items()
                  if key[0] != "_" and inspect.isfunction(member) and member.__module__.startswith("citerec.")}
    assert not [fault for key, each in meant.items() for fault in unexplained(key, each)]


@pytest.mark.parametrize("name", citerec.__all__)
def test_a_wrong_call_says_what_is_wrong(name):
    """Too many arguments are answered in the words of citerec, and not in Python's."""
    value = getattr(citerec, name)
    with pytest.raises(citerec.CiterecError) as said:
        value(*range(20))
    for raw in ("positional", "argument", "NoneType", "validation error", "pydantic"):
        assert raw not in str(said.value)
