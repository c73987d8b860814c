"""Small files on whatever file system Spark has, through Hadoop's classes in the driver's JVM."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession


class HadoopFolder:
    """A folder by its path or URL."""

    def __init__(self, session: SparkSession, location: str) -> None:
        context: Any = session.sparkContext
        self._jvm = context._jvm
        self._configuration = context._jsc.hadoopConfiguration()
        path = self._jvm.org.apache.hadoop.fs.Path(location)
        files = path.getFileSystem(self._configuration)
        #: The URL of the folder, the same wherever it is looked at from.
        self.url: str = files.makeQualified(path).toString()

    def read(self, name: str) -> bytes | None:
        """A file's content, None if there is none."""
        path = self._path(name)
        files = path.getFileSystem(self._configuration)
        if not files.exists(path):
            return None
        stream = files.open(path)
        try:
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
        finally:
            stream.close()

    def write(self, name: str, content: bytes) -> None:
        """Replace a file at once: by a rename, where the file system has one."""
        path, draft = self._path(name), self._path(f".{name}.new")
        stream = path.getFileSystem(self._configuration).create(draft, True)
        try:
            stream.write(bytearray(content))
        finally:
            stream.close()
        context = self._jvm.org.apache.hadoop.fs.FileContext.getFileContext(path.toUri(), self._configuration)
        overwrite = getattr(self._jvm, "org.apache.hadoop.fs.Options$Rename").OVERWRITE
        options = self._jvm.java.lang.reflect.Array.newInstance(overwrite.getClass(), 1)
        options[0] = overwrite
        context.rename(draft, path, options)

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self.url, name)
