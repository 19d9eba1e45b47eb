from xml.etree import ElementTree as ET

import pytest
from bench.chart import Bar, Curve, Scale, bars, curves, number


@pytest.mark.parametrize(
    ("value", "text"), [(0.01234, "0.0123"), (5, "5"), (12.345, "12.3"), (999.6, "1e+03"), (41999.7, "42 000")]
)
def test_number_has_three_digits(value: float, text: str) -> None:
    assert number(value) == text.replace("1e+03", "1 000")


def test_scale_decades_have_equal_width() -> None:
    scale = Scale([1.2, 800], 0, 300)
    assert [round(scale(tick)) for tick in scale.ticks()] == [0, 100, 200, 300]


def test_bars_name_every_bar_and_draw_limit() -> None:
    drawn = bars("read <a> file", "ms", [Bar("peer & co", 2, 1, 3), Bar("ours", 1, 1, 1, "handrail")], ("bare", 0.5))
    root = ET.fromstring(drawn)
    words = [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert words.index("ours") < words.index("peer & co")
    assert "limit: bare 0.5" in words
    assert drawn.count('class="limit"') == 1


def test_curves_draw_one_line_each() -> None:
    drawn = curves("growth", "files", "ms", [Curve("walk", [(1, 2), (10, 20)]), Curve("read", [(1, 1), (10, 1)])])
    assert len(list(ET.fromstring(drawn).iter("{http://www.w3.org/2000/svg}polyline"))) == 2
