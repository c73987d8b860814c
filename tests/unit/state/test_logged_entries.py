"""What a store says that its changelog holds is what it is restored from."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.state.state_kit import Task, batch_of, key_value, timestamped, timestamped_window, window


@pytest.mark.parametrize("on_disk", [True, False])
def test_entries_restore_the_store_that_gave_them(on_disk: bool, tmp_path: Path) -> None:
    specs = (timestamped("kv", cached=True), key_value("plain"), window("w"), timestamped_window("tw"))
    with Task(*specs, directory=tmp_path / "0_0" if on_disk else None) as task:
        task["kv"].put("a", (1, 5))
        task["kv"].put("b", (2, 6))
        task["kv"].put("a", (3, 7))
        task["plain"].put("a", "1")
        task["plain"].put("b", "2")
        task["plain"].put("b", None)
        task["w"].put("a", "1", 10)
        task["w"].put("a", "2", 20)
        task["tw"].put("b", (4, 8), 30)
        task.commit()
        logged = {store: list(task[store].logged()) for store in ("kv", "plain", "w", "tw")}
        last = {
            store: {key: (key, value, timestamp) for key, value, timestamp in task.records(store)}
            for store in logged
        }
    for store in ("kv", "tw"):
        assert sorted(logged[store]) == sorted(last[store].values())
    for store in ("plain", "w"):
        kept = ((key, value, None) for key, value, _ in last[store].values() if value is not None)
        assert sorted(logged[store]) == sorted(kept)
    with Task(*specs, directory=tmp_path / "0_1" if on_disk else None) as restored:
        for store, entries in logged.items():
            restored.state.restore(store, batch_of(entries))
        assert {store: list(restored[store].logged()) for store in logged} == logged


@pytest.mark.parametrize("spec", [window(), timestamped_window()], ids=["plain", "timestamped"])
def test_windows_past_their_retention_are_left_out(spec: object, tmp_path: Path) -> None:
    with Task(spec, directory=tmp_path / "0_0") as task:  # type: ignore[arg-type]
        value = "1" if task.store.spec.kind == "window" else (1, 1)
        for start in (0, 999, 1000, 2000):
            task.store.put("a", value, start)
        task.commit()
        starts = [int.from_bytes(key[-12:-4], "big") for key, _, _ in task.store.logged()]
        # The retention is 1,000 ms: at 2,000, a window that starts at 1,000 has just gone.
        assert starts == [2000]
