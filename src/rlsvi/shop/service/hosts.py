"""Tokens and hosts: what a token may be, how a host is written, and which are refused without a token.

A service without a token listens on loopback, and still any web page can make the browser send requests to it. A
page of another site names itself in the header Origin. One whose name was made to point to 127.0.0.1 has that name
in the header Host.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from ipaddress import ip_address

REMEDY = "or set a token, with which any host may ask"


def foreign(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """Return why a service without a token refuses a request with these headers; None if it does not.

    Host must be localhost or a loopback address, with any port, and Origin, if there is one, must be the same. A
    request without Host passes: browsers always send it.
    """
    host = origin = None
    for name, value in headers:
        if name == b"host":
            host = value
            if not is_loopback(value):
                return f"without a token, Host must be localhost or a loopback address: ask there, {REMEDY}"
        elif name == b"origin":
            origin = value
    if origin is not None and (host is None or origin.lower().partition(b"://")[2] != host.lower()):
        return f"without a token, pages of other sites may not ask: the header Origin differs from Host; {REMEDY}"
    return None


def checked_token(token: str, name: str = "token") -> str:
    """Return a token if a header can show it: printable ASCII characters without spaces."""
    if not isinstance(token, str) or not re.fullmatch("[!-~]+", token):
        raise ValueError(
            f"{name} must be a text of printable ASCII characters without spaces: choose another token"
        )
    return token


def url_of(host: str, port: int) -> str:
    """Return the URL of a service; an address of IPv6 is in brackets there."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@lru_cache(maxsize=64)
def is_loopback(host: bytes) -> bool:
    """Return whether a header Host is localhost, an address in 127.0.0.0/8 or [::1], with any port or none."""
    name, colon, port = host.decode("latin-1").lower().rpartition(":")
    if not colon or port.endswith("]"):  # no port
        name, port = host.decode("latin-1").lower(), ""
    if not (port.isascii() and port.isdigit()) and port:
        return False
    if name == "localhost":
        return True
    address = name[1:-1] if name.startswith("[") and name.endswith("]") else name
    if (":" in address) != (address != name):  # an address of IPv6, and no other, is in brackets
        return False
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False
