"""Each refusal of a server is told for what it is; only what cannot be reached is said not to be."""

import pytest

from confide.host.refusals import refusal

AT = 'connection failed: connection to server at "127.0.0.1", port 5432 failed: '
CASES = {
    AT + "FATAL:  sorry, too many clients already": "takes no more connections",
    AT + "FATAL:  remaining connection slots are reserved for roles with SUPERUSER": "takes no more connections",
    AT + 'FATAL:  too many connections for role "ann"': "takes no more connections",
    AT + "FATAL:  the database system is starting up": "starting up",
    AT + "FATAL:  the database system is shutting down": "shutting down",
    AT + "FATAL:  the database system is in recovery mode": "starting up",
    AT + 'FATAL:  password authentication failed for user "ann"': "refused the user or the password",
    AT + "fe_sendauth: no password supplied": "asks for a password",
    AT + 'FATAL:  no pg_hba.conf entry for host "10.0.0.1", user "ann", no encryption': "pg_hba.conf",
    AT + 'FATAL:  pg_hba.conf rejects connection for host "10.0.0.1", user "ann", no encryption': "pg_hba.conf",
    AT + 'FATAL:  database "x" is not currently accepting connections': "closed this database",
    AT + "FATAL:  could not load library": "its log says why",
    AT + 'FATAL:  permission denied for database "x"': "GRANT CONNECT",
    AT + 'FATAL:  role "ann" is not permitted to log in': "log in",
    AT + 'FATAL:  database "x" does not exist': "no such database",
    AT + 'FATAL:  role "ann" does not exist': "no such user",
    AT + "server does not support SSL, but SSL was required": "TLS",
    AT + "SSL error: certificate verify failed": "TLS",
    'root certificate file "/root/.postgresql/root.crt" does not exist': "TLS",
    "failed to resolve host 'nohost': [Errno -2] Name or service not known": "name of its host",
    "connection timeout expired": "did not answer in time",
    AT + "Connection refused": "check host, port and that it runs",
    'connection to server on socket "/nowhere/.s.PGSQL.5432" failed: No such file or directory': "check host, port",
    f"Multiple connection attempts failed: {AT}Connection refused - {AT}FATAL:  too many connections": "no more",
}


@pytest.mark.parametrize(("text", "words"), CASES.items())
def test_a_refusal_is_told_truly(text: str, words: str) -> None:
    found = refusal(text)
    assert words in found.words
    unreachable = any(sign in text for sign in ("refused", "resolve", "timeout", "No such file"))
    assert ("cannot be reached" in found.words) == (unreachable and "too many" not in text)
