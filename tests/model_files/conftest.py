"""Files whose checksums are right, whatever they hold: what an attacker would write."""

import hashlib
import json
import zipfile

import pytest


def write(path, document, arrays, version=2):
    for entry in document["arrays"] if isinstance(document.get("arrays"), list) else ():
        if isinstance(entry, dict) and entry.get("name") in arrays:
            entry["sha256"] = hashlib.sha256(arrays[entry["name"]]).hexdigest()
    text = json.dumps(document).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, content in {"model.json": text, **arrays}.items():
            archive.writestr(zipfile.ZipInfo(name), content)
        archive.comment = f"skmargin-model {version} sha256:{hashlib.sha256(text).hexdigest()}".encode()


def read(path):
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    return json.loads(members.pop("model.json")), members


@pytest.fixture
def sealed():
    """Functions to read a file's document and arrays, and to write them, changed, with right checksums."""
    return read, write
