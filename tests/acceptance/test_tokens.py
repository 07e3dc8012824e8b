"""`silkline tokens`: made once, shown without its secret, taken back."""

from tests.acceptance.conftest import Silkline


def test_a_token_is_made_listed_and_taken_back(on_both: Silkline) -> None:
    made = on_both("tokens", "add", "browser", "--scope", "write")
    assert made.code == 0, made
    token = made.out.strip()
    prefix, id, secret = token.split("_", 2)
    assert (prefix, len(id)) == ("silk", 16)
    listed = on_both("tokens", "ls")
    assert id in listed.out
    assert "browser" in listed.out
    assert secret not in on_both("tokens", "ls", "--json").out + listed.out
    assert on_both("tokens", "rm", id).code == 0
    assert on_both("tokens", "rm", id).code == 5
    assert on_both("tokens", "ls", "--json").json == []


def test_a_token_has_one_of_three_scopes(silkline: Silkline) -> None:
    silkline("tokens", "add", "x", "--scope", "everything").refused(2, "everything")


def test_a_token_is_removed_by_its_name_if_only_one_has_it(silkline: Silkline) -> None:
    for name in ("browser", "phone", "phone"):
        assert silkline("tokens", "add", name).code == 0
    removed = silkline("tokens", "rm", "browser")
    assert (removed.code, removed.out) == (0, "")
    assert "(browser) is no longer valid." in removed.err
    silkline("tokens", "rm", "phone").refused(1, "2 tokens have the name phone", "silkline tokens ls")
    assert [token["name"] for token in silkline("tokens", "ls", "--json").json] == ["phone", "phone"]
    silkline("tokens", "rm", "browser").refused(5, "no token browser")
