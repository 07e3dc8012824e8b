"""Texts of pages become numbers, prices, dates and booleans, or a typed problem."""

import pytest

from silkline.parse.field_values import Problem, boolean, converted, date, number, price


@pytest.mark.parametrize(
    ("text", "amount", "currency"),
    [
        ("1.234,56 €", 1234.56, "EUR"),
        ("$1,234.56", 1234.56, "USD"),
        ("JPY 1,200", 1200, "JPY"),
        ("¥1,200", 1200, "JPY"),
        ("1.299 €", 1299, "EUR"),
        ("€ 12,-", 12, "EUR"),
        ("12.\u2013 CHF", 12, "CHF"),
        ("1 234,50 zł", 1234.5, "PLN"),
        ("1\u202f234,50\u00a0€", 1234.5, "EUR"),
        ("CHF 1'234.50", 1234.5, "CHF"),
        ("₹1,23,456.78", 123456.78, "INR"),
        ("R$ 1.999,90", 1999.9, "BRL"),
        ("CA$5", 5, "CAD"),
        ("USD12.50", 12.5, "USD"),
        ("12EUR", 12, "EUR"),
        ("Price: 5.00 USD incl. tax", 5.0, "USD"),
        ("\uff11\uff12\uff13\u5186", 123, "JPY"),
        ("-5 £", -5, "GBP"),
        ("99", 99, None),
    ],
)
def test_prices(text: str, amount: float, currency: str | None) -> None:
    assert price(text) == (amount, currency)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,234", 1234),
        ("1.234", 1.234),
        ("0,125", 0.125),
        ("1.000.000", 1_000_000),
        ("12 345 678", 12_345_678),
        ("-5 %", -5),
        ("\u22125", -5),
        (".5", 0.5),
        ("500g", 500),
        ("1e5", 1e5),
        ("9" * 100, float("9" * 100)),
        ("\u0663\u066b\u0665", 3.5),
    ],
)
def test_numbers(text: str, value: float) -> None:
    assert number(text) == value


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "not_a_number"),
        ("none", "not_a_number"),
        ("1.2.3", "not_a_number"),
        ("1,2,3", "not_a_number"),
        ("1.2k", "not_a_number"),
        ("3.5 of 5", "several_numbers"),
        ("was $20, now $15", "several_numbers"),
        ("5-10 €", "several_numbers"),
        ("1" * 201, "not_a_number"),
        ("1e999", "not_a_number"),
        ("-1e999", "not_a_number"),
        ("1e999 EUR", "not_a_number"),
        ("1e3 EUR", "not_a_number"),
    ],
)
def test_no_number(text: str, error: str) -> None:
    assert number(text) == Problem(error)
    assert price(text) == Problem(error)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2024-03-12", "2024-03-12"),
        ("2024-03-12T10:11:12Z", "2024-03-12T10:11:12+00:00"),
        ("2024-03-12 10:11", "2024-03-12T10:11:00"),
        ("2024-03-12T10:11:12+0200", "2024-03-12T10:11:12+02:00"),
        ("Tue, 12 Mar 2024 10:11:12 GMT", "2024-03-12T10:11:12+00:00"),
        ("12 March 2024", "2024-03-12"),
        ("March 12th, 2024", "2024-03-12"),
        ("Published: Mar 12, 2024 at 3:05 pm", "2024-03-12T15:05:00"),
        ("12. März 2024", "2024-03-12"),
        ("le 1er août 2023", "2023-08-01"),
        ("3 de mayo de 2024", "2024-05-03"),
        ("12.03.2024 14:30", "2024-03-12T14:30:00"),
        ("31/12/2024", "2024-12-31"),
        ("12/31/2024", "2024-12-31"),
        ("2024/3/12", "2024-03-12"),
        ("20240312", "2024-03-12"),
    ],
)
def test_dates(text: str, value: str) -> None:
    assert date(text) == value


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("03/04/2024", "ambiguous_date"),
        ("yesterday", "not_a_date"),
        ("2024-13-45", "not_a_date"),
        ("31 February 2024", "not_a_date"),
        ("32.12.2024", "not_a_date"),
        ("5 apples 2024", "not_a_date"),
        ("99:99 12.03.2024", "not_a_date"),
        ("2" * 300, "not_a_date"),
        ("", "not_a_date"),
    ],
)
def test_no_date(text: str, error: str) -> None:
    assert date(text) == Problem(error)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("yes", True), ("True", True), ("1", True), ("Ja", True), ("no", False), ("0", False), ("Nein", False)),
        *(("In stock", True), ("In Stock (23 available)", True), ("Only 3 left in stock", True), ("Auf Lager", True)),
        *(("Out of stock", False), ("Not in stock", False), ("Sold out!", False), ("Nicht lieferbar", False)),
        *(("https://schema.org/InStock", True), ("http://schema.org/OutOfStock", False), ("PreOrder", False)),
        *(
            ("perhaps", Problem("not_a_boolean")),
            ("", Problem("not_a_boolean")),
            ("in stock" * 50, Problem("not_a_boolean")),
        ),
    ],
)
def test_booleans(text: str, value: bool | Problem) -> None:
    assert boolean(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("/a?b", "https://example.com/a?b"),
        ("c", "https://example.com/x/c"),
        ("//other.example/", "https://other.example/"),
        ("javascript:alert(1)", Problem("not_a_url")),
        ("mailto:a@b.example", Problem("not_a_url")),
    ],
)
def test_urls(text: str, value: str | Problem) -> None:
    assert converted(text, "url", "https://example.com/x/y") == value
