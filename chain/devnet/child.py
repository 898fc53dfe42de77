"""The environment of a child process: what it needs to run, and nothing that names a provider, a node or a key.

Shapes: a list of what is handed on, so that a secret of tomorrow is not handed on either.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

RUNNING = frozenset("PATH HOME USER LOGNAME LANG LANGUAGE TERM TMPDIR TEMP TMP TZ LD_LIBRARY_PATH DYLD_LIBRARY_PATH SYSTEMROOT".split())
"""What any program needs."""
PYTHON = frozenset("VIRTUAL_ENV PYTHONPATH PYTHONHOME PYTHONDONTWRITEBYTECODE PYTHONHASHSEED REFEREE_TOOLCHAIN".split())
"""What a Python process of this project needs beside."""
INSTALLING = frozenset(
    "HTTP_PROXY HTTPS_PROXY NO_PROXY ALL_PROXY SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE NODE_EXTRA_CA_CERTS XDG_CACHE_HOME XDG_CONFIG_HOME".split()
)
"""How an installer reaches its registry; npm's and pip's own settings, which begin with their names, are handed on too."""
INSTALLERS = ("NPM_CONFIG_", "PIP_")


def environment(*, python: bool = False, installing: bool = False, given: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What is handed on of an environment."""
    wanted = RUNNING | (PYTHON if python else frozenset()) | (INSTALLING if installing else frozenset())
    return {name: value for name, value in given.items() if _is_wanted(name.upper(), wanted, installing)}


def _is_wanted(name: str, wanted: frozenset[str], installing: bool) -> bool:
    return name in wanted or name.startswith("LC_") or installing and name.startswith(INSTALLERS)
