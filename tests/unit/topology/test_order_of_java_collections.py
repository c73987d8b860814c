"""The order in which Java's sets are iterated. The vectors were written by Java 17."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pystreams.topology.java_collections import (
    TreeSet,
    copied_hash_set_order,
    hash_set_order,
    string_hash,
)

VECTORS = json.loads((Path(__file__).parent / "java_vectors.json").read_text())


def test_strings_hash_as_in_java():
    assert string_hash("") == 0
    assert string_hash("KSTREAM-SOURCE-0000000000") == 0x6EF5D130
    assert string_hash("Aa") == string_hash("BB") == 2112
    assert string_hash("\N{GRINNING FACE}") == 0xD83D * 31 + 0xDE00


@pytest.mark.parametrize("vector", VECTORS["hash_sets"])
def test_a_hash_set_is_iterated_as_in_java(vector):
    assert hash_set_order(vector["added"]) == vector["set"]
    assert copied_hash_set_order(vector["added"]) == vector["copy"]


@pytest.mark.parametrize("vector", VECTORS["tree_sets"])
def test_a_tree_set_is_iterated_as_in_java_although_sizes_change_while_it_grows(vector):
    sizes = dict.fromkeys(range(40), 1)
    tree: TreeSet[int] = TreeSet(lambda one, other: sizes[other] - sizes[one] or one - other)
    for item, growth in vector["steps"]:
        if growth < 0:
            tree.add(item)
        else:
            sizes[item] += growth
    assert list(tree) == vector["order"]


@given(st.lists(st.text()))
def test_the_order_of_a_hash_set_holds_each_string_once(texts):
    assert sorted(hash_set_order(texts)) == sorted(set(texts))


@given(st.lists(st.integers()))
def test_a_tree_set_whose_order_does_not_change_is_sorted(items):
    tree: TreeSet[int] = TreeSet(lambda one, other: (one > other) - (one < other))
    for item in items:
        tree.add(item)
    assert list(tree) == sorted(set(items))
