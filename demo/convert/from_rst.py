"""reStructuredText as HTML, with nothing but the document itself."""

from docutils import nodes
from docutils.core import publish_doctree, publish_from_doctree

from demo.convert import verdict
from demo.convert.errors import ConversionRefused
from demo.convert.request import Request

SETTINGS = {
    "file_insertion_enabled": False,
    "raw_enabled": False,
    "_disable_config": True,  # no docutils.conf of this machine
    "embed_stylesheet": False,
    "stylesheet_path": "",
    "syntax_highlight": "none",
    "math_output": "LaTeX",
    "report_level": 2,
    "halt_level": 5,
    "warning_stream": False,
    "input_encoding": "unicode",
    "output_encoding": "unicode",
    "line_length_limit": 2**31,
}
MOST_NOTES = 20


def read(content: str, request: Request) -> tuple[list[str], list[str]]:
    """Render it; what docutils had to say stands in the page and comes back as notes.

    A directive that would read a file or a URL is not obeyed, and says so in its place.
    """
    tree = publish_doctree(content, source_path=request.name, settings_overrides=dict(SETTINGS))
    _refuse_deep(tree, request)
    # `:loading: embed` makes docutils read the image from disk in spite of file_insertion_enabled.
    images = list(tree.findall(nodes.image))
    for image in images:
        image.replace_self(nodes.inline("", f"[image: {image.get('alt') or image.get('uri', '')}]"))
    html = publish_from_doctree(tree, writer="html5", settings_overrides=dict(SETTINGS))
    notes = _notes(tree)
    if images:
        notes.append(f"Left out: {len(images)} × image that the document does not carry itself.")
    # A document can name a lone surrogate, which no encoding can write.
    return [str(html).encode("utf-8", "replace").decode()], notes


def _refuse_deep(tree: nodes.document, request: Request) -> None:
    level: list[nodes.Node] = [tree]
    for _ in range(request.limits.depth):
        level = [child for node in level for child in node.children]
        if not level:
            return
    raise ConversionRefused(*verdict.too_deep(request.name, request.limits.depth))


def _notes(tree: nodes.document) -> list[str]:
    messages = list(tree.findall(nodes.system_message))
    notes = [f"Line {each.get('line', '?')}: {each[0].astext()[:200]}" for each in messages[:MOST_NOTES]]
    if len(messages) > MOST_NOTES:
        notes.append(f"There are {len(messages) - MOST_NOTES} more messages like these.")
    return notes
