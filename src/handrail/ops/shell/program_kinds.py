"""Knows programs whose arguments are data, and programs whose arguments are code.

`prlimit rm v` runs rm, `grep rm v` does not. A program that is in neither list may be of either kind.
"""

import re

from handrail.ops.shell.started import Argv


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_INERT = _words(
    """
    : [ [[ arch b2sum base32 base64 basename bg break cal cat cd chgrp chmod chown cksum clear cmp column comm
    continue cut date declare df diff dirname dirs disown du echo egrep exit expand export expr factor false fg
    fgrep file fmt fold free getconf getopts grep groups head hexdump hostname iconv id jobs join jq kill let
    local locale logname ls lsof md5sum mkdir mkfifo mktemp nl nproc numfmt od paste pathchk pgrep popd pr
    printenv printf ps ptx pushd pwd read readlink readonly realpath return rev rm rmdir seq set sha1sum
    sha224sum sha256sum sha384sum sha512sum shasum shift shopt shred shuf sleep stat strings sum sync tac tail
    tee test times touch tr tree true truncate tsort tty type typeset ulimit umask uname unexpand uniq unlink
    unset uptime vmstat w wait wc whereis which who whoami xxd yes zcat
    """
)
_INERT_BUT_FOR = {
    "rg": ("--pre", "--hostname-bin"),
    "sort": ("--co",),
    "split": ("--fi",),
}
"""Programs whose arguments are data, unless an option begins like this: most programs accept shortened options."""
_GIT_PLAIN = _words(
    """
    add am apply blame branch cat-file check-ignore checkout cherry-pick clean commit describe diff init log ls-files
    ls-tree merge mv notes rebase reflog remote reset restore rev-list rev-parse revert rm shortlog show stash status
    switch tag worktree
    """
)
_GIT_RUNS = ("--ex", "-x", "--te", "--conf", "-c", "--up", "--rec")
_GIT_USES = _words("EDITOR PAGER SSH_ASKPASS VISUAL")
_SHORT_OPTIONS = re.compile(r"-[A-Za-z0-9]{1,4}(?=.)", re.DOTALL)
_RUNNERS = _words(
    """
    abduco bwrap capsh cgexec choom chpst chrt cpulimit crontab csh daemonize dbus-launch dbus-run-session dc dtach
    eatmydata ed elvish emacs emacsclient entr envdir ex expect fakechroot fakeroot faketime firejail gdb ghci gnuplot
    gosu hyperfine i386 i486 i586 i686 linux32 linux64 lldb lockf ltrace m4 machinectl mariadb mysql newgrp nu numactl
    nvim octave perf pexec pkexec prlimit proot proxychains proxychains4 psql pwsh rlwrap rr run-parts screen sem
    setarch setpriv setuidgid sg softlimit sqlite3 start-stop-daemon su-exec systemd-inhibit tclsh tcsh tmux torify
    torsocks trickle unbuffer uname26 valgrind vi view vim vimdiff watchexec wish x86_64 xonsh xterm xvfb-run
    """
)
"""Programs that run what their arguments or their input say, in ways that are not followed."""
_LOADER = re.compile(r"ld(?:-linux|-musl|64|32)?[\w.-]*\.so[\w.]*|ld-linux.*")
_KERNEL_NAMES = ("/proc/", "/dev/fd/")
_INPUT = ("-", "/dev/stdin", *_KERNEL_NAMES)
_VERSION = re.compile(r"[-.0-9]+$")
_INFORMATION = frozenset({"--version", "--help", "-V", "-h"})
# For each interpreter: the letters of options with code, of options with another value, and of options without code.
_INTERPRETERS = {
    **dict.fromkeys(("python", "pypy"), ("c", "WX", "m")),
    **dict.fromkeys(("perl",), ("eE", "I", "v")),
    **dict.fromkeys(("ruby", "jruby"), ("e", "rICEFKTW", "")),
    **dict.fromkeys(("node", "nodejs", "bun"), ("ep", "rC", "v")),
    **dict.fromkeys(("php",), ("rBRE", "dcz", "fv")),
    **dict.fromkeys(("lua", "luajit"), ("e", "l", "")),
    **dict.fromkeys(("Rscript", "R", "julia"), ("eE", "L", "")),
    **dict.fromkeys(("guile", "raku", "groovy", "scala", "elixir", "osascript"), ("ec", "", "")),
}
_EVALUATES = re.compile(r"--?(?:eval|print|exec|expression|command|execute|run)(?:=.*)?", re.DOTALL)
_AWKS = frozenset({"awk", "gawk", "mawk", "nawk", "original-awk"})
_SEDS = frozenset({"sed", "gsed"})
_AWK_RUNS = re.compile(r"system|(?<!\|)\|(?!\|)|@")
_WRITES = {**dict.fromkeys(_AWKS, re.compile(r"print[^;}\n]*>")), "curl": re.compile(r"%output\{")}
"""What makes a program write a file if it stands in one of its words."""
_SED_REGEX = r"(?>(?!\1)[^\\\n\[]|\\.|\[(?>(?!\1)[^\]\n])++\])*+"
_SED_TEXT = r"(?>(?!\1)[^\\\n]|\\.)*+"
_SED_ADDRESS = r"(?:[0-9]++|\$|/(?>[^/\\\n\[]|\\.|\[[^\]\n/]++\])*+/[IM]*+)"
_SED_COMMAND = re.compile(
    rf"[ \t;\n]++|[{{}}]|(?:{_SED_ADDRESS}(?:,[~+]?{_SED_ADDRESS})?)?[ \t]*+!?[ \t]*+(?:"
    rf"(?:[=dDgGhHlnNpPxq]|s([/|#,@!:]){_SED_REGEX}\1{_SED_TEXT}\1[gpiIMm0-9]*+"
    r"|[btT][ \t]*+\w*+|:[ \t]*+\w++)(?=[ \t]*+(?:[;\n}]|$))|(?=\{)|[aic]\\?[^\n]*+)"
)
"""A sed command that runs nothing: the command `e` and the flag `e` do not match."""
_MAKES = frozenset({"make", "gmake"})
_MAKE_RUNS = re.compile(r".*\$|--eval|\.?SHELL(?:FLAGS)?\s*[:?+!]*=", re.DOTALL)
_SUBCOMMANDS = _words(
    """
    apt apt-get aws az brew cargo conda docker dnf gcloud gh git go helm hg kubectl npm pip pip3 pnpm podman poetry svn
    terraform uv yarn
    """
)
"""Programs whose first word is a subcommand, not a program: `docker rm`, `npm test`."""

