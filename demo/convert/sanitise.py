"""The only HTML that leaves: no script, no style, nothing fetched from anywhere.

nh3 is always the last to touch a body, after everything that could be fooled.
"""

import re

import nh3

_TAGS = """
    a abbr address article aside b blockquote br caption cite code col colgroup dd del details dfn div dl dt
    em figcaption figure footer h1 h2 h3 h4 h5 h6 header hr i img ins kbd li mark nav ol p pre q rp rt ruby s
    samp section small span strong sub summary sup table tbody td tfoot th thead time tr tt u ul var wbr
"""
TAGS = set(_TAGS.split())
# Left out with all that is in them. `noscript` too: what it holds depends on who parses it.
_LEFT_OUT = "script style title template noscript iframe object embed applet svg frameset noframes"
LEFT_OUT = set(_LEFT_OUT.split())
ATTRIBUTES = {
    "*": {"id", "title", "lang", "dir"},
    "a": {"href"},
    "code": {"class"},  # the language of a listing
    "col": {"span"},
    "colgroup": {"span"},
    "img": {"src", "alt", "width", "height"},
    "ol": {"start", "reversed", "type"},
    "pre": {"class"},
    "details": {"open"},
    "td": {"colspan", "rowspan", "align"},
    "th": {"colspan", "rowspan", "align", "scope"},
    "time": {"datetime"},
}
CLASSES = {
    "aside": {"admonition", "system-message"},
    "p": {"admonition-title", "system-message-title"},
}
SCHEMES = {"http", "https", "mailto", "data"}
EMBEDDED_IMAGE = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=\s]*", re.IGNORECASE)


def clean(html: str) -> str:
    """Return the body of a page that is safe to open anywhere, from HTML that somebody wrote."""
    return nh3.clean(
        html,
        tags=TAGS,
        clean_content_tags=LEFT_OUT,
        attributes=ATTRIBUTES,
        allowed_classes=CLASSES,
        attribute_filter=_embedded_only,
        url_schemes=SCHEMES,
        link_rel="noopener noreferrer nofollow",
        strip_comments=True,
    )


def _embedded_only(tag: str, attribute: str, value: str) -> str | None:
    """Let an image be only what the document carries itself; without a source it shows its text."""
    if attribute == "src":
        return value if EMBEDDED_IMAGE.fullmatch(value) else None
    if attribute == "href" and value.strip().lower().startswith("data:"):
        return None
    return value
