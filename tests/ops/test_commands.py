import pytest
from support.bash_oracle import find_sandbox, observe

from handrail.ops.shell.command_programs import CommandLine, parse_command

SIMPLE = [
    ("git status", ("git", "status")),
    ("  git   status  ", ("git", "status")),
    ("git\tstatus", ("git", "status")),
    ("git status\n", ("git", "status")),
    ("\n\ngit status\n\n", ("git", "status")),
    ("git status # and nothing else", ("git", "status")),
    ("# first look\ngit status", ("git", "status")),
    ("git \\\n  status", ("git", "status")),
    ("gi\\\nt status", ("git", "status")),
    ("git 'status'", ("git", "status")),
    ('"git" "status"', ("git", "status")),
    ("g'i't sta\"tus\"", ("git", "status")),
    ("git stat\\us", ("git", "status")),
    ("git commit -m 'a; b && c | d > e'", ("git", "commit", "-m", "a; b && c | d > e")),
    ('git commit -m "it\'s"', ("git", "commit", "-m", "it's")),
    ('echo "a \\"b\\" \\$c \\n"', ("echo", 'a "b" $c \\n')),
    ("echo '$(x)' '`y`' '*'", ("echo", "$(x)", "`y`", "*")),
    ("echo \\$x \\; \\*", ("echo", "$x", ";", "*")),
    ("echo '' \"\"", ("echo", "", "")),
    ("git diff HEAD~1 HEAD^ stash@{0}", ("git", "diff", "HEAD~1", "HEAD^", "stash@{0}")),
    ("find . -name '*.py' -exec wc {} \\;", ("find", ".", "-name", "*.py", "-exec", "wc", "{}", ";")),
    ("make CFLAGS=-O2 a=b", ("make", "CFLAGS=-O2", "a=b")),
    ("echo a#b", ("echo", "a#b")),
    ("echo é ‥", ("echo", "é", "‥")),
    ("./run.sh --x=1,2 a:b %c @d +e", ("./run.sh", "--x=1,2", "a:b", "%c", "@d", "+e")),
    ("echo if then {", ("echo", "if", "then", "{")),
]
NOT_SIMPLE = [
    "",
    "# nothing",
    "git status; x",
    "git status;",
    "git status && x",
    "git status || x",
    "git status | sh",
    "git status |& sh",
    "git status &",
    "git status & x",
    "git status\nrm x",
    "git status # a\nrm x",
    "git status\n\n\nrm x",
    "git status > ~/.bashrc",
    "git status >> f",
    "git status 2>&1",
    "git status < f",
    "git status <<E\nE",
    "git status <<< a",
    "> f git status",
    "git status &> f",
    "$(x)",
    "git $(x)",
    "git `x`",
    'git "$(x)"',
    'git "`x`"',
    "git $x",
    'git "$x"',
    "git ${x}",
    "git $((1))",
    "git $'a'",
    'git $"a"',
    "git <(x)",
    "git *",
    "git a?",
    "git [ab]",
    "git {a,b}",
    "git {1..3}",
    "git {a,'b'}",
    "git ~",
    "git ~/x",
    "git --x=~/y",
    "git a:~/y",
    "X=1 git status",
    "X=1",
    "X+=1 git",
    "a[1]=2 git",
    "(git status)",
    "{ git status; }",
    "! git status",
    "time git status",
    "if git status",
    "i\\\nf git status",
    "f() git",
    "git () x",
    "git 'unclosed",
    'git "unclosed',
    "git status\\",
    "git 'a\\' ; x '",
    "git '\\'' ; rm x'",
    'git "a!b"',
    "git a!b",
    "=git status",
    "git =ls",
    "git \0",
    "git a\rb",
    "git \x1b[0m",
    "[[ a ]]",
    "((1))",
]
PROGRAMS: list[tuple[str, list[str]]] = [
    ("git status", ["git"]),
    ("git status; rm x", ["git", "rm"]),
    ("git status && rm x || ls", ["git", "rm", "ls"]),
    ("cat f | sort | uniq -c", ["cat", "sort", "uniq"]),
    ("git status\nrm x", ["git", "rm"]),
    ("git status & rm x", ["git", "rm"]),
    ("(cd a && make) > log", ["cd", "make"]),
    ("{ a; b; }", ["a", "b"]),
    ("! a", ["a"]),
    ("if a; then b; else c; fi", ["a", "b", "c"]),
    ("while a; do b; done", ["a", "b"]),
    ("for i in 1 2; do a $i; done", ["a"]),
    ("f() { a; }; f", ["f", "a"]),
    ("X=1 a", ["a"]),
    ("2>/dev/null a < f > g", ["a"]),
    ("cat <<'E'\nrm x\nE", ["cat"]),
    ("env a", ["env", "a"]),
    ("env X=1 Y=2 a b", ["env", "a"]),
    ("env -i -u HOME -C / X=1 a", ["env", "a"]),
    ("/usr/bin/env a", ["/usr/bin/env", "a"]),
    ("sudo a", ["sudo", "a"]),
    ("sudo -n -u root X=1 a", ["sudo", "a"]),
    ("sudo env nice -n 5 a", ["sudo", "env", "nice", "a"]),
    ("ls | xargs rm", ["ls", "xargs", "rm"]),
    ("ls | xargs -0 -n 1 -I {} rm {}", ["ls", "xargs", "rm"]),
    ("ls | xargs", ["ls", "xargs", "echo"]),
    ("find . -name x -exec rm {} \\;", ["find", "rm"]),
    ("find . -exec a {} + -o -execdir b ';'", ["find", "a", "b"]),
    ("fd x -x rm", ["fd", "rm"]),
    ("sh -c 'rm x; ls'", ["sh", "rm", "ls"]),
    ("bash -euo pipefail -c 'rm x'", ["bash", "rm"]),
    ("bash -ceuo pipefail 'rm x'", ["bash", "rm"]),
    ("bash -lc \"sh -c 'rm x'\"", ["bash", "sh", "rm"]),
    ("timeout 5 a", ["timeout", "a"]),
    ("timeout -k 1 --signal=KILL 5 a", ["timeout", "a"]),
    ("nice -10 a", ["nice", "a"]),
    ("nohup a &", ["nohup", "a"]),
    ("time -p a", ["time", "a"]),
    ("command a", ["command", "a"]),
    ("exec -a x a", ["exec", "a"]),
    ("busybox rm x", ["busybox", "rm"]),
    ("setsid -f a", ["setsid", "a"]),
    ("stdbuf -oL a", ["stdbuf", "a"]),
    ("eval rm x", ["eval", "rm"]),
    ("trap 'rm x' EXIT", ["trap", "rm"]),
    ("'rm' x", ["rm"]),
    ("r\\m x", ["rm"]),
    ("git --no-pager -C dir log", ["git"]),
    ("[ -f x ] && a", ["[", "a"]),
    ("export X=1; a", ["export", "a"]),
    ("a # b", ["a"]),
    ("a \\\n b", ["a"]),
    ("env -- a", ["env", "a"]),
]
# Each command with the programs that are still named; it may run others.
UNKNOWN: list[tuple[str, list[str]]] = [
    ("a $(b)", ["a", "b"]),
    ("a `b`", ["a", "b"]),
    ("a <(b)", ["a", "b"]),
    ("$x a", []),
    ("env $x", ["env"]),
    ("env -S 'rm x'", ["env", "rm x"]),
    ("sudo -i", ["sudo"]),
    ("sudo --unheard-of a b", ["sudo", "a"]),
    ("xargs env", ["xargs", "env"]),
    ("xargs sh -c", ["xargs", "sh"]),
    ("a | sh", ["a", "sh"]),
    ("sh script", ["sh"]),
    ('bash -c "$x"', ["bash"]),
    ("bash $x", ["bash"]),
    ("eval $x", ["eval"]),
    ("find . -exec {} \\;", ["find"]),
    ("find . -exec sh -c 'rm {}' \\;", ["find", "sh"]),
    ("find $x", ["find"]),
    ("source f", ["source"]),
    (". f", ["."]),
    ("su -c a", ["su"]),
    ("alias ls=rm; ls", ["alias", "ls"]),
    ("git -c core.pager=x status", ["git"]),
    ("git -C dir -c alias.s='!rm x' s", ["git"]),
    ("git --exec-path=/x status", ["git"]),
    ("timeout $x a", ["timeout", "a"]),
    ('a=""\\; rm x', [";"]),
    ("a <<E; rm x\nE", ["a"]),
    ("a 'unclosed", ["a"]),
    ("a\0b", []),
]