_OPTIONS_THAT_RUN = {
    **dict.fromkeys(("ack", "ag", "bat"), "--pager"),
    **dict.fromkeys(("cc", "clang", "clang++", "g++", "gcc"), "-fplugin -load -specs -wrapper -Xclang"),
    **dict.fromkeys(("pip", "pip3"), "--log --python"),
    "ar": "--plugin",
    "cargo": "--config",
    "clang-format": "-i",
    "cmake": "-E -P",
    "cpio": "--rsh-command",
    "ctags": "--options --options-maybe",
    "ctest": "-S",
    "curl": "--alt-svc --config --cookie-jar --dump-header --engine --etag-save --hsts --libcurl --output --output-dir"
    " --remote-name --remote-name-all --stderr --trace --trace-ascii -D -K -O -c -o",
    "deno": "eval",
    "diff3": "--diff-program",
    "eslint": "--fix --output-file --rulesdir -o",
    "fd": "--exec --exec-batch -x -X",
    "file": "--compile -C",
    "find": "-delete -fls -fprint -fprint0 -fprintf",
    "ghc": "-e",
    "git": "--exec --ext-diff --extcmd --open-files-in-pager --output --receive-pack --textconv --upload-pack -O -x",
    "git archive": "-o",
    "git bisect": "run",
    "git clone": "--config --template -c -u",
    "git filter-branch": "--commit-filter --env-filter --index-filter --msg-filter --parent-filter --setup"
    " --tag-name-filter --tree-filter",
    "git format-patch": "--output-directory -o",
    "git init": "--template",
    "git instaweb": "--browser --httpd -b -d",
    "git send-email": "--cc-cmd --header-cmd --sendmail-cmd --smtp-server --to-cmd",
    "git submodule": "foreach",
    "go": "-exec -overlay -toolexec -vettool",
    "gofmt": "-w",
    "hg": "--config",
    "iconv": "--output -o",
    "latexmk": "-e -r",
    "ld": "--plugin -plugin",
    "less": "--LOG-FILE --lesskey-file --lesskey-src --log-file -O -k -o",
    "make": "--eval --file --makefile -f",
    "man": "--html --pager -H -P",
    "mypy": "--python-executable",
    "nc": "--exec --sh-exec -c -e",
    "ncat": "--exec --sh-exec -c -e",
    "nm": "--plugin",
    "node": "--experimental-loader --import --loader --require -r",
    "npm": "--node-options --script-shell --shell",
    "npx": "--node-options --script-shell --shell",
    "openssl": "engine -engine -out -provider -provider-path",
    "pnpm": "--node-options --script-shell --shell",
    "prettier": "--plugin --write -w",
    "protoc": "--plugin",
    "pylint": "--init-hook --load-plugins --output",
    "rg": "--hostname-bin --pre",
    "rsync": "--rsh --rsync-path -e",
    "ruff": "--fix --fix-only --output-file -o",
    "scp": "-F -o -S",
    "sdiff": "--diff-program --output -o",
    "sed": "--in-place -i",
    "sftp": "-D -F -S -o",
    "shuf": "--output -o",
    "sort": "--compress-program --output -o",
    "split": "--filter",
    "ssh": "-F -o",
    "svn": "--config-option --diff-cmd --diff3-cmd --editor-cmd",
    "tar": "--checkpoint-action --info-script --new-volume-script --rmt-command --rsh-command --to-command"
    " --use-compress-program -F -I",
    "tree": "-o",
    "wget": "--config --execute --use-askpass -e",
    "yarn": "--script-shell --shell",
    "xmllint": "--output --shell -o",
    "yq": "--inplace -i",
    "zip": "--unzip-command -TT",
}
"""Options of well-known programs, and words of subcommands, that run another program, read more options from a file, or
write or delete files."""


