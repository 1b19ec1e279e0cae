"""The data sets of the papers, by the names that their files have here or on the LIBSVM page."""

from __future__ import annotations

from ._spec import Source


def _file(name: str, *names: str, **more: object) -> Source:
    return Source(name, ((name, *names),), **more)  # type: ignore[arg-type]


def _parts(name: str, train: str, test: str, **more: object) -> Source:
    return Source(name, ((f"{name}.train", train), (f"{name}.test", test)), **more)  # type: ignore[arg-type]


_ALL = (
    Source("iris"), Source("wine"), Source("digits"), Source("breast_cancer"),
    _file("glass"), _file("svmguide2"), _file("vehicle"), _file("segment"),
    _parts("vowel", "vowel.scale", "vowel.scale.t", n_features=10),
    _file("svmguide4.train", "svmguide4", note="only LIBSVM's training part, 300 of the paper's 612 rows"),
    _parts("dna", "dna", "dna.t", n_features=180),
    _parts("satimage", "satimage.scale", "satimage.scale.t", n_features=36),
    _parts("usps", "usps", "usps.t", n_features=256),
    _parts("sector", "sector.scale", "sector.t.scale", n_features=55197, scale="none"),
    _parts("pendigits", "pendigits", "pendigits.t", n_features=16),
    _file("news20", "news20.train", "news20.scale", n_features=62061,
          note="LIBSVM's training part, 15935 of 19928 rows, as counts"),
    _parts("letter", "letter.scale", "letter.scale.t", n_features=16),
    _file("protein-val", "protein.val", n_features=357,
          note="LIBSVM's validation part, 2871 of the paper's 24387 rows: not comparable"),
    _parts("shuttle", "shuttle.scale", "shuttle.scale.t", n_features=9),
    _file("connect-4"),
    _parts("mnist", "mnist.scale", "mnist.scale.t", n_features=784),
    _file("aloi", "aloi.scale"),
    _parts("rcv1", "rcv1_train.multiclass", "rcv1_test.multiclass", n_features=47236, scale="none"),
    _file("covtype", "covtype.scale"),
    _file("covtype-20k", note="the first 20000 of 581012 rows, more balanced than the whole"),
    _file("cornell"), _file("orl"), _file("hhar"), _file("dermatology"), _file("australian"), _file("fourclass"),
    _file("sonar", "sonar_scale"),
    _file("isolet", note="the 1560 rows that the authors' repository ships"),
    _file("waveform"),
    Source("usps5", (("usps.train", "usps"), ("usps.test", "usps.t")), n_features=256, classes=(0, 1, 2, 3, 4),
           note="the digits 0 to 4: their number is the paper's 5427"),
)  # fmt: skip
SOURCES: dict[str, Source] = {source.name: source for source in _ALL}

# Name, training rows, test rows: the 13 sets of Abe's table 1.
RAETSCH = {
    "banana": (400, 4900), "breast cancer": (200, 77), "diabetes": (468, 300), "flare solar": (666, 400),
    "german": (700, 300), "heart": (170, 100), "image": (1300, 1010), "ringnorm": (400, 7000), "splice": (1000, 2175),
    "thyroid": (140, 75), "titanic": (150, 2051), "twonorm": (400, 7000), "waveform": (400, 4600),
}  # fmt: skip
