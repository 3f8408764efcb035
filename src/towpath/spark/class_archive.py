"""Archives of the classes that Spark loads: a JVM maps one instead of finding, reading and verifying them in 200 jars.

Spark loads thousands of classes before its first micro-batch. Java calls the archive "class data sharing". It belongs
to one Java and one installation of Spark; a JVM that does not fit it starts as if there were none.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import pyspark

# What a JVM says about an archive that it can not use would come between the lines of its log.
_SILENT = "-Xlog:cds=off -Xlog:cds+dynamic=off -Xlog:class+path=off"


def path() -> Path:
    """Where the archive of this Java and this Spark is, or would be."""
    home = os.environ.get("JAVA_HOME")
    java = Path(home, "bin", "java") if home else Path(shutil.which("java") or "java")
    known = "\n".join((str(java.resolve()), pyspark.__version__, str(Path(pyspark.__file__).parent)))
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "towpath" / f"spark-{hashlib.sha256(known.encode()).hexdigest()[:16]}.jsa"


def reading() -> str:
    """What a JVM has to be started with to use the archive; nothing while there is none."""
    archive = path()
    return f"-XX:SharedArchiveFile={archive} {_SILENT}" if archive.exists() else ""


def writing(archive: Path) -> str:
    """What a JVM has to be started with to write one when it ends."""
    return f"-XX:ArchiveClassesAtExit={archive} {_SILENT}"
