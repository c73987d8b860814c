"""Places for archives in tables of Delta Lake and Iceberg, and everybody else's view of them."""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.table import TableAlterer
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import EqualTo
from pyiceberg.io.pyarrow import parquet_file_to_data_file
from pyiceberg.table import Transaction

from pystreams.backfill.archive.delta_target import DeltaTarget
from pystreams.backfill.archive.iceberg_target import IcebergTarget, TableLocation
from pystreams.backfill.sources import DeltaArchive, IcebergArchive
from pystreams.backfill.sources.folder import Folder
from pystreams.backfill.sources.lake.content import PROPERTY
from pystreams.backfill.sources.lake.source import LakeArchive
from pystreams.ids import TopicPartition
from tests.backfill.archive.kit import ONE
from tests.backfill.sources.files_kit import Row, read

#: The name of the catalog, which Spark uses in the tests of ``tests/backfill/lake``.
CATALOG = "shared"


class Lake(ABC):
    """A place for one archive, and everybody else's view of it."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder

    #: The operations of a run at which it may die.
    operations: ClassVar[list[tuple[type, str]]]

    @abstractmethod
    def target(self) -> DeltaTarget | IcebergTarget: ...

    @abstractmethod
    def source(self) -> LakeArchive: ...

    @abstractmethod
    def exists(self) -> bool:
        """Whether there is a table."""

    @abstractmethod
    def in_table(self) -> pa.Table:
        """All rows as the format's own library reads them."""

    @abstractmethod
    def compact(self) -> None:
        """As another program does it: records are in any order afterwards."""

    @abstractmethod
    def delete_rows(self, key: str) -> None:
        """As another program does it, which writes the files again."""

    @abstractmethod
    def forget(self) -> None:
        """Remove what says that the table is an archive."""

    def archived(self, partition: TopicPartition = ONE) -> list[Row]:
        # Workers get a source that has looked already.
        source = self.source()
        start, end = source.beginnings([partition])[partition], source.ends([partition])[partition]
        return read(pickle.loads(pickle.dumps(source)), partition, start, end)

    def offsets(self, partition: TopicPartition = ONE) -> list[int]:
        found = self.in_table().to_pylist()
        return sorted(row["offset"] for row in found if (row["topic"], row["partition"]) == partition)


class Delta(Lake):
    operations: ClassVar[list[tuple[type, str]]] = [
        (Folder, "create"),
        (DeltaTable, "create"),
        (TableAlterer, "set_table_properties"),
        (DeltaTable, "create_write_transaction"),
        (DeltaTable, "vacuum"),
    ]

    @property
    def path(self) -> str:
        return str(self.folder / "table")

    def target(self) -> DeltaTarget:
        return DeltaTarget(self.path)

    def source(self) -> DeltaArchive:
        return DeltaArchive(self.path)

    def exists(self) -> bool:
        return DeltaTable.is_deltatable(self.path)

    def in_table(self) -> pa.Table:
        return DeltaTable(self.path).to_pyarrow_table()

    def compact(self) -> None:
        DeltaTable(self.path).optimize.compact()

    def delete_rows(self, key: str) -> None:
        DeltaTable(self.path).delete(f"key = X'{key.encode().hex()}'")

    def forget(self) -> None:
        DeltaTable(self.path).alter.set_table_properties({PROPERTY: "{}"}, raise_if_not_exists=False)


class Iceberg(Lake):
    operations: ClassVar[list[tuple[type, str]]] = [
        (SqlCatalog, "create_namespace_if_not_exists"),
        (TableLocation, "create"),
        (Transaction, "commit_transaction"),
    ]

    @property
    def properties(self) -> dict[str, str]:
        return {
            "type": "sql",
            "uri": f"sqlite:///{self.folder}/catalog.db",
            "warehouse": f"file://{self.folder}",
        }

    def catalog(self) -> Catalog:
        return load_catalog(CATALOG, **self.properties)

    def target(self) -> IcebergTarget:
        return IcebergTarget(f"{CATALOG}.shop.archive", self.properties)

    def source(self) -> IcebergArchive:
        return IcebergArchive(f"{CATALOG}.shop.archive", properties=self.properties)

    def table(self) -> Any:
        return self.catalog().load_table("shop.archive")

    def exists(self) -> bool:
        return self.catalog().table_exists("shop.archive")

    def in_table(self) -> pa.Table:
        return self.table().scan().to_arrow()

    def compact(self) -> None:
        table = self.table()
        with table.transaction() as change, change.update_snapshot().overwrite() as snapshot:
            for partition, tasks in _by_partition(table).items():
                files = [pq.read_table(table.io.new_input(task.file.file_path).open()) for task in tasks]
                path = f"{table.location()}/data/{partition[1]}-compacted-{len(table.snapshots())}.parquet"
                with table.io.new_output(path).create() as file:
                    pq.write_table(pa.concat_tables(files).sort_by([("value", "descending")]), file)
                for task in tasks:
                    snapshot.delete_data_file(task.file)
                snapshot.append_data_file(parquet_file_to_data_file(table.io, table.metadata, path))

    def delete_rows(self, key: str) -> None:
        self.table().delete(EqualTo("key", key.encode()))

    def forget(self) -> None:
        with self.table().transaction() as change:
            change.set_properties({PROPERTY: "{}"})


def _by_partition(table: Any) -> dict[tuple[str, int], list[Any]]:
    found: dict[tuple[str, int], list[Any]] = {}
    for task in table.scan().plan_files():
        found.setdefault((task.file.partition[0], task.file.partition[1]), []).append(task)
    return found


KINDS: dict[str, type[Lake]] = {"delta": Delta, "iceberg": Iceberg}
