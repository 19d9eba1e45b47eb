"""Tries commands that run a denied program without naming it in the usual place: none of them is approved.

Real bash also runs the commands that the shell evaluates, and does run the program: this proves that the attacks work.
"""

from pathlib import Path
from typing import Any

import pytest
from support.bash_oracle import find_sandbox, observe
from support.ordinary_commands import ORDINARY

from handrail import Workspace
from handrail.model.approval import Question
from handrail.model.effects import Effect
from handrail.model.limits import Limits
from handrail.policy.rule_match import PlacedRule, decide
from handrail.policy.rules import Rule

NO_RM = Rule("run_in_terminal", argv=("rm", "..."), deny=True)
EVALUATED_BY_THE_SHELL = [
    # coprocesses
    "coproc N { rm v; }",
    "coproc rm v",
    # arithmetic evaluates a value as an expression
    "x='a[$(rm v)]'; (( x ))",
    "x='a[$(rm v)]'; echo $(( x ))",
    "x='a[$(rm v)]'; echo $[ x ]",
    "x='a[$(rm v)]'; echo \"$(( x + 1 ))\"",
    "x='a[$(rm v)]'; y=x; (( y ))",
    "x='a[$(rm v)]'; y=$x; (( y ))",
    "x='a[$(rm v)]'; (( y = x ))",
    "x='a[$'; x+='(rm v)]'; (( x ))",
    ": ${x:='a[$(rm v)]'}; (( x ))",
    "for x in 'a[$(rm v)]'; do (( x )); done",
    "for (( x='a[$(rm v)]'; x<1; x++ )); do :; done",
    "read x <<< 'a[$(rm v)]'; (( x ))",
    "printf -v x %s 'a[$(rm v)]'; (( x ))",
    "set -- 'a[$(rm v)]'; (( $1 ))",
    "f() { (( $1 )); }; f 'a[$(rm v)]'",
    "let 'a[$(rm v)]'",
    "x='a[$(rm v)]'; let x",
    "x='a[$(rm v)]'; let y=x+1",
    "eval \"x='a[\\$(rm v)]'\"; (( x ))",
    # integer variables
    "declare -i x='a[$(rm v)]'",
    "typeset -i x; x='a[$(rm v)]'",
    "f() { local -i x='a[$(rm v)]'; }; f",
    "builtin declare -i x='a[$(rm v)]'",
    "RANDOM='a[$(rm v)]'",
    "OPTIND='a[$(rm v)]'",
    # arrays: the shell expands the quoted list
    "declare -a 'x=($(rm v))'",
    "declare -a x='($(rm v))'",
    "declare -A 'x=([a]=$(rm v))'",
    # builtins and wrappers that run the words after them
    "jobs -x rm v",
    # subscripts
    "x='a[$(rm v)]'; echo ${b[x]}",
    "x='a[$(rm v)]'; echo ${b[$x]}",
    "x='a[$(rm v)]'; b[x]=1",
    "x='a[$(rm v)]'; b=([x]=1)",
    "z=1; x='a[$(rm v)]'; echo ${z:x}",
    "x='a[$(rm v)]'; echo ${!x}",
    # variable names inside words
    "test -v 'a[$(rm v)]'",
    "[ -v 'a[$(rm v)]' ]",
    "x='a[$(rm v)]'; [ -v \"$x\" ]",
    'x=-v; y=\'a[$(rm v)]\'; [ "$x" "$y" ]',
    "x='-v a[$(rm${IFS}v)]'; [ $x ]",
    "[[ -v 'a[$(rm v)]' ]]",
    "x='a[$(rm v)]'; [[ -v $x ]]",
    "[[ 'a[$(rm v)]' -eq 1 ]]",
    "x='a[$(rm v)]'; [[ x -eq 1 ]]",
    "x='a[$(rm v)]'; [[ $x -lt 3 ]]",
    "read 'a[$(rm v)]' <<< 1",
    "read -ra 'a[$(rm v)]' <<< 1; read 'b[$(rm v)]' <<< 1",
    "printf -v 'a[$(rm v)]' x",
    "x=-v; printf \"$x\" 'a[$(rm v)]' y",
    "a=(1); unset 'a[$(rm v)]'",
    "true & wait -n -p 'a[$(rm v)]'",
    "export 'a[$(rm v)]=1'; declare 'a[$(rm v)]=1'",
    "declare -n x='a[$(rm v)]'; echo $x",
    "exec {a[$(rm v)]}>/dev/null",
    # prompts and tables of the shell
    "x='$(rm v)'; echo \"${x@P}\"",
    "x='$(rm v)'; : ${x@P}",
    "PS4='$(rm v)'; set -x; :",
    "mapfile -C 'rm v #' -c 1 a <<< x",
    "trap 'rm v' EXIT",
    # words after a redirection belong to the command
    "command >/dev/null rm v",
    "command </dev/null >/dev/null rm v",
    "command <&- rm v",
    "command <<E rm v\nE",
    "command <<< x rm v",
    "command {fd}>/dev/null rm v",
    "command {fd[0]}>/dev/null rm v",
    "true && ! command 2>&1 rm v",
    "true | command 2>&1 rm v",
    "eval >/dev/null rm v",
    "trap 2>&1 'rm v' EXIT",
]
RUN_BY_A_PROGRAM = [
    "env 'BASH_FUNC_echo%%=() { rm v; }' bash -c echo",
    "echo rm | xargs -I% env % v",
    "echo rm v | xargs -tI% sh -c %",
    "printf 'rm v\\0' | xargs -0I% sh -c %",
    "echo rm v | xargs -rtI % sh -c %",
    "echo rm v | xargs -I{} -I% sh -c %",
    "echo rm v | xargs -IX sh -c X",
    "prlimit rm v",
    "prlimit --nproc=9 rm v",
    "chrt -o 0 rm v",
    "setarch x86_64 rm v",
    "setarch -R rm v",
    "linux64 rm v",
    "/lib64/ld-linux-x86-64.so.2 /bin/rm v",
    "/lib/ld-musl-x86_64.so.1 /bin/rm v",
    "ld.so /bin/rm v",
    "capsh -- -c 'rm v'",
    "/proc/self/exe -c 'rm v'",
    "x=r; prlimit ${x}m v",
    "x=rm; some-wrapper $x v",
    "some-wrapper --flag rm v",
    "some-wrapper --run='rm v'",
    "bash5 -c 'rm v'",
    "busybox rm v",
    "busybox sh -c 'rm v'",
    "unshare rm v",
    "script -c 'rm v'",
    "env x='a[$(rm v)]' bash -c '(( x ))'",
    "BASH_ENV=/dev/stdin bash -c true <<< 'rm v'",
    "BASH_CMDS[ls]=/bin/rm; ls v",
    "PROMPT_COMMAND='rm v'",
    'python3 -c \'import os; os.system("r" + "m v")\'',
    "python3 - <<'E'\nimport os\nE",
    "echo 'import os' | python3",
    "python3.11 -Ic 'import os'",
    'perl -pe \'exec "r"."m", "v"\' f',
    'ruby -Ilib -e \'exec "r"+"m"\'',
    "node --eval 'x'",
    'awk \'BEGIN { system("r" "m v") }\'',
    'awk \'BEGIN { print "v" | "r" "m" }\'',
    'awk -v f=system \'BEGIN { @f("r" "m v") }\'',
    "sed '1e r\"\"m v' f",
    "sed 's/x/y/e' f",
    "sed -n 's/x/y/;e' f",
    "sed -e p -e 's#x#y#ge' f",
    "sed '/a/{p;e\n}' f",
    "sed 's/[/]/x/;e/' f",
    "sed --expr='e r\"\"m v' f",
    "sort --comp=rm f",
    "vim -es -c '!rm v'",
    "ed f",
    "gdb -ex '!rm v'",
    "find . -exec rm {} +",
    "tar cf x --checkpoint-action=exec='rm v' y",
    "tar xf x --to-command='rm v'",
    "rsync -e 'rm v' a b:",
    "git -c alias.x='!rm v' x",
    "git bisect run rm v",
    "git rebase --exec 'rm v' main",
    "git submodule foreach rm v",
    "make SHELL=/bin/rm",
    "make --eval='$(shell r\"\"m v)'",
    "make 'X=$(shell r\"\"m v)'",
    "npm exec rm v",
    "npx rm v",
    "docker run x rm v",
    "ssh -o ProxyCommand='rm v' x",
    "man -P rm x",
    "sort --compress-program=rm f",
    "PAGER='rm v' man x",
    "complete -C rm x",
    "set -- -x; getopts x 'a[$(rm v)]'",
    "enable -f ./x y",
    "sqlite3 x.db <<'E'\n.shell rm v\nE",
    "xargs < f rm",
    "xargs < f sh -c 'rm $0'",
    "xargs {fd}< f rm",
    "exec {fd}>x rm v",
    "nohup </dev/null 2>&1 rm v",
    "true | env >y rm v",
    "find . >y -exec rm {} +",
    "tar cf x f -I'rm v;cat'",
    "tar cf x f -Irm",
    "git grep -O'rm v' x",
    "git grep -nO'rm v' x",
    "GIT_EXTERNAL_DIFF='rm v' git diff",
    "export GIT_EXTERNAL_DIFF='rm v'; git diff",
    "env GIT_EXTERNAL_DIFF='rm v' git diff",
    "GIT_EDITOR='rm v' git commit",
    "EDITOR='rm v' git commit",
]
# The test combines every way to give x a hostile value with every way to evaluate x.
SOURCES = [
    "x='a[$(rm v)]'",
    "x=a; x+='[$(rm v)]'",
    "y='a[$(rm v)]'; x=$y",
    "y='a[$(rm v)]'; x=y",
    "y='a[$(rm v)]'; x=\"${y}\"",
    "y='b[$(rm v)]'; x=${y/b/a}",
    "x=$'a[\\x24(rm v)]'",
    "x=('a[$(rm v)]')",
    "declare x='a[$(rm v)]'",
    "export 'x=a[$(rm v)]'",
    "y='a[$(rm v)]'; declare \"x=$y\"",
    "read -r x <<< 'a[$(rm v)]'",
    "read -ra x <<< 'a[$(rm${IFS}v)]'",
    "IFS=, read -r z x <<< '1,a[$(rm v)]'",
    "printf -v x %s 'a[$(rm v)]'",
    ": \"${x:=a['$(rm v)']}\"",
    "x=1; while read -r x; do break; done <<< 'a[$(rm v)]'",
    "select x in 'a[$(rm v)]'; do break; done <<< 1 2>/dev/null",
    "getopts x: x -x 'a[$(rm v)]'; x=$OPTARG",
]
SINKS = [
    "(( x ))",
    "(( 1 + x ))",
    "(( $x ))",
    "(( ${x} ))",
    "echo $((x))",
    'echo "$(( $x ))"',
    "echo $[x]",
    "let x",
    "let y=x",
    'let "y = $x"',
    "declare -i y=x",
    "declare -i x; x+=1",
    "typeset -i z; z=$x",
    "b[x]=1",
    "b[$x]=1",
    "b=([x]=1)",
    "echo ${b[x]}",
    "echo ${#b[x]}",
    "z=1; echo ${z:x}",
    "z=1; echo ${z:0:x}",
    'echo "${@:x}"',
    "[[ x -eq 1 ]]",
    "[[ $x -eq 1 ]]",
    "[[ 1 -lt $x ]]",
    '[[ 1 -lt "$x" || a == b ]]',
    "[[ -v $x ]]",
    "[ -v $x ]",
    "[ -v b[x] ]",
    "true;[ -v b[x] ]||true",
    "[[ -v b[x] ]]",
    "if test -v b[x]; then :; fi",
    "while ! test -v b[$x]; do break; done",
    "Z=1 test -v $x",
    "if [ 1 ] && [[ $x -gt 2 ]]; then :; fi",
    'test -v "$x"',
    "for (( i = x; i < 1; i++ )); do :; done",
    "while (( x )); do break; done",
    "echo ${!x}",
    'printf -v "$x" 1',
    'read "$x" <<< 1',
    'unset "$x"',
    "RANDOM=$x",
    "cat <<< $((x))",
    "cat <<E\n$((x))\nE",
    'f() { (( $1 )); }; f "$x"',
    'f() { local -i y=$1; }; f "$x"',
    "declare -n r=$x; echo $r",
    'declare "$x=1"',
    'export "$x=1"',
]


