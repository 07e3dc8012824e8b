"""How deep a crawl may go, level by level."""

from silkline.crawl.depth_levels import PATIENCE, Levels


def test_without_a_limit_there_are_no_levels() -> None:
    levels = Levels(limited=False, now=0.0)
    levels.add(5)
    assert levels.current is None
    assert not levels.advance(0.0)


def test_a_level_opens_when_the_one_above_is_done() -> None:
    levels = Levels(limited=True, now=0.0)
    levels.add(0)
    levels.add(1, 2)
    assert not levels.advance(0.0)
    levels.end(0, 1.0)
    assert levels.advance(1.0)
    assert levels.current == 1


def test_levels_with_nothing_in_them_are_passed_over() -> None:
    levels = Levels(limited=True, now=0.0)
    levels.add(3)
    assert levels.advance(0.0)
    assert levels.current == 3


def test_a_level_that_stands_still_does_not_hold_up_the_rest() -> None:
    levels = Levels(limited=True, now=0.0)
    levels.add(0)
    levels.add(1)
    assert not levels.advance(PATIENCE)
    assert levels.advance(PATIENCE + 0.1)
    assert levels.current == 1


def test_an_opened_level_stays_open() -> None:
    levels = Levels(limited=True, now=0.0)
    levels.add(1)
    levels.advance(0.0)
    levels.add(0)
    assert not levels.advance(1.0)
    assert levels.current == 1


def test_a_shorter_path_moves_a_url_to_its_level() -> None:
    levels = Levels(limited=True, now=0.0)
    levels.add(1)
    levels.add(3)
    levels.advance(0.0)
    assert (levels.current, levels.sure()) == (1, 1)
    levels.move(3, 2)
    levels.end(1, 1.0)
    levels.advance(1.0)
    assert (levels.current, levels.sure()) == (2, 2)


def test_a_level_that_rose_without_progress_is_not_sure() -> None:
    levels = Levels(limited=True, now=0.0)
    levels.add(0)
    levels.add(1)
    levels.advance(PATIENCE + 1)
    assert (levels.current, levels.sure()) == (1, 0)
