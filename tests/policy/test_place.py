import pytest

from confide.policy.place import has_password, without_password


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://ann:s3cret@host:5432/db", "postgresql://ann:***@host:5432/db"),
        ("postgresql://ann:p@ss:w@host/db", "postgresql://ann:***@host/db"),
        ("postgresql://:s3cret@host/db", "postgresql://:***@host/db"),
        (
            "postgresql://host/db?user=ann&password=s3cret&sslmode=require",
            "postgresql://host/db?user=ann&password=***&sslmode=require",
        ),
        ("postgresql://host/db?sslpassword=s3cret", "postgresql://host/db?sslpassword=***"),
        ("postgresql://ann@host/db", "postgresql://ann@host/db"),
        ("postgresql://host:5432/db", "postgresql://host:5432/db"),
        ("sc://host:15002/;token=s3cret;user_id=ann", "sc://host:15002/;token=***;user_id=ann"),
        ("people.duckdb", "people.duckdb"),
        ("C:\\data\\a@b.duckdb", "C:\\data\\a@b.duckdb"),
    ],
)
def test_passwords_are_not_shown(address: str, shown: str) -> None:
    assert without_password(address) == shown
    assert has_password(address) is (address != shown)
