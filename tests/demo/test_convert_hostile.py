"""Documents that want to harm whoever opens them, or the machine that reads them."""

import json
from html.parser import HTMLParser

import pytest
from lxml import etree

from demo.convert import Code, ConversionRefused, convert_file
from demo.convert.sanitise import ATTRIBUTES, TAGS

VECTORS = [
    "<script>alert(1)</script>",
    "<SCRIPT SRC=//evil.example/x.js></SCRIPT>",
    "<scr<script>ipt>alert(1)</scr</script>ipt>",
    "<img src=x onerror=alert(1)>",
    "<img src='https://evil.example/p.gif' srcset='https://evil.example/q.gif 2x'>",
    "<img src='data:image/svg+xml;base64,PHN2Zz4='>",
    "<svg onload=alert(1)><script>alert(1)</script></svg>",
    "<svg><style><img src=x onerror=alert(1)></style></svg>",
    "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=1 onerror=alert(1)&gt;'>",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
    "<template><script>alert(1)</script></template>",
    "<a href='javascript:alert(1)'>x</a>",
    "<a href=' &#1; java&#x0A;script:alert(1)'>x</a>",
    "<a href='JaVaScRiPt&colon;alert(1)'>x</a>",
    "<a href='data:text/html,<script>alert(1)</script>'>x</a>",
    "<a href='vbscript:x' ping='https://evil.example'>x</a>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "<object data='x.swf'></object><embed src='x.swf'>",
    "<base href='https://evil.example/'>",
    "<meta http-equiv=refresh content='0;url=https://evil.example'>",
    "<link rel=stylesheet href='https://evil.example/x.css'>",
    "<style>@import 'https://evil.example/x.css';</style>",
    "<p style='background:url(https://evil.example/x)'>x</p>",
    "<form action='https://evil.example'><input name=password autofocus onfocus=alert(1)></form>",
    "<video src='https://evil.example/v' poster='https://evil.example/p'></video>",
    "<body onload=alert(1) background='https://evil.example/b'>",
    "<details open ontoggle=alert(1)>x</details>",
    "<table background='https://evil.example/b'><tr><td background='https://evil.example/c'>x</table>",
    "</main></body></html><script>alert(1)</script>",
    "<!--><script>alert(1)</script-->",
    "<![CDATA[<script>alert(1)</script>]]>",
    "<?php <script>alert(1)</script> ?>",
    "<title></title><script>alert(1)</script>",
    "<x:script xmlns:x='http://www.w3.org/1999/xhtml'>alert(1)</x:script>",
    "\u003cscript\u003ealert(1)\u003c/script\u003e",
    "<img src=x:x onerror\x0b=alert(1)//",
    '"><script>alert(1)</script>',
]
MARKDOWN = [
    "[x](javascript:alert(1))",
    "[x](JAVASCRIPT:alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "![x](javascript:alert(1))",
    '![x](x "onerror=alert(1)")',
    "<javascript:alert(1)>",
    "[x]: javascript:alert(1)\n\n[x]",
    '```"><script>alert(1)</script>\ncode\n```',
    "[a](<javascript:alert(1)>)",
    "&#60;script&#62;alert(1)&#60;/script&#62;",
]


