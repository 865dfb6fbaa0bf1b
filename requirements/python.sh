#!/bin/sh
# Prints the Python that `make` builds its environments with: python3, unless that one was compiled without
# profile-guided optimisation, as version managers do by default, and the system's own will do. Everything takes
# longer with such a one (docs/benchmarks.md).
built_slow='
import sysconfig
arguments = sysconfig.get_config_var("CONFIG_ARGS")
exit(0 if arguments is not None and "--enable-optimizations" not in arguments else 1)
'
usable='
import ensurepip, sys, venv
exit(0 if sys.version_info >= (3, 11) else 1)
'
system=/usr/bin/python3
if python3 -c "$built_slow" 2>/dev/null && "$system" -c "$usable" 2>/dev/null; then
    echo "$system"
else
    echo python3
fi