@pytest.fixture(scope="module")
def denying(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return a function that decides on a command if `rm` is denied and all else is approved; it runs nothing."""
    root = tmp_path_factory.mktemp("denied")
    patch = pytest.MonkeyPatch()
    for name in ("STATE", "CONFIG"):
        patch.setenv(f"HANDRAIL_{name}_DIR", str(tmp_path_factory.mktemp(name.lower())))
    from handrail.surfaces.rule_trial import try_call

    with Workspace(str(root)) as workspace:
        workspace._rules.session.rules = [NO_RM, Rule("run_in_terminal", r"(?s:.*)")]

        def answer(command: str) -> str:
            question, _ = try_call(workspace, "copilot", "run_in_terminal", {"command": command})
            assert question is not None
            decision = workspace._rules.decide(question)
            return "denied" if decision.allowed is False else "asked" if decision.doubt else "free"

        yield answer
    patch.undo()


@pytest.mark.parametrize("command", EVALUATED_BY_THE_SHELL)
def test_denied_program_evaluated_by_shell_is_not_approved(denying: Any, command: str) -> None:
    assert denying(command) != "free"


@pytest.mark.parametrize("command", RUN_BY_A_PROGRAM)
def test_denied_program_run_by_another_program_is_not_approved(denying: Any, command: str) -> None:
    assert denying(command) != "free"


@pytest.mark.parametrize("command", ORDINARY)
def test_ordinary_command_is_approved_despite_deny_rule(denying: Any, command: str) -> None:
    assert denying(command) == "free"


@pytest.mark.parametrize(
    "command",
    ["git <x push", "git 2>&1 push -f", "git {fd}>x push", "git <<E push\nE", "git <&- push", "ls && git >x push"],
)
def test_denied_subcommand_after_redirection_is_denied(command: str) -> None:
    question = Question("copilot", "run_in_terminal", {}, Effect.RUN, command=command, resolved={"command": command})
    rule = PlacedRule(Rule("run_in_terminal", argv=("git", "push", "..."), deny=True), "user", 1)
    assert decide([rule], question, Limits()).allowed is False


def test_bash_runs_denied_program_in_every_shell_attack() -> None:
    sandbox = find_sandbox()
    if sandbox is None:
        pytest.skip("bash runs only in a sandbox, and this machine has none")
    seen = observe(EVALUATED_BY_THE_SHELL, sandbox)
    tame = [command for command, bash in zip(EVALUATED_BY_THE_SHELL, seen, strict=True) if ("rm", "v") not in bash.ran]
    assert tame == []


def test_variable_attack_that_works_in_bash_is_never_approved(denying: Any) -> None:
    """Where bash runs it, it is not free."""
    sandbox = find_sandbox()
    if sandbox is None:
        pytest.skip("bash runs only in a sandbox, and this machine has none")
    commands = [f"{source}; {sink}" for source in SOURCES for sink in SINKS]
    ran = [
        command for command, bash in zip(commands, observe(commands, sandbox), strict=True) if ("rm", "v") in bash.ran
    ]
    assert len(ran) > len(commands) / 2
    assert [command for command in ran if denying(command) == "free"] == []


def test_denied_spelling_is_refused_and_file_is_kept(root: Path) -> None:
    (root / "v").write_text("precious")
    with Workspace(str(root), approve="auto") as workspace:
        workspace._rules.add(NO_RM)
        for command in ("coproc N { rm v; }", "x='a[$(rm v)]'; (( x ))", "prlimit rm v", "setarch -R rm v"):
            result = workspace.call("copilot", "run_in_terminal", {"command": command})
            assert result.error is not None
            assert result.error.code == "approval_denied"
    assert (root / "v").read_text() == "precious"
