"""Data by name or from files: LIBSVM, CSV and Parquet, with errors that say where the file is broken; raw tables."""

from ._columns import DateParts, ParseNumbers, ParseText, SoftClip
from ._csv import read_csv
from ._files import DataError
from ._libsvm import read_libsvm
from ._load import BUILT_IN, Dataset, load_dataset
from ._open_rows import open_rows
from ._parquet import read_parquet
from ._plan import plan_columns
from ._preprocess import table_preprocessor

__all__ = [
    "BUILT_IN",
    "DataError",
    "Dataset",
    "DateParts",
    "ParseNumbers",
    "ParseText",
    "SoftClip",
    "load_dataset",
    "open_rows",
    "plan_columns",
    "read_csv",
    "read_libsvm",
    "read_parquet",
    "table_preprocessor",
]
