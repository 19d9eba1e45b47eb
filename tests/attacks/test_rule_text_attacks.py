"""Attacks the short form of rules: a call that does more than the rule's sentence says must be asked about."""

from pathlib import Path
from typing import Any

import pytest

from handrail import Workspace
from handrail.policy.rules import Rule, short_rule
from handrail.surfaces.rule_trial import try_call

STATUS, RUN = "git status *", "npm run *"
COMMANDS = [
    # operators, redirections and substitutions are no words
    (STATUS, "git status; rm -rf ."),
    (STATUS, "git status && rm -rf ."),
    (STATUS, "git status | sh"),
    (STATUS, "git status & rm -rf ."),
    (STATUS, "git status\nrm -rf ."),
    (STATUS, "git status > src/a"),
    (STATUS, "git status < .env"),
    (STATUS, "git status <<< x"),
    (STATUS, "git status $(rm -rf .)"),
    (STATUS, "git status `rm -rf .`"),
    (STATUS, 'git status "$(rm -rf .)"'),
    (STATUS, "git status <(rm -rf .)"),
    (STATUS, "git status $IFS"),
    (STATUS, "git status *"),
    (STATUS, "git status {a,b}"),
    (STATUS, "git status \\\n; rm x"),
    # other programs, and words before or around the rule's words
    (STATUS, "git -c core.fsmonitor=./x status"),
    (STATUS, "git --exec-path=. status"),
    (STATUS, "GIT_PAGER=./x git status"),
    (STATUS, "PATH=. git status"),
    (STATUS, "./git status"),
    (STATUS, "sudo git status"),
    (STATUS, "env git status"),
    (STATUS, "sh -c 'git status; rm x'"),
    (STATUS, "xargs git status"),
    (STATUS, "git stash"),
    (STATUS, "git statusx"),
    (STATUS, "alias git=rm; git status"),
    (STATUS, "git() { rm x; }; git status"),
    # a star in the middle is one word, and no option
    ("git * status", "git -p status"),
    ("git * status", "git a b status"),
    ("pytest * -q", "pytest -pevil -q"),
    ("pytest * -q", "pytest -q"),
    # a star stands for no option that runs a program, and for no code
    ("git *", "git -c alias.x='!rm' x"),
    ("git grep *", "git grep -O./evil x"),
    ("git grep *", "git grep -nO./evil x"),
    ("git grep *", "git grep --open-files=./evil x"),
    ("git rebase *", "git rebase --exec ./evil HEAD~3"),
    ("git rebase *", "git rebase --exe ./evil HEAD~3"),
    ("git rebase *", "git rebase -x ./evil HEAD~3"),
    ("git diff *", "git diff --ext-diff"),
    ("git diff *", "git diff --output=src/a"),
    ("git fetch *", "git fetch --upload-pack=./evil"),
    ("git clone *", "git clone -u ./evil . x"),
    ("git clone *", "git clone -c core.fsmonitor=./evil . x"),
    ("git clone *", "git clone --templ=evil . x"),
    ("git archive *", "git archive -osrc/a HEAD"),
    ("git format-patch *", "git format-patch --output-dir=src HEAD"),
    ("git bisect *", "git bisect run ./evil"),
    ("git submodule *", "git submodule foreach ./evil"),
    ("go test *", "go test -exec ./evil ./..."),
    ("go vet *", "go vet -vettool=./evil ./..."),
    ("tar *", "tar -cf x --checkpoint-action=exec=./evil ."),
    ("tar *", "tar -I./evil -cf x ."),
    ("tar *", "tar xIf ./evil x"),
    ("rg *", "rg --pre ./evil x"),
    ("sed *", "sed -ni s/a/b/ src/a"),
    ("sed *", "sed --in-pl s/a/b/ src/a"),
    ("curl *", "curl -so src/a http://host"),
    ("curl *", "curl -w %output{src/a}x http://host"),
    ("curl *", "curl --libcurl src/a http://host"),
    ("curl *", "curl --trace-ascii src/a http://host"),
    ("curl *", "curl --stderr src/a http://host"),
    ("curl *", "curl --remote-name-all http://host/a"),
    ("awk *", "awk '{print $1 > \"src/a\"}' x"),
    ("awk *", "awk '{printf \"%s\", $0 >> \"src/a\"}' x"),
    ("bat *", "bat --pager=./evil x"),
    ("clang *", "clang -Xclang -load -Xclang ./evil.so x.c"),
    ("gcc *", "gcc -specs=evil x.c"),
    ("cpio *", "cpio --rsh-command=./evil"),
    ("ctags *", "ctags --options=evil"),
    ("diff3 *", "diff3 --diff-program=./evil a b c"),
    ("eslint *", "eslint --fix x.js"),
    ("ghc *", "ghc -e 'System.Process.system \"./evil\"'"),
    ("git filter-branch *", "git filter-branch --tree-filter ./evil"),
    ("git send-email *", "git send-email --smtp-server=./evil"),
    ("gofmt *", "gofmt -w x.go"),
    ("iconv *", "iconv -o src/a x"),
    ("less *", "less -ko x"),
    ("nm *", "nm --plugin=./evil.so x"),
    ("openssl *", "openssl enc -out src/a"),
    ("pip *", "pip --python ./evil list"),
    ("prettier *", "prettier --plugin=./evil.js x"),
    ("pylint *", "pylint --init-hook='import os'"),
    ("sdiff *", "sdiff -o src/a x y"),
    ("sftp *", "sftp -S ./evil host"),
    ("tree *", "tree -o src/a"),
    ("xmllint *", "xmllint --output src/a x"),
    ("yq *", "yq -i x y"),
    ("shuf *", "shuf -o src/a x"),
    ("zip *", "zip x y -T -TT ./evil"),
    ("mypy *", "mypy --python-exec=./evil"),
    ("cmake *", "cmake -E env ./evil"),
    ("sort *", "sort --compress-prog=./evil x"),
    ("find *", "find . -exec rm {} +"),
    ("find *", "find . -delete"),
    ("python *", "python -c 'import os'"),
    ("python *", "python -"),
    ("python *", "python"),
    ("node *", "node --eval=1"),
    ("node *", "node --import=data:text/javascript,1 x.js"),
    ("awk *", "awk 'BEGIN{system(\"rm x\")}'"),
    ("make *", "make 'X=$(shell rm x)'"),
    ("make *", "make -f evil.mk"),
    ("make test *", "make test --ev=x"),
    (RUN, "npm run x --script-shell=./evil"),
    (RUN, "npm --prefix evil run x"),
    # a rule without a star is exactly its words
    ("npm test", "npm test -- --watch"),
    ("npm test", "npm"),
]  # fmt: skip

