"""The standalone page around a converted document."""

import base64
import hashlib
from html import escape

STYLE = """
:root { color-scheme: light dark; }
body { margin: 2rem auto; max-width: 52rem; padding: 0 1rem; font: 1rem/1.6 system-ui, sans-serif; }
main { overflow-wrap: break-word; }
h1, h2, h3 { line-height: 1.25; }
pre { overflow-x: auto; padding: .75rem 1rem; border-radius: .4rem; }
code, pre, kbd, samp, tt { font: .9em ui-monospace, monospace; }
blockquote { margin-inline: 0; padding-inline-start: 1rem; border-inline-start: .25rem solid #8886; }
table { border-collapse: collapse; display: block; overflow-x: auto; font-variant-numeric: tabular-nums; }
caption { text-align: start; font-weight: 600; padding-block: .5rem; }
th, td { border: 1px solid #8886; padding: .3rem .6rem; text-align: start; vertical-align: top; }
td p, th p { margin: 0; }
pre, thead th { background: light-dark(#f3f4f6, #1f2430); }
img { max-width: 100%; }
img:not([src]) { border: 1px dashed #888; padding: 0 .3rem; }
aside { border-inline-start: .25rem solid #58a; padding-inline-start: 1rem; }
aside.system-message { border-color: #c33; }
.admonition-title, .system-message-title { font-weight: 600; }
""".strip()
# A header for whoever serves such a page: nothing runs, nothing is fetched, it has no origin.
PAGE_POLICY = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'"


def opening(title: str, *, extra_style: str = "") -> str:
    """Return the page up to its content; even if a script got in, the policy would not let it run."""
    style = STYLE + extra_style
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    )
    return (
        '<!DOCTYPE html>\n<html>\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{escape(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n<main>\n"
    )


CLOSING = "\n</main>\n</body>\n</html>\n"
