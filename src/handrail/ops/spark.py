"""A line of small bars: how much happened when."""

_BARS = "▁▂▃▄▅▆▇█"


def spark(moments: list[float], width: int = 24) -> str:
    """The moments spread over `width` equal spans of time; a blank is a span without any."""
    if not moments:
        return ""
    first, last = min(moments), max(moments)
    counts = [0] * width
    for moment in moments:
        counts[min(width - 1, int((moment - first) / ((last - first) or 1) * width))] += 1
    most = max(counts)
    return "".join(_BARS[(count * len(_BARS) - 1) // most] if count else " " for count in counts)