def last_name(program: str) -> str:
    """Return the file name of a program without its directories."""
    return program.rpartition("/")[2]


def takes_data(argv: Argv) -> bool:
    """Return whether the program is known to run nothing that its words name."""
    name, rest = last_name(argv[0] or ""), argv[1:]
    if name in _INERT_BUT_FOR:
        return not any((word or "").startswith(_INERT_BUT_FOR[name]) for word in rest)
    if name == "git":
        options = any((word or "").startswith(_GIT_RUNS) for word in rest)
        return not options and next((word for word in rest if word and not word.startswith("-")), "") in _GIT_PLAIN
    return name in _INERT


def names_subcommand(argv: Argv) -> bool:
    """Return whether the second word probably says what the program does: `git status`, and not `grep status`."""
    return last_name(argv[0] or "") in _SUBCOMMANDS or not takes_data(argv)


def takes_code(argv: Argv) -> bool:
    """Return whether the program runs its words or its input as code, or an unknown program."""
    program, rest = argv[0] or _KERNEL_NAMES[0], argv[1:]
    name = last_name(program)
    if program.startswith(_KERNEL_NAMES) or _LOADER.fullmatch(name) or name in _RUNNERS:
        return True
    if len(rest) == 1 and rest[0] in _INFORMATION:
        return False
    if name in _AWKS or name in _SEDS:
        return _awk_runs(rest) if name in _AWKS else _sed_runs(rest)
    kind = _INTERPRETERS.get(name) or _INTERPRETERS.get(_VERSION.sub("", name))
    if kind is not None:
        return _interprets(rest, *kind)
    return name in _MAKES and any(_MAKE_RUNS.match(word) for word in rest if word is not None)


def runs_words(argv: Argv) -> bool:
    """Return whether the program runs, or may run, some of its words: they are code, or an option names a program."""
    name, words = last_name(argv[0] or ""), [word or "" for word in argv[1:]]
    subcommand = f"{name} {words[0]}" if words else ""
    options = f"{_OPTIONS_THAT_RUN.get(name, '')} {_OPTIONS_THAT_RUN.get(subcommand, '')}".split()
    if name == "tar" and words:
        words[0] = f"-{words[0].lstrip('-')}" if words[0][:2] != "--" else words[0]  # `tar xIf` is `tar -xIf`
    if takes_code(argv) or any(_names_option(word, option) for word in words for option in options):
        return True
    return name in _WRITES and any(map(_WRITES[name].search, words))


