"""The settings: each is read from the environment once, here, and is described where it is read.

docs/settings.md is printed from this file (`python -m config.describe`), and a test compares them.
"""

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

from config import env as environment
from config import logs
from config.env import REQUIRED

BASE_DIR = Path(__file__).resolve().parent.parent
env = environment.read()

# ── Who may reach us, and how ────────────────────────────────────────────────────────────────────────────
DEBUG = env.flag("DEBUG", False, "Error pages with source, and no caching of files. Never on a network.")
SECRET_KEY = env.text("SECRET_KEY", REQUIRED, "Signs sessions and tokens of forms.", least=32)
SECRET_KEY_FALLBACKS = env.words(
    "SECRET_KEY_FALLBACKS",
    "",
    "Former values of SECRET_KEY, comma-separated: still read, never used to sign.",
)
AUDIT_KEY = env.text("AUDIT_KEY", REQUIRED, "Seals the chain of audit entries.", least=32)
AUDIT_OLD_KEYS = env.words(
    "AUDIT_OLD_KEYS",
    "",
    "Former values of AUDIT_KEY, comma-separated: older entries are verified with them, none is sealed.",
)
if any(len(key) < 32 for key in AUDIT_OLD_KEYS):
    raise environment.SettingError("AUDIT_OLD_KEYS must hold keys of at least 32 characters.")
if "," in AUDIT_KEY or AUDIT_KEY.strip() != AUDIT_KEY:
    # It could never become an old one.
    raise environment.SettingError("AUDIT_KEY must hold no comma, and no blank at its ends.")
ALLOWED_HOSTS = env.words(
    "ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]", "Host names we answer to, comma-separated."
)
CSRF_TRUSTED_ORIGINS = env.words(
    "CSRF_TRUSTED_ORIGINS", "", "Origins (https://…) whose forms we accept beside our own, comma-separated."
)
for _origin in CSRF_TRUSTED_ORIGINS:
    if not _origin.startswith(("https://", "http://")):
        raise environment.SettingError(
            f"CSRF_TRUSTED_ORIGINS must hold origins that begin with https:// or http://, not {_origin!r}."
        )
HTTPS_ONLY = env.flag(
    "HTTPS_ONLY", False, "Redirect to https, cookies over https only, HSTS. On in production."
)
HSTS_SECONDS = env.number(
    "HSTS_SECONDS",
    31_536_000,
    "How long browsers remember HTTPS_ONLY.",
    least=0,
    most=63_072_000,
)
HSTS_SUBDOMAINS = env.flag(
    "HSTS_SUBDOMAINS", False, "HSTS also for every subdomain, and for the preload list."
)
BEHIND_PROXY = env.flag(
    "BEHIND_PROXY", False, "Believe X-Forwarded-Proto. Only where a proxy sets it on every request."
)

SECURE_SSL_REDIRECT = SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = LANGUAGE_COOKIE_SECURE = HTTPS_ONLY
# A load balancer asks over plain http from inside.
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$", r"^metrics$"]
SECURE_HSTS_SECONDS = HSTS_SECONDS if HTTPS_ONLY else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = HTTPS_ONLY and HSTS_SUBDOMAINS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if BEHIND_PROXY else None
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
# No inline script or style anywhere: what a job's name or error text smuggles into a page stays text.
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'self'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'"],
        "connect-src": ["'self'"],
        "object-src": ["'none'"],
        "base-uri": ["'none'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
    }
}

