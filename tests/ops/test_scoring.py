from handrail.ops.search.scoring import (
    Snippet,
    best_snippet,
    body_score,
    name_score,
    terms_of,
    weights,
    whole_terms,
    words_of,
)


def test_words_of_splits_identifiers() -> None:
    assert words_of("getHTTPResponse2 snake_case Übung x") == [
        "get", "http", "response", "2", "snake", "case", "übung", "x",
    ]  # fmt: skip


def test_terms_of_query_are_identifiers_and_their_words() -> None:
    assert terms_of("getUser user-name", 8) == ("getuser", "get", "user", "name")
    assert terms_of("a b c d", 2) == ("a", "b")
    assert terms_of(" {} ", 8) == ("{}",)
    assert terms_of("  ", 8) == ()


def test_weights_rare_word_exceeds_common() -> None:
    worth = weights(["rare", "common"], {"rare": 1, "common": 90}, 100)
    assert worth["rare"] > worth["common"] > 0


def test_name_score_orders_name_word_directory_and_part() -> None:
    weight = {"user": 1.0}
    scores = [name_score(path, weight) for path in ("a/userName.py", "superuser.py", "user/x.py", "users/x.py", "x.py")]
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) == 5
    assert min(scores[:4]) > body_score({"user": 10**6}, {"user"}, weight)


def test_body_score_whole_word_exceeds_part() -> None:
    lines = [Snippet(1, "superuser"), Snippet(2, "if userName:")]
    assert whole_terms(lines, ["user", "super"]) == {"user"}
    assert body_score({"user": 3}, {"user"}, {"user": 1.0}) > body_score({"user": 3}, set(), {"user": 1.0})


def test_best_snippet_has_most_terms() -> None:
    weight = {"user": 1.0, "name": 1.0}
    lines = [Snippet(1, "superuser"), Snippet(2, "user"), Snippet(5, "the user's name"), Snippet(9, "user name")]
    assert best_snippet(lines, weight) == Snippet(5, "the user's name")
    assert best_snippet([], weight) is None
