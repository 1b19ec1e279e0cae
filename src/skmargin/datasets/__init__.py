"""Data by name or from files: LIBSVM, CSV and Parquet, with errors that say where the file is broken."""

from ._csv import read_csv
from ._files import DataError
from ._libsvm import read_libsvm
from ._load import BUILT_IN, Dataset, load_dataset
from ._open_rows import open_rows
from ._parquet import read_parquet

__all__ = ["BUILT_IN", "DataError", "Dataset", "load_dataset", "open_rows", "read_csv", "read_libsvm", "read_parquet"]