class Seen(HTMLParser):
    """What a page really contains, by a parser that is not the sanitiser's."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))


def elements(page):
    yield from Seen(page).elements
    for element in etree.fromstring(page, etree.HTMLParser(huge_tree=True)).iter(etree.Element):
        yield element.tag, dict(element.attrib)


def assert_harmless(page):
    """Only our own head, and a body of permitted elements that load and run nothing."""
    head, body = page.split("<main>", 1)
    ours = ["html", "head", "meta", "meta", "meta", "meta", "title", "style", "body"]
    assert [tag for tag, _ in Seen(head).elements] == ours
    permitted = {name for names in ATTRIBUTES.values() for name in names} | {"rel", "class"}
    for tag, attributes in elements(f"<main>{body}"):
        assert tag in TAGS | {"main", "html", "body", "p"}, tag
        assert set(attributes) <= permitted, attributes
        assert (attributes.get("src") or "data:image/png;base64,").startswith("data:image/png;base64,")
        target = (attributes.get("href") or "#").strip().lower()
        assert target.startswith(("#", "http://", "https://", "mailto:")) or ":" not in target, target


@pytest.mark.parametrize("kind", ["html", "md"])
@pytest.mark.parametrize("vector", VECTORS)
def test_no_script_survives_in_a_page(kind, vector, become):
    assert_harmless(become(f"x.{kind}", f"before\n\n{vector}\n\nafter", "html").text)


@pytest.mark.parametrize("vector", MARKDOWN)
def test_no_script_survives_from_markdowns_own_syntax(vector, become):
    assert_harmless(become("x.md", vector, "html").text)


def test_no_script_survives_in_plain_text(become):
    assert_harmless(become("x.txt", "\n\n".join(VECTORS), "html").text)


def test_no_script_survives_in_a_cell_or_a_column_name(become):
    cells = ['"' + vector.replace('"', '""') + '"' for vector in VECTORS]
    page = become("x.csv", "\n".join([",".join(cells), *cells]), "html").text
    assert_harmless(page)
    tags = [tag for tag, _ in Seen(page.split("<main>")[1]).elements]
    assert tags.count("th") == tags.count("td") == len(VECTORS)


def test_no_script_survives_from_restructuredtext(become):
    text = (
        "`x <javascript:alert(1)>`_ `<script>`\n\n"
        ".. image:: javascript:alert(1)\n   :target: javascript:alert(1)\n\n"
        ".. raw:: html\n\n   <script>alert(1)</script>\n\n"
        ".. role:: r(raw)\n   :format: html\n\n:r:`<script>alert(1)</script>`\n\n"
        ".. meta::\n   :http-equiv=refresh: 0;url=https://evil.example\n\n"
        ".. math:: <script>alert(1)</script>\n\n.. image:: https://evil.example/v.mp4\n"
    )
    assert_harmless(become("x.rst", text, "html").text)


def test_file_name_and_title_are_text_in_the_head(become):
    for name, content in (
        ("<script>.csv", "a,b\n"),
        ("<script>.md", "x"),
        ("x.md", "# </title><script>1</script>"),
    ):
        page = become(name, content, "html").text
        assert_harmless(page)
        assert "<script" not in page


def test_page_forbids_scripts_and_loads_even_if_one_got_in(become):
    page = become("x.csv", "a,b\n1,2\n", "html").text
    assert "default-src 'none'; style-src 'sha256-" in page
    assert "'unsafe" not in page


# -- files of this machine --

READERS = [
    ".. include:: {path}",
    ".. include:: {path}\n   :literal:",
    ".. literalinclude:: {path}",
    ".. raw:: html\n   :file: {path}",
    ".. raw:: html\n   :url: file://{path}",
    ".. csv-table:: t\n   :file: {path}",
    ".. csv-table:: t\n   :url: file://{path}",
    ".. image:: {path}\n   :loading: embed",
    ".. image:: file://{path}\n   :loading: embed",
    ".. figure:: {path}\n   :loading: embed",
    ".. |x| image:: {path}\n   :loading: embed\n\n|x|",
    ".. code::\n   :file: {path}",
    ".. role:: r(raw)\n   :file: {path}\n\n:r:`x`",
]


@pytest.mark.parametrize("directive", READERS)
def test_document_cannot_read_a_file_of_this_machine(directive, become, tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("root:x:0:0\n")
    for to in ("html", "json", "text"):
        result = become("x.rst", "Title\n=====\n\n" + directive.format(path=secret), to)
        assert "root:x" not in result.text
        assert "cm9vdDp4" not in result.text  # the same in base64
        assert result.found.notes


def test_include_of_the_password_file_says_in_its_place_that_it_is_not_obeyed(become):
    result = become("x.rst", "Before\n\n.. include:: /etc/passwd\n\nAfter\n", "text")
    assert '"include" directive disabled.' in result.text
    assert result.found.notes == ['Line 3: "include" directive disabled.']
    assert result.text.startswith("Before")
    assert result.text.endswith("After\n")


# -- bombs, each in a process of its own --

BOMBS = {
    "divs.html": "<div>" * 200_000,
    "divs.md": "text\n\n" + "<div>" * 200_000,
    "bold.html": "".join(f"<p><b title={n}>" for n in range(530)),  # the parser reopens each in each
    "quotes.md": ">" * 200_000 + " deep",
    "lists.md": "- " * 600 + "deep",
    "lists.rst": "- " * 260 + "deep\n",
}


@pytest.mark.parametrize("name", BOMBS)
def test_nesting_bomb_is_refused(name, put, tmp_path):
    source = put(name, BOMBS[name])
    with pytest.raises(ConversionRefused) as refused:
        convert_file(source, tmp_path / "target", "html")
    assert refused.value.code == Code.TOO_DEEP
    assert refused.value.message == f"{name} is nested too deeply: the limit is 500 levels."
    assert list(tmp_path.iterdir()) == [source]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("divs.html", "<div>" * 490 + "deep"),
        ("quotes.md", ">" * 490 + " deep"),
        ("lists.md", "- " * 240 + "deep"),  # a list and its item are two levels
        ("lists.rst", "- " * 60 + "deep\n"),
        ("brackets.md", "[" * 3000 + "deep"),
    ],
)
def test_depth_within_the_limit_is_converted_whole(name, content, put, tmp_path):
    convert_file(put(name, content), tmp_path / "target", "json")
    assert "deep" in json.loads((tmp_path / "target").read_text())["blocks"][0]["text"]


def test_letters_that_no_encoding_can_write_do_no_harm(become):
    text = ".. |u| unicode:: 0xD800\n.. |n| unicode:: 0x0\n\nbefore |u| |n| after\n"
    for to in ("html", "json", "text"):
        assert "after" in become("x.rst", text, to).text
    assert "after" in become("x.html", "&#0;&#xD800;&#27; after", "text").text
    assert "\x1b" not in become("x.html", "&#27; \x1b after", "html").text
