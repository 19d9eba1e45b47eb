"""Shortens a text to a budget of tokens, as Codex counts them: four bytes each."""

BYTES = 4


def token_count(size: int) -> int:
    """Return about how many tokens so many bytes are."""
    return -(-size // BYTES)


def within_tokens(text: str, budget: int, tokens: int) -> str:
    """Return a text of `tokens` tokens within a budget: its beginning and its end, with a note in between."""
    data = text.encode(errors="surrogatepass")
    most = budget * BYTES
    if len(data) <= most:
        return text
    head = data[: most // 2].decode(errors="ignore")
    tail = data[len(data) - (most - most // 2) :].decode(errors="ignore") if most else ""
    lines = text.count("\n") + (not text.endswith("\n"))
    note = f"Warning: truncated output (original token count: {tokens})\nTotal output lines: {lines}\n\n"
    return f"{note}{head}…{tokens - budget} tokens truncated…{tail}"