PATCH = "*** Begin Patch\n*** Add File: src/new\n+x\n*** {} File: {}\n{}*** End Patch\n"
EDITS = [
    ("edit src/**", "file", "file.write", {"path": "srcs/a", "content": "x"}),
    ("edit src/**", "file", "file.write", {"path": "src/../a", "content": "x"}),
    ("edit src/**", "file", "file.write", {"path": "src/out/a", "content": "x"}),
    ("edit src/**", "file", "file.write", {"path": "SRC/a", "content": "x"}),
    ("edit src/**", "file", "file.write", {"path": "src/.git/hooks/x", "content": "x"}),
    ("edit **", "file", "file.write", {"path": ".git/hooks/x", "content": "x"}),
    ("edit **", "file", "file.write", {"path": ".GIT/config", "content": "x"}),
    ("edit **", "file", "file.write", {"path": "sub/.vscode/tasks.json", "content": "x"}),
    ("edit **", "file", "file.write", {"path": ".handrail.toml", "content": "x"}),
    ("edit **", "file", "file.write", {"path": "hooks/x", "content": "x"}),
    ("edit src/*", "file", "file.write", {"path": "src/sub/a", "content": "x"}),
    ("edit *.md", "file", "file.write", {"path": "src/a.md", "content": "x"}),
    ("edit *.md", "file", "file.write", {"path": "a.md\n", "content": "x"}),
    ("edit src/**", "codex", "apply_patch_freeform", {"patch": PATCH.format("Add", "other", "+x\n")}),
    ("edit src/**", "codex", "apply_patch_freeform", {"patch": PATCH.format("Delete", "top.txt", "")}),
    (
        "edit src/**",
        "codex",
        "apply_patch_freeform",
        {"patch": PATCH.format("Update", "src/a", "*** Move to: moved\n@@\n-one\n+two\n")},
    ),
    ("edit **", "claude", "memory", {"command": "create", "path": "/memories/a.md", "file_text": "x"}),
    ("edit /memories/**", "file", "file.write", {"path": "memories/a.md", "content": "x"}),
    # an edit is no command and no fetch
    ("edit **", "copilot", "run_in_terminal", {"command": "touch a"}),
    ("edit **", "copilot", "fetch_webpage", {"url": "http://example.com/"}),
    ("fetch *", "copilot", "run_in_terminal", {"command": "curl http://example.com/"}),
    # other hosts
    ("fetch python.org", "copilot", "fetch_webpage", {"url": "http://docs.python.org/"}),
    ("fetch *.python.org", "copilot", "fetch_webpage", {"url": "http://python.org/"}),
    ("fetch *.python.org", "copilot", "fetch_webpage", {"url": "http://evilpython.org/"}),
    ("fetch python.org", "copilot", "fetch_webpage", {"url": "http://python.org.evil.com/"}),
    ("fetch python.org", "copilot", "fetch_webpage", {"url": "http://evil.com/?python.org"}),
    ("fetch python.org", "copilot", "fetch_webpage", {"url": "http://evil.com#python.org"}),
    ("fetch python.org", "copilot", "fetch_webpage", {"url": "http://python.org:8080/"}),
    ("fetch python.org", "copilot", "fetch_webpage", {"url": "https://python.org:80/"}),
]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Any:
    root = tmp_path_factory.mktemp("rule_texts")
    patch = pytest.MonkeyPatch()
    for name in ("STATE", "CONFIG"):
        patch.setenv(f"HANDRAIL_{name}_DIR", str(tmp_path_factory.mktemp(name.lower())))
    for directory in ("src/.git/hooks", "other", ".git/hooks"):
        (root / directory).mkdir(parents=True)
    (root / "src/a").write_text("one\n")
    (root / "top.txt").write_text("one\n")
    (root / "src/out").symlink_to("../other")
    (root / "hooks").symlink_to(".git/hooks")
    with Workspace(str(root)) as opened:
        yield opened
    patch.undo()


