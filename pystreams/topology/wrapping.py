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

#: Makes a new processor at each call: a class, a function, or a ``ProcessorSupplier``.
AnySupplier: TypeAlias = Callable[[], Processor[Any, Any, Any, Any]]


class ProcessorSupplier:
    """The original supplier of a step, which a wrapper receives: each call makes a new processor. Each task calls it
    once.

    For a step of the DSL the processor is a ``BuiltInProcessor``.
    """

    def __init__(self, make: AnySupplier, stores: Sequence[StoreSpec]) -> None:
        self._make = make
        self._stores = tuple(stores)

    def __call__(self) -> Processor[Any, Any, Any, Any]:
        return self._make()

    def stores(self) -> Sequence[StoreSpec]:
        """The stores that belong to the step."""
        return self._stores


class ProcessorWrapper:
    """Wraps the processors of a topology, including those of the DSL, in code of the program.

    Its uses are measuring, tracing and testing. Subclass it, and set it as ``processor_wrapper``::

        class Traced(ProcessorWrapper):
            def wrap_processor_supplier(self, name, supplier):
                return lambda: Tracing(name, supplier())

    Both methods are called once for each step, except for sources, sinks and the steps that fill global and read-only
    stores. They return a supplier of processors, as ``supplier`` is one. Its processors pass ``init``, ``process`` and
    ``close`` on to those of ``supplier``, or replace them. If the returned supplier has a method ``stores``, the stores
    that it returns are added to the topology; such a store replaces a store of the step with the same name.

    Records before a step on a table, and after a step that makes a table, have a ``Change`` as their value. An
    exception of a step passes through the processors around it before the processing handler is called.
    """

    def wrap_processor_supplier(self, name: str, supplier: ProcessorSupplier) -> AnySupplier:
        """The supplier to use for the step ``name``."""
        return supplier

    def wrap_fixed_key_processor_supplier(self, name: str, supplier: ProcessorSupplier) -> AnySupplier:
        """As above, for steps that keep the key: ``process_values``, and the DSL steps that keep it in Java
        (``filter``, ``map_values``, ``flat_map_values`` and ``peek`` of streams)."""
        return supplier


#: The values of the setting ``processor_wrapper``, besides the place to import one from.
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
    """The wrapper for a setting: a subclass of ``ProcessorWrapper``, an instance of one, or a function of (name,
    supplier). Raises ``ConfigError`` for anything else."""
    if isinstance(setting, type) and issubclass(setting, ProcessorWrapper):
        try:
            return setting()
        except TypeError as error:
            raise ConfigError(
                f"processor_wrapper {setting.__qualname__} cannot be instantiated",
                why=str(error),
                hint="give an instance of it, or a class that needs no arguments",
            ) from error
    if isinstance(setting, ProcessorWrapper):
        return setting
    if isinstance(setting, type) or not callable(setting):
        raise ConfigError(
            f"processor_wrapper cannot be {setting!r}",
            hint="give a subclass of ProcessorWrapper, or a function of (name, supplier)",
        )
    UserFunction.of(setting, "wrap", "processor_wrapper")
    wrap: Any = setting
    return _ByFunction(wrap)


def wrapped_supplier(
    wrapper: ProcessorWrapper, node: ProcessorNode, stores: Sequence[StoreSpec]
) -> AnySupplier:
    """The supplier that ``wrapper`` returns for a step with these ``stores``. Raises ``TopologyError`` if it is not
    one."""
    operation = node.operation
    make = operation.supplier if isinstance(operation, Process) else BuiltInProcessor
    fixed_key = operation.fixed_key if isinstance(operation, Process) else operation.keeps_key
    wrap = wrapper.wrap_fixed_key_processor_supplier if fixed_key else wrapper.wrap_processor_supplier
    users = wrapper.function if isinstance(wrapper, _ByFunction) else wrap
    with at_fault(f"the processor wrapper of {node.name}", users):
        result: object = wrap(node.name, ProcessorSupplier(make, stores))
    if not callable(result):
        raise TopologyError(
            f"the processor wrapper returned {result!r} for {node.name}, which does not make processors",
            where=locate(users),
            hint="return a function without arguments that makes a new processor at each call, or the supplier itself",
        )
    return result


@contextmanager
def at_fault(what: str, function: Callable[..., object]) -> Iterator[None]:
    """Turn an exception of a user's function, called while a topology is made, into a ``TopologyError`` that names
    it."""
    try:
        yield
    except StreamsError:
        raise
    except Exception as error:
        raise TopologyError(f"{what} raised {summarize(error)}", where=locate(function)) from error


def provided_stores(supplier: Any) -> tuple[StoreSpec, ...]:
    """The stores that ``supplier.stores()`` returns, if it can be called: on a class, as a static or class method.

    Raises ``TopologyError`` if it returns anything but stores. Source: ConnectedStoreProvider (KIP-401).
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
            f"stores() of the supplier returned {given!r}",
            where=locate(supplier),
            hint="return a list of stores from Stores; to use an existing store, name it where the processor is added",
        )
    return stores