# ── Sessions ─────────────────────────────────────────────────────────────────────────────────────────────
SESSION_COOKIE_AGE = env.number(
    "SESSION_SECONDS", 43_200, "Longest session, whatever its owner does.", least=60, most=2_592_000
)
SESSION_IDLE_SECONDS = env.number(
    "SESSION_IDLE_SECONDS",
    3_600,
    "A session ends after this long without a person.",
    least=60,
    most=2_592_000,
)
SESSION_ENGINE = "config.sessions"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = LANGUAGE_COOKIE_SAMESITE = "Lax"
LOGIN_URL = "/login/"
# A name that fails too often from one address is locked out there for a while; others log in meanwhile.
AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"]
AXES_FAILURE_LIMIT = env.number(
    "LOGIN_FAILURES",
    5,
    "Wrong passwords of one name from one address until it is locked out.",
    least=1,
    most=1000,
)
AXES_COOLOFF_TIME = timedelta(
    seconds=env.number(
        "LOGIN_LOCKOUT_SECONDS",
        900,
        "How long it is locked out, from its last wrong password.",
        least=1,
        most=86_400,
    )
)
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_LOCKOUT_CALLABLE = "console.errors.locked_out"
# What the lock-out page promises stays true, whoever goes on trying.
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_RESET_ON_SUCCESS = True
AXES_DISABLE_ACCESS_LOG = True
AXES_ENABLE_ADMIN = False
AXES_VERBOSE = False
REQUIRE_SECOND_FACTOR = env.flag(
    "REQUIRE_SECOND_FACTOR",
    False,
    "Staff without a second factor (codes from an app) are led to enrolling one before anything else.",
)
OTP_TOTP_ISSUER = "Interlock"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]

# ── Database ─────────────────────────────────────────────────────────────────────────────────────────────
_database = env.database(
    "DATABASE_URL",
    REQUIRED,
    "`sqlite:///var/interlock.sqlite3` (a file) or `postgresql://user:password@host/name`, also with "
    "`?host=/socket/folder`, several hosts, and any other option of libpq.",
)
EMBEDDED = _database["ENGINE"].endswith("sqlite3")
DATABASE_DIRECT_URL = env.text(
    "DATABASE_DIRECT_URL",
    "",
    "The same PostgreSQL without the connection pooler that DATABASE_URL goes through: a worker "
    "listens there for new jobs.",
)
if DATABASE_DIRECT_URL:
    _direct = environment.parse_database("DATABASE_DIRECT_URL", DATABASE_DIRECT_URL)
    if _direct["ENGINE"] != _database["ENGINE"] or EMBEDDED:
        raise environment.SettingError("DATABASE_DIRECT_URL is for PostgreSQL, as is DATABASE_URL.")

# Also for the throw-away file of a drill, whatever the product itself runs on.
SQLITE_OPTIONS = {
    # A transaction that reads first and writes later fails at once under contention, whatever the
    # timeout; one that takes the write lock at BEGIN waits its turn.
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    # FULL: a commit we acknowledged survives a power cut.
    # Row lists in passing need no file, and a batch of 500 jobs touches more pages than the default keeps.
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON;"
    " PRAGMA temp_store=MEMORY; PRAGMA cache_size=-8000",
}
if EMBEDDED:
    try:
        Path(_database["NAME"]).parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise environment.SettingError(
            f"DATABASE_URL names {_database['NAME']}, whose folder cannot be made ({error.strerror})."
        ) from None
    _database["OPTIONS"] = SQLITE_OPTIONS
    # Tests need a file too: threads and processes meet in it. The id keeps two runs apart.
    _database["TEST"] = {"NAME": f"{_database['NAME']}.test-{os.getpid()}"}
else:
    _database["OPTIONS"] = {
        # All of these are the client's own. Nothing is SET on the session and nothing rides on the start-up
        # packet's `options`: a transaction pooler refuses the one and leaks the other to strangers.
        "connect_timeout": "5",
        "keepalives_idle": "30",
        "keepalives_interval": "5",
        "keepalives_count": "3",
        "tcp_user_timeout": "30000",
        "application_name": "interlock",
        **_database["OPTIONS"],
        # The fence is proven at this level; a server's own default must not raise it.
        "isolation_level": 2,  # psycopg.IsolationLevel.READ_COMMITTED
    }
    # A cursor on the server does not survive a transaction pooler.
    _database["DISABLE_SERVER_SIDE_CURSORS"] = bool(DATABASE_DIRECT_URL)