def allowed(workspace: Workspace, rule: Rule, dialect: str, tool: str, params: dict[str, Any]) -> bool | None:
    question, failed = try_call(workspace, dialect, tool, params)
    if question is None:
        assert failed
        return None
    workspace._rules.session.rules = [rule]
    return workspace._rules.decide(question).allowed


@pytest.mark.parametrize(("rule", "command"), COMMANDS)
def test_command_that_does_more_than_its_rule_is_asked(workspace: Workspace, rule: str, command: str) -> None:
    assert allowed(workspace, short_rule(rule), "copilot", "run_in_terminal", {"command": command}) is None


@pytest.mark.parametrize(("rule", "dialect", "tool", "params"), EDITS)
def test_edit_or_fetch_beyond_its_rule_is_asked(
    workspace: Workspace, rule: str, dialect: str, tool: str, params: dict[str, Any]
) -> None:
    assert allowed(workspace, short_rule(rule), dialect, tool, params) is None


@pytest.mark.parametrize(
    ("rule", "dialect", "tool", "params"),
    [
        ("rm *", "copilot", "run_in_terminal", {"command": "ls && /bin/rm -f x"}),
        ("git push *", "copilot", "run_in_terminal", {"command": "git --no-pager push"}),
        ("edit other/**", "file", "file.write", {"path": "src/out/a", "content": "x"}),
        ("edit src/out/**", "file", "file.write", {"path": "src/out/a", "content": "x"}),
        ("edit OTHER/**", "file", "file.write", {"path": "./other/a", "content": "x"}),
        ("edit top.txt", "codex", "apply_patch_freeform", {"patch": PATCH.format("Delete", "top.txt", "")}),
        ("fetch evil.com", "copilot", "fetch_webpage", {"url": "http://EVIL.com:8080/"}),
    ],
)
def test_short_rule_that_denies_covers_every_spelling(
    workspace: Workspace, rule: str, dialect: str, tool: str, params: dict[str, Any]
) -> None:
    denying = Rule("*", calls=rule, deny=True)
    assert allowed(workspace, denying, dialect, tool, params) is False


def test_short_rule_that_denies_words_leaves_doubt(workspace: Workspace) -> None:
    question, _ = try_call(workspace, "copilot", "run_in_terminal", {"command": "prlimit rm x"})
    assert question is not None
    workspace._rules.session.rules = [Rule("*", calls="rm *", deny=True), short_rule("ls")]
    assert "may run what session rule 1 forbids" in workspace._rules.decide(question).doubt


def test_short_rule_covers_no_typed_input_and_no_changed_shell(root: Path) -> None:
    asked: list[str] = []

    def ask(question: Any) -> bool:
        asked.append(question.command)
        return True

    with Workspace(str(root), approver=ask) as workspace:
        workspace._rules.session.rules = [short_rule("ls *")]
        call = workspace.tools("codex").call
        assert call("exec_command", {"session_id": "s", "cmd": "cat"}).success
        call("write_stdin", {"session_id": "s", "chars": "ls\n"})
    assert asked == ["cat", "ls\n"]
