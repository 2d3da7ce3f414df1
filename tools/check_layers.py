#!/usr/bin/env python3
"""Fails when a file includes a header that tools/layers.txt does not let it include, and when a permission is not used.

Reads every #include "..." of the C++ sources. Prints each breach as file:line and, at the end, the counts.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE_ROOTS = ("src", "apps", "include", "python", "tests", "bench", "fuzz", "examples")
SUFFIXES = (".h", ".cpp", ".cu", ".cuh", ".def")
INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<(weft/[^>]+)>)')


def read_layers():
    """{folder: (covers what lies below, set of folders it may include)}"""
    layers = {}
    for number, line in enumerate((ROOT / "tools/layers.txt").read_text().splitlines(), 1):
        line = line.split("#")[0].strip()
        if not line:
            continue
        name, colon, allowed = line.partition(":")
        if not colon:
            sys.exit(f"tools/layers.txt:{number}: expected 'folder: folders it may include', but is '{line}'")
        layers[name.rstrip("/")] = (name.endswith("/"), set(allowed.split()))
    for name, (_, allowed) in layers.items():
        for unknown in sorted(allowed - layers.keys()):
            sys.exit(f"tools/layers.txt: {name} may include {unknown}, which has no line of its own")
    return layers


def layer_of(folder, layers):
    """The longest line that covers a folder, or None."""
    name = folder
    while name:
        if name in layers and (name == folder or layers[name][0]):
            return name
        name = name.rpartition("/")[0]
    return None


def files_of(roots, root=ROOT):
    """Paths of the C++ sources below folders, from the root of the sources."""
    for folder in roots:
        for path in sorted((root / folder).rglob("*")):
            relative = path.relative_to(root).as_posix()
            if path.suffix in SUFFIXES and path.is_file() and not relative.startswith("tests/data/"):
                yield relative


def includes_of(relative, root=ROOT):
    """(number of the line, header from the root of the sources) of each #include "..." and <weft/...>."""
    path = root / relative
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        if found := INCLUDE.match(line):
            header = found.group(1) or "include/" + found.group(2)
            if "/" not in header and (path.parent / header).exists():
                header = f"{relative.removeprefix('src/').rpartition('/')[0]}/{header}"
            yield number, header


def main():
    layers = read_layers()
    breaches = []
    used = {}  # {layer with files: the other layers that they include}
    file_count = include_count = 0
    for relative in files_of(SOURCE_ROOTS):
        file_count += 1
        folder = relative.removeprefix("src/").rpartition("/")[0]
        layer = layer_of(folder, layers)
        if layer is None:
            breaches.append(f"{relative}: no line of tools/layers.txt covers {folder}")
            continue
        used.setdefault(layer, set())
        for number, header in includes_of(relative):
            include_count += 1
            target = layer_of(header.rpartition("/")[0], layers)
            where = f"{relative}:{number}"
            if target is None:
                breaches.append(f'{where}: "{header}" is not a path from the source root that a layer covers')
            elif target != layer and target not in layers[layer][1]:
                breaches.append(f'{where}: {layer} may not include {target} ("{header}")')
            else:
                used[layer].add(target)
    for layer, targets in used.items():
        for unused in sorted(layers[layer][1] - targets):
            breaches.append(f"tools/layers.txt: {layer} may include {unused}, but no file does")
    for breach in breaches:
        print(breach)
    print(f"layers: {file_count} files, {include_count} includes, {len(breaches)} breaches")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
