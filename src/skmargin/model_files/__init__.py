"""Model files (``.skm``): fitted estimators as arrays and JSON.  Loading one never runs code from the file.

The file is a zip archive of members that are stored, not compressed, so that it is never larger in memory than on disk:

- ``arrays/0.npy``, ``arrays/1.npy``, ...: NumPy arrays without pickle;
- ``model.json``: format and versions, names and types of the features, SHA-256, type and shape of every array, and the
  estimator as a tree: its class (looked up in a fixed list, never imported by name), parameters, fitted attributes.

The archive comment holds the SHA-256 of ``model.json``.  The hashes find damage, not malice; against malice stands that
nothing in the file can name code, and that what native code reads (trees, support vectors) is checked first.

===============  ====================================================================
``_archive``     bytes of the file: members, checksums, arrays
``_known``       the classes that a file may hold, and which attributes make them up
``_values``      values as JSON and back
``_native``      trees and calibrators, which keep compiled objects
``_checks``      what each attribute must be, and how sizes must agree
``_probe``       rows that a model must score as it did when it was written
``_columns``     names and types of the features: frames in any order of columns
===============  ====================================================================
"""

from ._archive import ModelFileError
from ._columns import without_names
from ._files import describe_model, load_model, save_model
from ._known import model_classes

__all__ = ["ModelFileError", "describe_model", "load_model", "model_classes", "save_model", "without_names"]
