"""The "?" of an estimator's picture in a notebook, and the tooltips of its parameters, lead to the reference."""

from __future__ import annotations

SITE = "https://skmargin.readthedocs.io/en/stable"


class Linked:
    """Stands before scikit-learn's bases, whose links lead to their own site."""

    _doc_link_module = "skmargin"
    _doc_link_template = f"{SITE}/api/generated/{{estimator_module}}.{{estimator_name}}.html"


class LinkedMachine(Linked):
    """An estimator that is documented as ``skmargin.Name``."""

    _doc_link_template = f"{SITE}/api/generated/skmargin.{{estimator_name}}.html"
