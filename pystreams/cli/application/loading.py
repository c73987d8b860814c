"""Loads the application that the command line names as ``MODULE[:ATTR]`` or as a file."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from pystreams.cli.terminal.user_lines import user_lines
from pystreams.errors import AppLoadError, StreamsError
from pystreams.nearest import did_you_mean, did_you_mean_this, listing, not_among

#: The attribute that is tried first if none is named.
DEFAULT_ATTRIBUTE = "app"


def load_application(reference: str) -> Any:
    """The ``App``, ``StreamsBuilder`` or ``Topology`` that ``reference`` names.

    ``apps.wordcount`` and ``apps/wordcount.py`` mean the attribute ``app``, or the only application in the module;
    ``apps.wordcount:other`` names another. Raises ``AppLoadError``, and ``TopologyError`` as the module itself does.
    """
    target, _, attribute = reference.partition(":")
    _search_here()
    if target.endswith(".py") or "/" in target:
        module = _import_file(Path(target), reference)
    else:
        module = _import_module(target, reference)
    return _named(module, attribute, target) if attribute else _only(module, target)


def _search_here() -> None:
    """Put the working directory on ``sys.path``, as ``python -m`` does; the console script does not."""
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)


def _import_file(path: Path, reference: str) -> ModuleType:
    if not path.is_file():
        siblings = [p.name for p in path.parent.glob("*.py")] if path.parent.is_dir() else []
        raise AppLoadError(
            f"There is no file {path}",
            where=f"looked for it from {Path.cwd()}",
            why=f"{path.parent} holds {listing(siblings)}"
            if path.parent.is_dir()
            else f"the folder {path.parent} does not exist either",
            hint=did_you_mean(path.name, siblings)
            or "give the path of a Python file, or a module's dotted name",
        )
    folder = str(path.parent.resolve())
    if folder not in sys.path:
        sys.path.append(folder)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise AppLoadError(f"{path} is not a Python file", hint="give a file that ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)
    try:
        spec.loader.exec_module(module)
    except StreamsError:
        raise
    except (Exception, SystemExit) as error:
        raise _import_failed(reference, error) from error
    return module


def _import_module(name: str, reference: str) -> ModuleType:
    if not all(part.isidentifier() for part in name.split(".")):
        raise AppLoadError(
            f"{reference!r} does not name an application",
            why=f"{name!r} is neither a module's dotted name nor the path of a Python file",
            hint="write it like apps.wordcount, apps.wordcount:app or apps/wordcount.py",
        )
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise _no_such_module(name, error.name) from None
        raise _import_failed(reference, error) from error
    except StreamsError:
        raise
    except (Exception, SystemExit) as error:
        raise _import_failed(reference, error) from error


def _no_such_module(name: str, missing: str) -> AppLoadError:
    """``missing`` is ``name``, or the first part of it that cannot be found."""
    parent, _, last = missing.rpartition(".")
    if parent:
        package = sys.modules.get(parent)
        # A namespace package lists a folder as often as it is on the path.
        folders = list(dict.fromkeys(getattr(package, "__path__", ())))
        if not folders:
            return AppLoadError(
                f"There is no module {name}",
                why=f"{parent} is a module, not a package: it holds no {last}",
                hint=f"to name an attribute of it, write a colon: {parent}:{last}",
            )
    else:
        folders = [str(Path.cwd())]
    siblings = [module.name for module in pkgutil.iter_modules(folders)]
    if not parent:
        siblings += [p.name for p in Path.cwd().iterdir() if p.is_dir() and any(p.glob("*.py"))]
    candidates = {f"{parent}.{sibling}" if parent else sibling for sibling in siblings}
    return AppLoadError(
        f"There is no module {name}",
        where=f"looked in {', '.join(folders)}" + ("" if parent else " and among the installed packages"),
        why=f"found {listing(candidates)}" + (f", but no {missing}" if missing != name else ""),
        hint=did_you_mean(missing, candidates)
        or "run the command from the folder that holds the module, or give the path of its file",
    )


def _import_failed(reference: str, error: BaseException) -> AppLoadError:
    """The error for a module that raised while it was imported: it shows the user's own lines, not Python's import
    code."""
    what = f"Importing {reference} raised {_spell(error)}"
    if isinstance(error, SyntaxError):
        line = (error.text or "").strip()
        return AppLoadError(what, where=f"{error.filename}:{error.lineno}" + (f"\n{line}" if line else ""))
    hint = ""
    if isinstance(error, ModuleNotFoundError) and error.name is not None:
        hint = f"install the package that contains {error.name.partition('.')[0]}, or correct the import"
    elif isinstance(error, ImportError) and "no known parent package" in str(error):
        hint = "a file with relative imports must be named as a module of its package: " + _dotted(reference)
    elif isinstance(error, AttributeError) and error.name is not None:
        hint = _nearest_attribute(error.obj, error.name)
    return AppLoadError(what, where=user_lines(error), hint=hint)


def _nearest_attribute(owner: object, name: str) -> str:
    """The attribute that was probably meant. If none is similar, all that a class of pystreams or its object has."""
    names = [known for known in dir(owner) if not known.startswith("_")]
    cls = owner if isinstance(owner, type) else type(owner)
    if cls is owner:  # the fields of its objects are no use to it
        names = [known for known in names if callable(getattr(cls, known, None))]
    ours = cls.__module__.partition(".")[0] == "pystreams" and not issubclass(cls, BaseException)
    return did_you_mean(name, names) or (
        f"{cls.__name__} has {listing(names, most=60)}" if ours and names else ""
    )


def _dotted(reference: str) -> str:
    """``shop.app`` for the file ``shop/app.py``, as far as its folders are packages."""
    path = Path(reference).resolve()
    parts = [path.stem]
    for folder in path.parents:
        if not (folder / "__init__.py").is_file():
            break
        parts.insert(0, folder.name)
    return ".".join(parts)


def _spell(error: BaseException) -> str:
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _applications(module: ModuleType) -> dict[str, Any]:
    return {name: value for name, value in vars(module).items() if _is_application(value)}


def _is_application(value: object) -> bool:
    from pystreams.dsl.builder import StreamsBuilder
    from pystreams.topology.topology import Topology

    return isinstance(value, StreamsBuilder | Topology)


def _named(module: ModuleType, attribute: str, target: str) -> Any:
    value: Any = module
    for part in attribute.split("."):
        if not hasattr(value, part):
            found = _applications(module)
            raise AppLoadError(
                f"{target} has no attribute {attribute}",
                where=str(getattr(module, "__file__", target)),
                **not_among(
                    attribute, found, "applications found in it", _did_you_mean_any(attribute, vars(module))
                ),
            )
        value = getattr(value, part)
    if not _is_application(value):
        raise AppLoadError(
            f"{target}:{attribute} is not an application but {_article(type(value).__name__)}",
            where=str(getattr(module, "__file__", target)),
            why=f"applications found in it: {listing(_applications(module))}",
            hint="name an App, a StreamsBuilder or a Topology",
        )
    return value


def _did_you_mean_any(attribute: str, names: Iterable[str]) -> str:
    public = [name for name in names if not name.startswith("_")]
    return did_you_mean(attribute, public) or "name an App, a StreamsBuilder or a Topology of the module"


def _article(noun: str) -> str:
    return f"{'an' if noun[0].lower() in 'aeiou' else 'a'} {noun}"


def _in_a_module_of(package: ModuleType) -> str:
    """A hint that names the module ``app`` of a package, if there is one; else empty."""
    modules = {module.name for module in pkgutil.iter_modules(getattr(package, "__path__", ()))}
    meant = f"{package.__name__}.{DEFAULT_ATTRIBUTE}"
    return did_you_mean_this(meant) if DEFAULT_ATTRIBUTE in modules else ""


def _only(module: ModuleType, target: str) -> Any:
    found = _applications(module)
    if DEFAULT_ATTRIBUTE in found:
        return found[DEFAULT_ATTRIBUTE]
    distinct = {id(value): name for name, value in found.items()}
    if len(distinct) == 1:
        return next(iter(found.values()))
    if not distinct:
        raise AppLoadError(
            f"There is no application in {target}",
            where=str(getattr(module, "__file__", target)),
            why=f"none of its attributes is an App, a StreamsBuilder or a Topology"
            f" (it has {listing(name for name in vars(module) if not name.startswith('_'))})",
            hint=_in_a_module_of(module)
            or f'write {DEFAULT_ATTRIBUTE} = App("my-application") in it, and build the topology from that',
        )
    names = sorted(distinct.values())
    raise AppLoadError(
        f"There are {len(names)} applications in {target}, and none is named {DEFAULT_ATTRIBUTE}",
        where=str(getattr(module, "__file__", target)),
        why=f"found {listing(names)}",
        hint=f"say which: {target}:{names[0]}",
    )
