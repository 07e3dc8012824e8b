"""What is remembered of URLs has a limit of characters, not of URLs."""

from silkline.crawl.url_memory import UrlMemory


def test_the_oldest_are_dropped_when_their_characters_are_too_many() -> None:
    memory = UrlMemory[int](100_000)
    for number in range(100):
        memory.put(f"https://a.example/{number:08000}", number)
    assert len(memory) == 12
    assert f"https://a.example/{99:08000}" in memory
    assert memory.pop(f"https://a.example/{99:08000}") == 99
    assert memory.pop(f"https://a.example/{0:08000}") is None


def test_short_urls_have_more_room_and_values_count() -> None:
    memory = UrlMemory[str](100_000)
    for number in range(1_000):
        memory.put(f"https://a.example/{number}", "x")
    assert 400 < len(memory) < 500
    for number in range(100):
        memory.put(f"https://b.example/{number}", "y" * 8_000, 8_000)
    assert len(memory) == 12


def test_a_url_that_is_put_again_counts_once() -> None:
    memory = UrlMemory[int](1_000)
    for number in range(100):
        memory.put("https://a.example/", number)
        memory.put("https://b.example/", number)
    assert len(memory) == 2
    assert memory.pop("https://a.example/") == 99
    assert memory.pop("https://a.example/") is None
    for number in range(4):
        memory.put(f"https://c.example/{number}", number)
    assert len(memory) == 4, "what was taken leaves room"
