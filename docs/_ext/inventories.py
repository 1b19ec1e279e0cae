"""Links to the documentation of other projects without asking the network: their names are in ``inventories.txt``."""

from __future__ import annotations

import zlib
from pathlib import Path


def mapping(docs: Path) -> dict[str, tuple[str, str]]:
    """Write one inventory for each project of ``inventories.txt``; returns the setting of intersphinx."""
    found: dict[str, tuple[str, list[str]]] = {}
    for line in (docs / "inventories.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            name, _, address = line.strip("[]").partition(" ")
            found[name] = (address, [])
        elif line and not line.startswith("#"):
            found[name][1].append(line.replace("$", line.split()[0]))
    folder = docs / "_build" / "inventories"
    folder.mkdir(parents=True, exist_ok=True)
    result = {}
    for name, (address, lines) in found.items():
        path = folder / f"{name}.inv"
        head = f"# Sphinx inventory version 2\n# Project: {name}\n# Version: \n# The rest is compressed using zlib.\n"
        path.write_bytes(head.encode() + zlib.compress(("\n".join(lines) + "\n").encode()))
        result[name] = (address, str(path))
    return result
