"""A topology as a Mermaid flowchart: GitHub, GitLab and most editors draw it."""

from __future__ import annotations

from pystreams.topology.built import BuiltTopology, GlobalStore, SubTopology
from pystreams.topology.nodes import Node, SinkNode, SourceNode


def mermaid(built: BuiltTopology) -> str:
    """One box for each sub-topology; topics outside, so that repartition topics link one to the next. Global stores,
    which every process has, stand outside, too, with links to the joins that read them."""
    chart = _Chart()
    for store in built.global_stores:
        chart.add_global(store)
    for sub in built.subtopologies:
        chart.add(sub)
    return chart.text()


class _Chart:
    def __init__(self) -> None:
        self._topics: dict[str, str] = {}
        self._global_stores: dict[str, str] = {}
        self._boxes: list[str] = []
        self._links: list[str] = []

    def add(self, sub: SubTopology) -> None:
        """Draw one sub-topology."""
        ids = {node.name: f"n{sub.id}_{index}" for index, node in enumerate(sub.nodes)}
        stores = {spec.name: f"s{sub.id}_{index}" for index, spec in enumerate(sub.stores)}
        self._boxes.append(f'  subgraph sub{sub.id}["Sub-topology {sub.id}"]')
        self._boxes += [f'    {ids[node.name]}["{_escape(node.name)}"]' for node in sub.nodes]
        self._boxes += [f'    {stores[name]}[("{_escape(name)}")]' for name in stores]
        self._boxes.append("  end")
        for node in sub.nodes:
            self._link(node, ids, stores, sub)

    def add_global(self, store: GlobalStore) -> None:
        """Draw a global store."""
        name = store.spec.name
        id = self._global_stores[name] = f"g{len(self._global_stores)}"
        self._boxes.append(f'  {id}[("{_escape(name)} (global)")]')
        self._links.append(f"  {self._topic(store.topic)} --> {id}")

    def _link(self, node: Node, ids: dict[str, str], stores: dict[str, str], sub: SubTopology) -> None:
        here = ids[node.name]
        if isinstance(node, SourceNode):
            topics = node.topics if node.pattern is None else (node.pattern.pattern,)
            self._links += [f"  {self._topic(topic)} --> {here}" for topic in topics]
        elif isinstance(node, SinkNode):
            target = "chosen by record" if node.topic is None else node.topic
            self._links.append(f"  {here} --> {self._topic(target)}")
        else:
            self._links += [f"  {here} -.- {stores[name]}" for name in node.stores]
            if node.operation.global_table is not None:
                self._links.append(f"  {here} -.- {self._global_stores[node.operation.global_table]}")
        self._links += [f"  {here} --> {ids[child.name]}" for child in sub.children[node.name]]

    def _topic(self, name: str) -> str:
        return self._topics.setdefault(name, f"t{len(self._topics)}")

    def text(self) -> str:
        topics = [f'  {id}[/"{_escape(name)}"/]' for name, id in self._topics.items()]
        return "\n".join(["flowchart TD", *topics, *self._boxes, *self._links])


def _escape(text: str) -> str:
    return text.replace("#", "#35;").replace('"', "#quot;")