def _names_option(word: str, option: str) -> bool:
    """Return whether a word is an option, also shortened (`--exe`) or among other letters (`-nO`)."""
    name = word.partition("=")[0]
    if option.startswith("--"):
        return len(name) > len("--") and option.startswith(name)
    if len(option) == len("-x"):
        return word[:1] == "-" and word[:2] != "--" and option[1] in word[1:]
    return name in (option, f"-{option}")


def takes_values_as_data(argv: Argv, assigns: tuple[str, ...]) -> bool:
    """Return whether the program is known to run no value of these variables: `GIT_EXTERNAL_DIFF=rm git diff` does."""
    runs = last_name(argv[0] or "") == "git" and any(name.startswith("GIT_") or name in _GIT_USES for name in assigns)
    return takes_data(argv) and not runs


def may_start(argv: Argv) -> list[Argv]:
    """Return the commands that a program may start from its words; none if it is known to treat them as data.

    A word may be the value of a short option, too: `tar -I'rm x'`.
    """
    if takes_data(argv):
        return []
    first = 2 if last_name(argv[0] or "") in _SUBCOMMANDS else 1
    started = [argv[at:] for at in range(first, len(argv)) if argv[at] is not None]
    return [*started, *((value, *rest) for word, *rest in started for value in _option_values(word or ""))]


def _option_values(word: str) -> list[str]:
    """Return what may be the value of the last of some short options that are written as one word: `-nO'rm x'`."""
    letters = _SHORT_OPTIONS.match(word)
    return [word[at:] for at in range(2, letters.end() + 1)] if letters else []


def _interprets(words: Argv, code: str, valued: str, ends: str) -> bool:
    """Return whether an interpreter gets code instead of a file or a module."""
    if words[:1] == ("--test",):
        return False
    i = 0
    while i < len(words):
        word = words[i]
        if word is None:
            return False  # probably a file
        if word == _INPUT[0] or word.startswith(_INPUT[1:]) or _EVALUATES.fullmatch(word):
            return True
        letters = "" if word.startswith("--") else word[1:]
        at = next((at for at, letter in enumerate(letters) if letter in code + valued + ends), -1)
        if not word.startswith("-") or (at >= 0 and letters[at] in ends):
            return False
        if at >= 0 and letters[at] in code:
            return True
        i += 2 if at == len(letters) - 1 and at >= 0 else 1
    return True  # it reads code from its input


def _awk_runs(words: Argv) -> bool:
    """Return whether awk may run a program."""
    i = 0
    while i < len(words):
        word = words[i]
        if word is None:
            return True
        if not word.startswith("-") or word == "-":
            return bool(_AWK_RUNS.search(word))
        if word == "--":
            return bool(_AWK_RUNS.search(words[i + 1] or "|")) if i + 1 < len(words) else True
        if word[:2] == "-f":
            return (word[2:] or (*words[i + 1 :], "-")[0] or "").startswith(_INPUT)
        if word[:2] not in ("-F", "-v"):
            return True
        i += 1 if word[2:] else 2
    return True


def _sed_runs(words: Argv) -> bool:
    """Return whether sed may run a program."""
    scripts: list[str | None] = []
    given, i = False, 0
    while i < len(words):
        word = words[i]
        i += 1
        if word is None or not word.startswith("-") or word == "-":
            if not given:
                scripts.append(word)
                given = True
        elif found := re.fullmatch(r"--expression=(.*)|-[nErsuz]*e(.*)", word, re.DOTALL):
            text = found[1] if found[1] is not None else found[2]
            scripts += [text] if text else words[i : i + 1]
            i += not text
            given = True
        elif not re.fullmatch(r"-[nErsuz]+|-[nErsuz]*i[^e]*|--[a-df-z][\w-]*(?:=.*)?", word):
            return True
    return not scripts or not all(map(_is_plain_sed, scripts))


def _is_plain_sed(script: str | None) -> bool:
    """Return whether a sed script is known and runs nothing."""
    at = 0
    while script is not None and at < len(script):
        found = _SED_COMMAND.match(script, at)
        if found is None or found.end() == at:
            return False
        at = found.end()
    return script is not None
