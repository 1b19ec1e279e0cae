"""Settings of the site: ``make docs`` builds it without a network, and every warning is an error."""

from __future__ import annotations

import os
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

import inventories  # noqa: E402
import reference  # noqa: E402
from sphinx_gallery.sorting import ExplicitOrder, FileNameSortKey  # noqa: E402

import skmargin  # noqa: E402

project = "skmargin"
author = "the skmargin developers"
copyright = f"2026, {author}"
version = release = skmargin.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "decision",
    "links",
    "mathml",
    "pages",
]
exclude_patterns = ["_build", "_ext", "auto_examples/**/*.ipynb", "auto_examples/**/*.py", "auto_examples/**/*.md5"]
templates_path = ["_templates"]
default_role = "py:obj"
toc_object_entries_show_parents = "hide"
suppress_warnings = ["config.cache"]  # the gallery's settings hold a class

# -- text ------------------------------------------------------------------------------------------------------------
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
html_math_renderer = "mathml"  # drawn by the browser: no script, no network

# -- reference -------------------------------------------------------------------------------------------------------
reference.write(HERE / "api")
autosummary_generate = True
autosummary_generate_overwrite = True
# Large packages that the docs do not ask for; their examples are shown without a picture where they are missing.
autodoc_mock_imports = [name for name in ("torch", "onnx", "skl2onnx") if not find_spec(name)]
autodoc_typehints = "none"  # numpydoc says the types
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
intersphinx_mapping = inventories.mapping(HERE)
autosummary_context = {
    # The page that says more about a class, and the paper it is from.
    "guide": {
        "CrammerSingerSVC": "hinge_machines",
        "WestonWatkinsSVC": "hinge_machines",
        "TopKSVC": "hinge_machines",
        "ODMClassifier": "odm",
        "M3SVC": "m3svc",
        "MultiMarginSVC": "multi_margin",
        "SemiSupervisedMarginSVC": "multi_margin",
        "LpNormSVC": "lp_norm",
        "ULDMClassifier": "uldm",
        "LDMClassifier": "uldm",
        "LSSVC": "uldm",
        "FuzzyPairwiseClassifier": "uldm",
        "MarginSearchCV": "model_selection",
        "margin_path": "model_selection",
        "default_grid": "model_selection",
        "M3Loss": "recipes/networks",
        "PairwiseMarginPenalty": "recipes/networks",
        "save_model": "model_files",
        "load_model": "model_files",
        "describe_model": "model_files",
        "generalization_bound": "inspection",
        "margins": "inspection",
        "margin_statistics": "inspection",
        "pairwise_margins": "inspection",
        "MarginDistributionDisplay": "inspection",
        "PairwiseMarginDisplay": "inspection",
    },
    # scikit-learn's own, the same for every estimator: shown once, in its documentation.
    "left_out": [
        *("get_metadata_routing", "set_fit_request", "set_score_request", "set_partial_fit_request"),
        *("add_note", "with_traceback"),  # those of an exception
    ],
}

# -- gallery ---------------------------------------------------------------------------------------------------------
# An example whose package is missing is shown without its picture; .ci/run has them all.
needs = {"network": "torch"}
missing = "|".join(word for word, package in needs.items() if not find_spec(package))
sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["auto_examples"],
    "filename_pattern": rf"plot_(?!.*({missing}))" if missing else "plot_",
    "subsection_order": ExplicitOrder(["../examples/machines", "../examples/choosing", "../examples/practice", "*"]),
    "within_subsection_order": FileNameSortKey,
    "backreferences_dir": "api/backreferences",
    "doc_module": ("skmargin",),
    "reference_url": {"skmargin": None},
    "only_warn_on_example_error": False,
    "abort_on_example_error": True,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,  # its page asks the network for a script
    "plot_gallery": "True",
    "min_reported_time": 0,
    "capture_repr": ("_repr_html_", "__repr__"),
    "image_srcset": ["2x"],
}
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")

# -- page ------------------------------------------------------------------------------------------------------------
html_theme = "pydata_sphinx_theme"
html_title = f"skmargin {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_favicon = "_static/logo.svg"
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {"index": [], "cite": [], "benchmarks": []}
html_theme_options = {
    "logo": {"image_light": "_static/logo.svg", "image_dark": "_static/logo.svg", "text": "skmargin"},
    "navbar_align": "left",
    "navbar_end": ["release", "theme-switcher"],
    "header_links_before_dropdown": 7,
    "show_toc_level": 2,
    "show_prev_next": True,
    "navigation_with_keys": False,
    "search_as_you_type": True,
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
}
