# SPDX-License-Identifier: GPL-2.0
# How Sphinx makes HTML of these documents: make docs.

project = 'dm-hedge'
copyright = 'dm-hedge developers'
master_doc = 'index'
exclude_patterns = ['ABI', 'man', 'build']
html_theme = 'alabaster'
# Not to be called "dm-hedge documentation documentation".
html_title = 'dm-hedge'
highlight_language = 'none'
smartquotes = False
