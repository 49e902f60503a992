"""Sphinx settings of the documentation site."""

import sys
from pathlib import Path

import wiretwin

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "wiretwin"
author = "wiretwin developers"
project_copyright = "wiretwin developers"
release = version = wiretwin.__version__

extensions = ["myst_parser", "folded", "gallery", "mathml", "mpi_names", "verbs"]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]

html_theme = "furo"
html_math_renderer = "mathml"
html_title = f"wiretwin {version}"
html_static_path = ["_static"]
html_show_sphinx = False
html_show_copyright = False
nitpicky = False
