"""Sphinx settings of the documentation site."""

import wiretwin

project = "wiretwin"
author = "wiretwin developers"
project_copyright = "wiretwin developers"
release = version = wiretwin.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]

autodoc_typehints = "description"
autodoc_member_order = "bysource"
napoleon_google_docstring = False

html_theme = "furo"
html_title = "wiretwin"
html_static_path = ["_static"]
html_show_sphinx = False
html_show_copyright = False
nitpicky = False
