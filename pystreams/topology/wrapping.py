"""Processor wrappers: a program's own code around every step of a topology.

Source: org.apache.kafka.streams.processor.api.ProcessorWrapper (KIP-1112).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from pystreams.errors import ConfigError, StreamsError, TopologyError, summarize
from pystreams.functions import UserFunction, locate
from pystreams.processor import BuiltInProcessor, Processor
from pystreams.state.spec import StoreSpec
from pystreams.topology.nodes import Process, ProcessorNode

#: Gives a new processor at each call: a class, a function, or a ``ProcessorSupplier``.
AnySupplier: TypeAlias = Callable[[], Processor[Any, Any, Any, Any]]


class ProcessorSupplier:
    """What a wrapper is given: called, it gives a new processor of the step. One is asked for in each task.

    Of a step of the language the processor is a ``BuiltInProcessor``.
    """

    def __init__(self, make: AnySupplier, stores: Sequence[StoreSpec]) -> None:
        self._make = make
        self._stores = tuple(stores)

    def __call__(self) -> Processor[Any, Any, Any, Any]:
        return self._make()

    def stores(self) -> Sequence[StoreSpec]:
        """The stores that come with the step."""
        return self._stores


class ProcessorWrapper:
    """Puts code of the program's around the processors of a topology, those of the language included.

    To measure, to trace, to test. Subclass it, and give it as the setting ``processor_wrapper``::

        class Traced(ProcessorWrapper):
            def wrap_processor_supplier(self, name, supplier):
                return lambda: Tracing(name, supplier())

    Both methods are called once for each step, sources, sinks and the steps that fill global and read-only stores
    apart. They return what gives a new processor at each call, as ``supplier`` does: one that hands ``init``,
    ``process`` and ``close`` on to that of ``supplier``, or another one altogether. If what they return has a method
    ``stores``, the stores that it gives are added to the topology; one takes the place of the step's own of that name.

    A record in front of a step that works on a table, and behind one that makes a table, has a ``Change`` as its value.
    What a step lets raise passes through the processors around it before the processing handler is asked.
    """

    def wrap_processor_supplier(self, name: str, supplier: ProcessorSupplier) -> AnySupplier:
        """What is to run in place of the step ``name``."""
        return supplier

    def wrap_fixed_key_processor_supplier(self, name: str, supplier: ProcessorSupplier) -> AnySupplier:
        """The same for steps that keep the key: ``process_values``, and of the language those that Java has so
        (``filter``, ``map_values``, ``flat_map_values`` and ``peek`` of streams)."""
        return supplier


#: What the setting ``processor_wrapper`` takes, besides the place to import it from.
WrapperSetting: TypeAlias = (
    ProcessorWrapper | type[ProcessorWrapper] | Callable[[str, ProcessorSupplier], AnySupplier]
)


class _ByFunction(ProcessorWrapper):
    def __init__(self, wrap: Callable[[str, ProcessorSupplier], AnySupplier]) -> None:
        self.function = wrap

    def wrap_processor_supplier(self, name: str, supplier: ProcessorSupplier) -> AnySupplier:
        return self.function(name, supplier)

    wrap_fixed_key_processor_supplier = wrap_processor_supplier


def processor_wrapper(setting: Any) -> ProcessorWrapper:
    """The wrapper that a setting means: a class derived from ``ProcessorWrapper``, an instance of one, or a function of
    (name, supplier). Raises ``ConfigError`` for something else."""
    if isinstance(setting, type) and issubclass(setting, ProcessorWrapper):
        try:
            return setting()
        except TypeError as error:
            raise ConfigError(
                f"processor_wrapper {setting.__qualname__} cannot be made",
                why=str(error),
                hint="give an instance of it, or a class that needs no arguments",
            ) from error
    if isinstance(setting, ProcessorWrapper):
        return setting
    if isinstance(setting, type) or not callable(setting):
        raise ConfigError(
            f"processor_wrapper cannot be {setting!r}",
            hint="give a class derived from ProcessorWrapper, or a function of (name, supplier)",
        )
    UserFunction.of(setting, "wrap", "processor_wrapper")
    wrap: Any = setting
    return _ByFunction(wrap)


def wrapped_supplier(
    wrapper: ProcessorWrapper, node: ProcessorNode, stores: Sequence[StoreSpec]
) -> AnySupplier:
    """What ``wrapper`` makes of a step with these ``stores``. Raises ``TopologyError`` if that is not a supplier."""
    operation = node.operation
    make = operation.supplier if isinstance(operation, Process) else BuiltInProcessor
    fixed_key = operation.fixed_key if isinstance(operation, Process) else operation.keeps_key
    wrap = wrapper.wrap_fixed_key_processor_supplier if fixed_key else wrapper.wrap_processor_supplier
    users = wrapper.function if isinstance(wrapper, _ByFunction) else wrap
    with at_fault(f"the processor wrapper of {node.name}", users):
        result: object = wrap(node.name, ProcessorSupplier(make, stores))
    if not callable(result):
        raise TopologyError(
            f"the processor wrapper gave {result!r} for {node.name}, which makes no processors",
            where=locate(users),
            hint="return a function without arguments that gives a new processor at each call, or the supplier itself",
        )
    return result


@contextmanager
def at_fault(what: str, function: Callable[..., object]) -> Iterator[None]:
    """Turn what a function of the user's raises while a topology is made into a ``TopologyError`` that names it."""
    try:
        yield
    except StreamsError:
        raise
    except Exception as error:
        raise TopologyError(f"{what} raised {summarize(error)}", where=locate(function)) from error


def provided_stores(supplier: Any) -> tuple[StoreSpec, ...]:
    """What ``supplier.stores()`` gives, if it can be called: a class needs a static or class method of that name.

    Raises ``TopologyError`` for other things than stores. Source: ConnectedStoreProvider (KIP-401).
    """
    method = getattr(supplier, "stores", None)
    if isinstance(supplier, type):
        static = inspect.getattr_static(supplier, "stores", None)
        method = method if isinstance(static, staticmethod | classmethod) else None
    if not callable(method):
        return ()
    with at_fault("stores() of the supplier", method):
        given: object = method()
    stores = (
        (given,) if isinstance(given, StoreSpec) else tuple(given) if isinstance(given, Iterable) else None
    )
    if stores is None or not all(isinstance(store, StoreSpec) for store in stores):
        raise TopologyError(
            f"stores() of the supplier gave {given!r}",
            where=locate(supplier),
            hint="return stores that Stores makes, as a list; names of stores go where the processor is added",
        )
    return stores
