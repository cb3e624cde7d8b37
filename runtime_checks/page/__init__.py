"""The report of a run as one HTML page that needs nothing but a browser: no script, no request.

`document.page` makes it. What it shows may come from anybody: every text passes `markup`, which
bounds it and leaves no character that a browser would not show, and elements are never strings.
"""
