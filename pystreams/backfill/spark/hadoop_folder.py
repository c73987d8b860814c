"""Small files on any file system of Spark, through Hadoop's classes in the driver's JVM."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pystreams.backfill.locations import shown
from pystreams.backfill.spark.failures import reason_of
from pystreams.errors import StateError

#: For object stores, which create a file when it is closed: check then, not earlier, that the file does not exist.
#: Source: org.apache.hadoop.fs.Options.CreateFileOptionKeys; S3A has it since Hadoop 3.4.2 (HADOOP-19256).
_ONCE = "fs.option.create.conditional.overwrite"

#: Hadoop's errors for a file that exists: if Hadoop finds it, if an object store refuses to replace it, or if another
#: HDFS client is creating it.
_FILE_EXISTS = ("FileAlreadyExistsException", "RemoteFileChangedException", "AlreadyBeingCreatedException")


class HadoopFolder:
    """A folder by its path or URL. Implements ``manifest_files.Folder``.

    Uses what all file systems have: a list of names, reading, making a file that is not there, deleting. Raises
    ``StateError`` where the file system cannot be used.
    """

    def __init__(self, session: SparkSession, location: str) -> None:
        context: Any = session.sparkContext
        self._jvm = context._jvm
        with reaching(location):
            self._path = self._jvm.org.apache.hadoop.fs.Path(location)
            files = self._path.getFileSystem(context._jsc.hadoopConfiguration())
            #: The URL of the folder, the same wherever it is looked at from.
            self.location: str = files.makeQualified(self._path).toString()
            self._path = self._jvm.org.apache.hadoop.fs.Path(self.location)
            # On local disks Hadoop writes a checksum file beside each file. If another program then changes the file,
            # Hadoop takes it for damaged.
            summed = is_instance_of(context._gateway, files, "org.apache.hadoop.fs.ChecksumFileSystem")
            self._files = files.getRawFileSystem() if summed else files

    @property
    def url(self) -> str:
        return shown(self.location)

    def names(self) -> list[str]:
        with reaching(self.location):
            if not self._files.exists(self._path):
                return []
            return [status.getPath().getName() for status in self._files.listStatus(self._path)]

    def read(self, name: str) -> bytes | None:
        path = self._in(name)
        with reaching(self.location):
            if not self._files.exists(path):
                return None
            stream = self._files.open(path)
            try:
                return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
            finally:
                stream.close()

    def create(self, name: str, content: bytes) -> None:
        path = self._in(name)
        with reaching(self.location):
            builder = self._files.createFile(path).recursive().overwrite(False)
            if self._files.hasPathCapability(path, _ONCE):
                builder.must(_ONCE, True)
            stream = builder.build()
            try:
                stream.write(bytearray(content))
            finally:
                stream.close()

    def delete(self, name: str) -> None:
        with reaching(self.location):
            self._files.delete(self._in(name), True)

    def _in(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self._path, name)


@contextmanager
def reaching(location: str) -> Iterator[None]:
    """While files of a staging folder are worked with. Raises ``StateError`` for what the JVM raises, without secrets;
    ``FileExistsError`` where a file was to be made that is there."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        if isinstance(error, Py4JJavaError):
            # The error of a server is in parentheses after the client's exception.
            kind = str(error.java_exception.toString()).partition(": ")[0]
            if any(name in kind for name in _FILE_EXISTS):
                raise FileExistsError(location) from None
        raise StateError(
            "the staging folder cannot be used",
            where=shown(location),
            why=reason_of(error),
            hint=_about_file_systems(location, str(error)),
        ) from error


def _about_file_systems(location: str, text: str) -> str:
    if "ClassNotFoundException" not in text and "UnsupportedFileSystemException" not in text:
        return "check the path, and that this user may read and write there"
    if location.startswith(("s3:", "s3n:")):
        return "Hadoop's name for it is s3a://"
    return (
        "give Spark the package for that file system, in the version of its Hadoop:"
        " --conf spark.jars.packages=org.apache.hadoop:hadoop-aws:VERSION (for s3a://), or stage in a folder"
    )
