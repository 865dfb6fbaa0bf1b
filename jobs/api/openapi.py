"""What the views say of themselves, as one OpenAPI document (`python -m config.openapi` writes it).

docs/openapi.yaml is for people, jobs/static/jobs/openapi.json for the documentation page. A test compares
both with the views: no change of an address or a field goes unseen. Only this needs drf-spectacular.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.settings import patched_settings
from drf_spectacular.utils import OpenApiParameter

from jobs.api import links, schema
from jobs.api.artefacts import Bytes
from jobs.api.schema import FLAG, ID, TEXT, WHOLE, Schema, record

ROOT = Path(__file__).resolve().parents[2]
YAML = ROOT / "docs/openapi.yaml"
JSON = ROOT / "jobs/static/jobs/openapi.json"
HEADERS: dict[str, tuple[str, Schema]] = {
    "Idempotency-Key": ("The same key and body again give the same answer, and one job.", TEXT),
    "If-Match": ("The ETag of the version that you saw.", TEXT),
    "If-None-Match": ("The ETag that you have: 304 while it is still the one.", TEXT),
    "traceparent": ("The trace that this belongs to (W3C); one that is malformed is ignored.", TEXT),
}
PATHS: dict[str, Schema] = {"job_id": ID, "case_id": ID, "plan_id": ID, "attempt_id": ID}
PROBLEM = record(
    {
        "type": TEXT,
        "title": TEXT,
        "status": WHOLE,
        "code": TEXT,
        "detail": TEXT,
        "retryable": FLAG,
        "outcome": schema.words(["not_started", "unknown", "applied"]),
        "errors": schema.rows(
            {
                "type": "object",
                "properties": {"pointer": TEXT, "parameter": TEXT, "header": TEXT, "detail": TEXT},
                "required": ["detail"],
            }
        ),
    }
)


class Described(AutoSchema):
    """Reads what a view says of itself (jobs/api/view.py)."""

    def get_operation_id(self) -> str:
        words = re.findall(r"[a-z_]+", self.path.removeprefix("/api/v1/").replace("-", "_"))
        return "_".join([self.method.lower(), *words])

    def get_tags(self) -> list[str]:
        return [self.path.removeprefix("/api/v1/").partition("/")[0]]

    def get_description(self) -> str:  # type: ignore[override]  # as the class that it extends has it
        return " ".join((self.view.__class__.__doc__ or "").split())

    def get_override_parameters(self) -> list[Any]:
        found = [
            OpenApiParameter(name, PATHS.get(name, TEXT), OpenApiParameter.PATH, required=True)
            for name in re.findall(r"{(\w+)}", self.path)
        ]
        queries = getattr(self.view, "queries", {}).get(self.method, {})
        needed = getattr(self.view, "needed", ())
        found += [
            OpenApiParameter(name, told, OpenApiParameter.QUERY, required=name in needed)
            for name, told in queries.items()
        ]
        conditions = getattr(self.view, "conditions", {}).get(self.method, ())
        for name in conditions:
            description, told = HEADERS[name]
            found.append(OpenApiParameter(name, told, OpenApiParameter.HEADER, description=description))
        if {"If-Match", "If-None-Match"} & set(conditions):
            tag = "The version that this is, for If-Match and If-None-Match."
            codes = [
                *getattr(self.view, "answers", {})[self.method],
                *([304] if "If-None-Match" in conditions else []),
            ]
            found.append(
                OpenApiParameter(
                    "ETag", TEXT, OpenApiParameter.HEADER, required=True, description=tag, response=codes
                )
            )
        return found

    def get_request_serializer(self) -> Any:
        if self.view.parser_classes == (Bytes,):
            return {Bytes.media_type: {"type": "string", "format": "binary"}}
        body = getattr(self.view, "bodies", {}).get(self.method)
        return {"application/json": body.described() if body else {"type": "object"}}

    def _get_request_body(self, direction: Any = "request") -> Any:
        body = super()._get_request_body(direction)
        return body and body | {"required": True}

    def get_response_serializers(self) -> Any:
        told = getattr(self.view, "answers", {}).get(self.method, {200: schema.OBJECT})
        answers: dict[Any, Any] = dict(told)
        if "If-None-Match" in getattr(self.view, "conditions", {}).get(self.method, ()):
            answers[304] = None
        for code in ("4XX", "503"):
            answers[code, "application/problem+json"] = schema.ref("Problem")
        return answers

    def get_auth(self) -> list[Any]:
        scope = getattr(self.view, "scopes", {}).get(self.method)
        either = scope if isinstance(scope, tuple) else (scope,)
        return [*({"token": [one] if one else []} for one in either), {"session": []}]


def settings() -> dict[str, Any]:
    """Return how the document is made."""
    from jobs.api.cases import DOCUMENT
    from jobs.api.plans import PLAN
    from jobs.api.shape import FULL, LISTED

    return {
        "OAS_VERSION": "3.1.0",
        "TITLE": "Interlock",
        "VERSION": "1",
        "DESCRIPTION": "See docs/api.md.",
        "POSTPROCESSING_HOOKS": [],
        "APPEND_COMPONENTS": {
            "schemas": {
                "Job": record(LISTED),
                "JobInFull": record(FULL),
                "Case": record(DOCUMENT),
                "Plan": record(PLAN),
                "Problem": PROBLEM,
            },
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "`manage.py token create`"},
                "session": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": "sessionid",
                    "description": "A browser's log-in; whatever changes something sends X-CSRFToken too.",
                },
            },
        },
    }


def document() -> dict[str, Any]:
    """Return the description of the API as it is."""
    with patched_settings(settings()):
        made = SchemaGenerator(urlconf="config.urls").get_schema(request=None, public=True)
    plain: dict[str, Any] = json.loads(json.dumps(made, default=str))
    links.add(plain)
    return plain


def as_yaml(made: dict[str, Any]) -> str:
    """Return it as docs/openapi.yaml holds it."""
    import yaml

    class Plain(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            return True

    return yaml.dump(made, Dumper=Plain, sort_keys=False, allow_unicode=True, width=110)


def as_json(made: dict[str, Any]) -> str:
    """Return it as the documentation page reads it."""
    return json.dumps(made, ensure_ascii=False, separators=(",", ":")) + "\n"
