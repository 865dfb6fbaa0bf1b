"""Documents: the same structure from whatever they were written in."""

import json

import pytest

MARKDOWN = """\
# Title

Some *text* with a [link](https://a.example/x).

- one
  - inner
- two

> said

```python
x = 1

y = 2
```

| a | b |
|---|--:|
| 1 | 2 |
"""
RST = """\
Title
=====

Some *text* with a `link <https://a.example/x>`_.

- one

  - inner

- two

..

    said

.. code:: python

   x = 1

   y = 2

= =
a b
= =
1 2
= =
"""
HTML = """\
<title>Title</title><h1>Title</h1><p>Some <i>text</i> with a <a href="https://a.example/x">link</a>.
<ul><li>one<ul><li>inner</ul><li>two</ul><blockquote>said</blockquote>
<pre><code class="language-python">x = 1

y = 2</code></pre>
<table><tr><th>a<th>b<tr><td>1<td>2</table>
"""
BLOCKS = [
    {"kind": "heading", "level": 1, "text": "Title"},
    {"kind": "paragraph", "text": "Some text with a link."},
    {"kind": "item", "depth": 1, "marker": "-", "text": "one"},
    {"kind": "item", "depth": 2, "marker": "-", "text": "inner"},
    {"kind": "item", "depth": 1, "marker": "-", "text": "two"},
    {"kind": "quote", "depth": 1, "text": "said"},
    {"kind": "code", "language": "python", "text": "x = 1\n\ny = 2"},
    {"kind": "table", "columns": ["a", "b"], "rows": [["1", "2"]]},
]


@pytest.mark.parametrize(("name", "content"), [("d.md", MARKDOWN), ("d.rst", RST), ("d.html", HTML)])
def test_structure_does_not_depend_on_the_language_it_was_written_in(name, content, become):
    document = json.loads(become(name, content, "json").text)
    assert document["title"] == "Title"
    assert document["blocks"] == BLOCKS
    assert document["headings"] == [{"level": 1, "text": "Title"}]
    assert document["links"] == [{"text": "link", "target": "https://a.example/x"}]
    assert document["counts"] == {
        "words": 20,
        "blocks": 8,
        "headings": 1,
        "paragraphs": 2,
        "tables": 1,
        "links": 1,
    }


@pytest.mark.parametrize(("name", "content"), [("d.md", MARKDOWN), ("d.rst", RST), ("d.html", HTML)])
def test_text_reads_like_a_letter(name, content, become):
    assert become(name, content, "text").text.startswith(
        "Title\n=====\n\nSome text with a link.\n\n- one\n  - inner\n- two\n\n> said\n\n"
        "    x = 1\n\n    y = 2\n\na  b\n-  -\n1  2\n\nLinks\n-----\nlink: https://a.example/x\n"
    )


def test_plain_text_keeps_its_layout(become):
    text = "First line\nsecond line\n\n  col    umns\n  1      2\n\nEnd & <over>\n"
    assert become("d.txt", text, "text").text == text
    page = become("d.txt", text, "html").text
    assert "<p>First line<br>second line</p>" in page
    assert "<pre>  col    umns\n  1      2</pre>" in page
    assert "<p>End &amp; &lt;over&gt;</p>" in page


def test_long_plain_text_is_cleaned_in_parts_and_stays_whole(become, monkeypatch):
    monkeypatch.setattr("demo.convert.from_text.PART_CHARS", 100)
    result = become("d.txt", "word " * 99 + "\n\n" + ("line of text\n" * 3 + "\n") * 50, "html")
    assert result.found.counts["paragraphs"] == 51
    assert result.text.count("line of text") == 150


def test_numbered_list_counts_from_its_start(become):
    items = json.loads(become("d.md", "3. c\n4. d\n", "json").text)["blocks"]
    assert [item["marker"] for item in items] == ["3.", "4."]


def test_table_within_a_cell_is_text_of_that_cell(become):
    html = "<table><tr><td>a<table><tr><td>b<td>c</table>d<td>e</table>"
    assert json.loads(become("d.html", html, "json").text)["blocks"] == [
        {"kind": "table", "columns": [], "rows": [["a b c d", "e"]]}
    ]


def test_alignment_of_a_markdown_column_survives_without_a_style(become):
    page = become("d.md", MARKDOWN, "html").text
    assert '<td align="right">2</td>' in page
    assert "style=" not in page


def test_document_without_a_heading_is_called_by_its_file_name(become):
    assert become("minutes.md", "hello", "json").found.title == "minutes"


def test_html_that_announces_another_encoding_is_read_as_what_it_is(become):
    html = '<?xml version="1.0" encoding="latin-1"?><meta charset="iso-8859-1"><p>Ærø</p>'
    assert "<p>Ærø</p>" in become("d.html", html, "html").text


def test_what_is_left_out_is_noted(become):
    notes = become(
        "d.html", "<p>x<script>1</script><svg></svg><img src=http://a.example/b.png>", "html"
    ).found.notes
    assert notes == [
        "Left out: 1 × image that the document does not carry itself.",
        "Left out: 1 × script.",
        "Left out: 1 × svg.",
    ]


def test_image_shows_its_text_unless_the_document_carries_it(become):
    dot = "data:image/png;base64,iVBORw0KGgo="
    page = become("d.md", f"![far](https://a.example/b.png) ![near]({dot})", "html").text
    assert '<img alt="far">' in page
    assert f'<img src="{dot}" alt="near">' in page
    assert "[image: far]" in become("d.md", "![far](https://a.example/b.png)", "text").text
