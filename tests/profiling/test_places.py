"""A stack is attributed to the step and the kind of work that it is at."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest

from pystreams.broker.embedded.consumer import EmbeddedConsumer
from pystreams.broker.embedded.producer import EmbeddedProducer
from pystreams.engine.codegen import LineOwner
from pystreams.engine.codegen import Work as LineWork
from pystreams.engine.input.decoding import BatchDecoder
from pystreams.engine.input.input_decoding import InputForStore
from pystreams.engine.stream_task import StreamTask
from pystreams.profiling.places import _DECODING, _PACKAGE, ACTIVITIES, Work, WorkKind, work_of
from pystreams.profiling.sampler import StackFrame
from pystreams.runtime.tasks.task_manager import TaskManager
from pystreams.runtime.threads.rounds import Rounds
from pystreams.serde.base import Serde
from pystreams.state.cache.item_cache import ItemCache
from pystreams.state.stores.key_value import KeyValueStore
from pystreams.state.task_stores import TaskStores


def function(of) -> StackFrame:
    return StackFrame(of.__code__, None)


def generated() -> None:
    """Stands for a function of generated code."""


def line(step: str, work: LineWork) -> StackFrame:
    return StackFrame(generated.__code__, LineOwner(step, work))


PROCESS = [function(TaskManager.process), function(StreamTask.process)]
AGGREGATE = line("sum", LineWork.ENGINE)


@pytest.mark.parametrize(
    ("inner", "part"),
    [
        ([line("sum", LineWork.FUNCTION)], WorkKind.FUNCTION),
        ([AGGREGATE], WorkKind.ENGINE),
        ([AGGREGATE, function(json.dumps)], WorkKind.FUNCTION),
        ([AGGREGATE, function(KeyValueStore.get)], WorkKind.STORE_READ),
        ([AGGREGATE, function(KeyValueStore.put)], WorkKind.STORE_WRITE),
        ([AGGREGATE, function(KeyValueStore.get), function(ItemCache.read)], WorkKind.CACHE),
        ([AGGREGATE, function(KeyValueStore.put), function(EmbeddedProducer.send)], WorkKind.PRODUCE),
        ([AGGREGATE, function(KeyValueStore.put), function(json.dumps)], WorkKind.STORE_WRITE),
        ([AGGREGATE, function(EmbeddedProducer.send)], WorkKind.PRODUCE),
        ([line("sum", LineWork.ENCODE), function(json.dumps)], WorkKind.ENCODE),
        ([line("sum", LineWork.PRODUCE), function(EmbeddedProducer.send)], WorkKind.PRODUCE),
    ],
    ids=lambda value: str(value) if isinstance(value, WorkKind) else None,
)
def test_a_step_has_the_part_that_its_line_and_what_it_calls_say(inner, part):
    assert work_of((*PROCESS, *inner)) == Work("sum", part)


def test_what_a_store_hands_on_is_the_work_of_the_next_step():
    flushed = (AGGREGATE, function(KeyValueStore.put), line("out", LineWork.ENCODE))
    assert work_of((*PROCESS, *flushed)) == Work("out", WorkKind.ENCODE)


def test_work_around_the_steps_is_what_the_innermost_function_of_the_thread_does():
    commit = function(TaskManager.commit)
    assert work_of((commit,)) == Work("", WorkKind.COMMIT)
    assert work_of((commit, function(TaskStores.flush_caches), function(ItemCache.read))) == Work(
        "", WorkKind.FLUSH
    )
    assert work_of((function(Serde.serializer),)) == Work("", WorkKind.OTHER)


@pytest.mark.parametrize(
    ("stack", "part"),
    [
        ([Rounds._poll, EmbeddedConsumer.poll], WorkKind.POLL),
        ([Rounds._poll, EmbeddedConsumer.poll, EmbeddedConsumer._wait], WorkKind.IDLE),
        ([TaskManager.add_batches], WorkKind.OTHER),
        ([TaskManager.add_batches, BatchDecoder.decode, json.loads], WorkKind.DECODE),
        ([TaskManager.add_batches, InputForStore.processed, Serde.deserializer], WorkKind.DECODE),
    ],
    ids=lambda value: str(value) if isinstance(value, WorkKind) else None,
)
def test_records_are_polled_and_then_decoded(stack, part):
    assert work_of([function(of) for of in stack]) == Work("", part)


@pytest.mark.parametrize("file", _DECODING)
def test_modules_that_decode_exist(file):
    assert Path(_PACKAGE, file).is_file()


@pytest.mark.parametrize(("file", "name"), ACTIVITIES, ids=lambda value: value)
def test_functions_that_are_known_by_name_exist(file, name):
    found = importlib.import_module("pystreams." + file.removesuffix(".py").replace("/", "."))
    for part in name.split("."):
        found = getattr(found, part)
    assert found.__code__.co_qualname == name


def test_every_kind_of_line_is_a_part():
    assert {str(work) for work in LineWork} <= {str(part) for part in WorkKind}
