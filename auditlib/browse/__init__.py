"""Looking at items one at a time: a panel for JupyterLab, and ``items.html``, the same on a page without a server."""