DATABASES: dict[str, dict[str, Any]] = {
    "default": {
        **_database,
        # Held for good and checked before use: after an outage the next use reconnects, in milliseconds. A
        # pool would stall there, and opening one for each use costs fifty times the query.
        "CONN_MAX_AGE": None,
        "CONN_HEALTH_CHECKS": True,
        # A job's transaction begins and ends where the ledger says.
        "ATOMIC_REQUESTS": False,
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# ── Limits ───────────────────────────────────────────────────────────────────────────────────────────────
KIB, MIB = 1024, 1024 * 1024


def _limit(name: str, default: int, meaning: str, *, least: int = 1, most: int) -> int:
    return env.number(f"INTERLOCK_{name}", default, meaning, least=least, most=most)


def _rate(name: str, default: int, which: str) -> int:
    meaning = f"Requests {which}, a second, of one caller and one web process; 0 for no limit."
    return _limit(f"RATE_{name}", default, meaning, least=0, most=1_000_000)


INTERLOCK: dict[str, int] = {
    "LEASE_SECONDS": _limit(
        "LEASE_SECONDS", 60, "How long a claim is good for without renewal.", most=86_400
    ),
    "HEARTBEAT_SECONDS": _limit(
        "HEARTBEAT_SECONDS", 15, "How often a worker renews; at most a third of the lease.", most=28_800
    ),
    "ARGUMENT_BYTES": _limit(
        "ARGUMENT_BYTES", 256 * KIB, "Longest arguments of a job, as JSON.", most=16 * MIB
    ),
    "RESULT_BYTES": _limit(
        "RESULT_BYTES",
        256 * KIB,
        "Longest result kept in the database; beyond it, an artefact.",
        most=16 * MIB,
    ),
    "BODY_BYTES": _limit("BODY_BYTES", 1 * MIB, "Longest body of a request.", least=KIB, most=64 * MIB),
    "BATCH_BYTES": _limit("BATCH_BYTES", 8 * MIB, "Longest body of a batch.", least=KIB, most=256 * MIB),
    "ARTEFACT_BYTES": _limit(
        "ARTEFACT_BYTES", 64 * MIB, "Longest file that a remote worker uploads.", most=4096 * MIB
    ),
    "DEPTH": _limit("DEPTH", 32, "Deepest nesting of JSON we take.", most=200),
    # The column is as wide as the default; more would be a migration.
    "KEY_CHARACTERS": _limit("KEY_CHARACTERS", 200, "Longest key of a job.", least=8, most=200),
    "ERROR_BYTES": _limit("ERROR_BYTES", 8 * KIB, "Longest error text kept; the rest is cut.", most=MIB),
    "TRACEBACK_BYTES": _limit(
        "TRACEBACK_BYTES", 32 * KIB, "Longest traceback kept; the rest is cut.", most=MIB
    ),
    "LOG_LINES": _limit("LOG_LINES", 200, "Log lines kept of one attempt.", least=0, most=10_000),
    "LOG_LINE_BYTES": _limit(
        "LOG_LINE_BYTES", 2 * KIB, "Longest log line kept; the rest is cut.", most=64 * KIB
    ),
    "PAGE_ROWS": _limit("PAGE_ROWS", 200, "Most rows of one page of a list.", most=1_000),
    "PLAN_ROWS": _limit("PLAN_ROWS", 10_000, "Most jobs of one mass action.", most=100_000),
    "WAIT_SECONDS": _limit(
        "WAIT_SECONDS", 30, "Longest that a request of the API may wait for news.", least=0, most=50
    ),
    "RATE_READ": _rate("READ", 100, "that look"),
    "RATE_ENQUEUE": _rate("ENQUEUE", 1000, "that enqueue"),
    "RATE_WORKER": _rate("WORKER", 1000, "of a worker"),
    "RATE_OPERATE": _rate("OPERATE", 20, "that operate: cancel, retry, rule, pause, …"),
    "RECENT_LOGIN_SECONDS": _limit(
        "RECENT_LOGIN_SECONDS",
        900,
        "How long a log-in counts as recent, for what asks one: raising the epoch, a force cancel, ruling "
        "that an effect did not happen.",
        least=60,
        most=86_400,
    ),
    "RAISE_SECOND_PERSON": env.flag(
        "INTERLOCK_RAISE_SECOND_PERSON",
        False,
        "Raising the epoch takes two people: one asks, another who may raise it or approve rulings confirms.",
    ),
    "REPORT_SECONDS": _limit(
        "REPORT_SECONDS",
        30,
        "How long a worker tries to write down what became of an effect before it keeps that on disk.",
        least=0,
        most=3_600,
    ),
}
WORKER_VERSION = env.text(
    "INTERLOCK_VERSION",
    "",
    "The release of your code (`8.4.1`, a commit), as workers write it down and the drain compares it. "
    "Empty for the version of Python.",
)
SPOOL = env.folder(
    "INTERLOCK_SPOOL",
    "var/spool",
    "Folder in which a worker keeps reports of effects that the database did not hear.",
)
FAILPOINTS = env.text(
    "INTERLOCK_FAILPOINTS",
    "",
    "Where a test makes a worker die, stop or fail (`commit.before=kill`, see docs/workers.md).",
)
_failpoints_allowed = env.flag(
    "INTERLOCK_ALLOW_FAILPOINTS", False, "Let INTERLOCK_FAILPOINTS take effect. Never with HTTPS_ONLY."
)
env.refuse_strangers("INTERLOCK_")
if FAILPOINTS and (HTTPS_ONLY or not _failpoints_allowed):
    # Left in the environment of a server that people use, it would kill workers for no reason to be found.
    raise environment.SettingError(
        "INTERLOCK_FAILPOINTS is for tests only: set INTERLOCK_ALLOW_FAILPOINTS=1, and HTTPS_ONLY=0."
    )
if INTERLOCK["HEARTBEAT_SECONDS"] * 3 > INTERLOCK["LEASE_SECONDS"]:
    # Two lost beats must not cost a healthy worker its lease.
    raise environment.SettingError(
        "INTERLOCK_HEARTBEAT_SECONDS must be at most a third of INTERLOCK_LEASE_SECONDS."
    )
DATA_UPLOAD_MAX_MEMORY_SIZE = INTERLOCK["BODY_BYTES"]

# ── What the site is made of ─────────────────────────────────────────────────────────────────────────────
DEMO = env.flag(
    "DEMO",
    EMBEDDED,
    "The demonstration kinds and pages (document conversion, billing).",
    shown="1 on SQLite, else 0",
)
DEMO_PROVIDER_URL = env.text(
    "DEMO_PROVIDER_URL",
    "",
    "The payment service that the demonstration charges with; `make demo` starts one where this is empty.",
)
if DEMO_PROVIDER_URL and not DEMO_PROVIDER_URL.startswith(("http://", "https://")):
    raise environment.SettingError("DEMO_PROVIDER_URL must start with http:// or https://.")
DEMO_MAIL = env.folder("DEMO_MAIL", "var/mail", "Where the demonstration puts its mail, one file each.")
if DEMO:
    # It writes to invented people: their mail is kept in files.
    EMAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
    EMAIL_FILE_PATH = DEMO_MAIL
INSTALLED_APPS = [
    # Before the admin, whose templates it overrides.
    "console",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.forms",
    "rest_framework",
    "django_filters",
    "django_htmx",
    "csp",
    "axes",
    "django_otp",
    "django_otp.plugins.otp_totp",
    "jobs",
    *(["demo"] if DEMO else []),
]
# Fields are drawn by templates/django/forms where there is one, which makes a case a tenth quicker.
FORM_RENDERER = "django.forms.renderers.TemplatesSetting"
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    # Around all that uses the database, sessions too.
    "config.fresh.FreshConnectionMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    # Within the one that says how long an answer is.
    "console.turned.TurnedTextMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "config.idle.IdleSessionMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    # Last: it turns the answer to a locked-out log-in into the page that says so.
    "axes.middleware.AxesMiddleware",
]
ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
REST_FRAMEWORK = {
    # Closed unless a view names a scope for the method.
    "DEFAULT_PERMISSION_CLASSES": ["jobs.api.auth.Scoped"],
    # The first one also says how to authenticate, in a 401.
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "jobs.api.auth.BearerToken",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_THROTTLE_CLASSES": ["jobs.api.rates.Budgets"],
    "DEFAULT_PARSER_CLASSES": ["jobs.api.limits.StrictJSONParser"],
    "EXCEPTION_HANDLER": "jobs.api.problems.handle",
    # Loaded when docs/openapi.yaml is written, and never by a server.
    "DEFAULT_SCHEMA_CLASS": "jobs.api.openapi.Described",
    # As escapes: text that no encoder writes still leaves the list that it is in readable.
    "UNICODE_JSON": False,
    # An unknown name in a query is refused, and so is this one.
    "URL_FORMAT_OVERRIDE": None,
}

# ── Time, language, files ────────────────────────────────────────────────────────────────────────────────
USE_TZ = True
TIME_ZONE = "UTC"
USE_I18N = True
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文")]
LANGUAGE_CODE = env.choice(
    "LANGUAGE_CODE",
    "en",
    [code for code, _name in LANGUAGES],
    "`en` or `zh-hans`: of commands, and of the console where neither a person nor a browser asks for one.",
)
LOCALE_PATHS = [BASE_DIR / "locale"]
# What a person chose in the console stays with the browser, beyond the log-out.
LANGUAGE_COOKIE_AGE = 365 * 24 * 3600
LANGUAGE_COOKIE_HTTPONLY = True
MEDIA_ROOT = env.folder("MEDIA_ROOT", "var/media", "Where results that are files are kept.")
STATIC_ROOT = env.folder(
    "STATIC_ROOT", "var/static", "Where style sheets and scripts are gathered for serving."
)
STATIC_URL = "/static/"
STATIC_HASHED = env.flag(
    "STATIC_HASHED",
    not DEBUG,
    "Serve gathered, compressed files under names that change with their content.",
    shown="1, with DEBUG 0",
)
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"
        if STATIC_HASHED
        else "django.contrib.staticfiles.storage.StaticFilesStorage"
    },
}
WHITENOISE_USE_FINDERS = not STATIC_HASHED

# ── Logs ─────────────────────────────────────────────────────────────────────────────────────────────────
LOGGING = logs.configure(
    style=env.choice(
        "LOG_FORMAT",
        "plain" if DEBUG else "json",
        ["json", "plain"],
        "json or plain lines on stderr.",
        shown="json, with DEBUG plain",
    ),
    level=env.choice(
        "LOG_LEVEL", "INFO", ["DEBUG", "INFO", "WARNING", "ERROR"], "Least grave event that is logged."
    ),
)

# ── The web server (read by config.serve) ────────────────────────────────────────────────────────────────
WEB_HOST = env.text("WEB_HOST", "127.0.0.1", "Address that `make run` and `make demo` listen on.", least=1)
WEB_PORT = env.number(
    "WEB_PORT", 8000, "Port they try first; when taken, the next free.", least=1, most=65_535
)
WEB_PROCESSES = env.number("WEB_PROCESSES", 1, "Web server processes.", least=1, most=64)
WEB_THREADS = env.number("WEB_THREADS", 16, "Threads of each: requests served at a time.", least=1, most=256)

SILENCED_SYSTEM_CHECKS: list[str] = []