@pytest.mark.parametrize(("command", "argv"), SIMPLE)
def test_parse_command_literal_words_are_simple(command: str, argv: tuple[str, ...]) -> None:
    assert parse_command(command).simple == argv


@pytest.mark.parametrize("command", NOT_SIMPLE)
def test_parse_command_anything_else_is_not_simple(command: str) -> None:
    assert parse_command(command).simple is None


@pytest.mark.parametrize(("command", "programs"), PROGRAMS)
def test_parse_command_names_every_program(command: str, programs: list[str]) -> None:
    line = parse_command(command)
    assert (sorted(line.programs), line.unknown) == (sorted(programs), False)


@pytest.mark.parametrize(("command", "programs"), UNKNOWN)
def test_parse_command_unreadable_part_is_unknown(command: str, programs: list[str]) -> None:
    line = parse_command(command)
    assert (sorted(line.programs), line.unknown) == (sorted(programs), True)


def test_parse_command_result_has_all_parts() -> None:
    assert parse_command("a <<E; b 2>f\nE").redirects
    assert parse_command("PATH=. git log \"$x\" '*' > f; env A=1 B=2 ls") == CommandLine(
        commands=(("git", "log", None, "*"), ("env", "A=1", "B=2", "ls"), ("ls",)),
        programs=("git", "env", "ls"),
        assigns=("PATH", "A", "B"),
        redirects=True,
        unknown=False,
        simple=None,
    )


def test_parse_command_simple_words_match_bash() -> None:
    sandbox = find_sandbox()
    if sandbox is None:
        pytest.skip("bash is only run in a sandbox, and none can be had here")
    cases = [(f"p-{command.lstrip()}", argv) for command, argv in SIMPLE if command.lstrip()[0] in "egfm"]
    seen = observe([command for command, _ in cases], sandbox)
    assert [bash.ran for bash in seen] == [[("p-" + argv[0], *argv[1:])] for _, argv in cases]


@pytest.mark.parametrize(
    "command",
    [
        "a" * 1_000_000,
        "(" * 8000,
        "$(" * 4000,
        "{ " * 4000,
        "a|" * 4000,
        "if " * 2500,
        "sudo " * 1500 + "rm",
        "bash -c '" * 800,
        "eval " * 1500 + "rm",
        "find . -exec " * 500 + "rm",
    ],
)
def test_parse_command_too_long_or_deep_is_unknown(command: str) -> None:
    assert parse_command(command).unknown


def test_parse_command_nested_scripts_followed_up_to_limit() -> None:
    def nested(layers: int) -> str:
        script = "rm"
        for _ in range(layers):
            script = "eval " + script.replace("\\", "\\\\").replace(" ", "\\ ")
        return script

    assert parse_command(nested(3)).programs == ("eval", "rm")
    assert parse_command("env " * 5 + "rm").programs == ("env", "rm")
    assert parse_command("env " * 30 + "rm").unknown
