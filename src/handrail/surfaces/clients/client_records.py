"""Lists the clients of `handrail config`: one record each, with facts only.

Paths of a project are relative to it; the paths of a user begin with `~`, `{data}` or `{config}`. In values, `{tool}`
stands for each tool of the dialect, `{read}` for each that only reads, `{change}` for all others, as the client names
them.
"""

from typing import Any, NamedTuple

NAME = "handrail"

Files = dict[str, dict[str, Any]]
"""Values to merge into files, by the path of the file."""

_NOTHING: dict[str, Any] = {}


class Switch(NamedTuple):
    """Holds one choice of the user as the client stores it. A list adds items, other values replace."""

    entry: dict[str, Any] = _NOTHING
    """Values in the entry of the server."""
    project: Files = _NOTHING
    user: Files = _NOTHING
    by_hand: str = ""
    """What the user does if no file has the setting."""


class ClientKind(NamedTuple):
    """Describes one MCP client."""

    title: str
    dialect: str
    project: str = ""
    """The file with servers in a project; empty if the client has none."""
    user: str = ""
    """The file with servers of a user; empty if the client has none."""
    key: str = "mcpServers"
    form: str = "json"
    """json (with comments), toml or yaml."""
    entry: dict[str, Any] = _NOTHING
    """What every entry has besides the command."""
    command: str = "command"
    """The key of the program; the key `args` holds its arguments."""
    one_list: bool = False
    """True if one list holds program and arguments."""
    root: str = ""
    """What the client replaces with the project; empty if it starts servers in the project."""
    starts_anywhere: bool = False
    """True if the client starts servers in a directory of its own, so that the entry must name the root."""
    asks: bool = True
    """True if the client shows questions of servers (elicitation)."""
    first: str = "project"
    """The scope if the user names none."""
    at_start: str = ""
    """What the client asks at its next start in a project, and what to answer."""
    tool: str = "{tool}"
    """The name of a tool in the client's own settings."""
    host: Switch = Switch()
    """Makes the client ask before each call that changes something."""
    quiet: Switch = Switch()
    """Removes the client's own question before calls of Handrail's tools."""
    own_tools: bool = True
    """True if the client has tools of its own that run commands or change files."""
    own_off: Switch = Switch()
    """Switches off the client's own tools that run commands and change files."""


_CLAUDE_HOST = {"permissions": {"allow": ["{read}"], "ask": ["{change}"]}}  # its auto mode asks only if a rule says so
_CLAUDE_QUIET = {"permissions": {"allow": [f"mcp__{NAME}"]}}
_CLAUDE_OFF = {"permissions": {"deny": ["Bash", "Edit", "Write", "NotebookEdit"]}}
_CLINE_SETTINGS = "~/.cline/data/settings/global-settings.json"
_CLINE_HOST = {"toolAutoApprove": False}  # by default its terminal program asks about nothing
_CLINE_OFF = {"disabledTools": ["run_commands", "editor", "apply_patch"]}
_CODEX_OFF = {"features": {"shell_tool": False}}
_CURSOR_QUIET = {"mcpAllowlist": [f"{NAME}:*"]}
_CURSOR_OFF = {"permissions": {"deny": ["Shell(**)", "Write(**)"]}}
_GEMINI_OWN = ["run_shell_command", "write_file", "replace"]
_GEMINI_HOST = {
    "rule": [
        {"mcpName": NAME, "toolName": "*", "decision": "ask_user", "priority": 950},
        {"mcpName": NAME, "toolName": ["{read}"], "decision": "allow", "priority": 960},
    ]
}
# without argsPattern, Gemini CLI also hides the tools of servers that have the same names
_GEMINI_OFF = {"rule": [{"toolName": _GEMINI_OWN, "argsPattern": ".", "decision": "deny", "priority": 900}]}
_GEMINI_POLICY = ".gemini/handrail-policy.toml"
_OPENCODE_HOST = {"permission": {f"{NAME}_*": "ask", "{read}": "allow"}}
_OPENCODE_QUIET = {"permission": {f"{NAME}_*": "allow"}}
_OPENCODE_OFF = {"permission": {"bash": "deny", "edit": "deny"}}
_QWEN_HOST = {"permissions": {"allow": ["{read}"], "ask": ["{change}"]}}  # its auto mode asks only if a rule says so
_QWEN_OFF = {"permissions": {"deny": ["run_shell_command", "write_file", "edit", "notebook_edit"]}}
_ZED_QUIET = {"agent": {"tool_permissions": {"tools": {"{tool}": {"default": "allow"}}}}}
_ZED_HOST = {
    "agent": {"tool_permissions": {"tools": {"{read}": {"default": "allow"}, "{change}": {"default": "confirm"}}}}
}
_ZED_OWN = ("terminal", "edit_file", "write_file", "delete_path", "move_path", "copy_path", "create_directory")
_ZED_OFF = {"agent": {"tool_permissions": {"tools": {name: {"default": "deny"} for name in _ZED_OWN}}}}

CLIENTS = {
    "claude-code": ClientKind(
        "Claude Code",
        "claude-code",
        ".mcp.json",
        "~/.claude.json",
        entry={"type": "stdio", "alwaysLoad": True},  # otherwise the model must search for the tools first
        at_start='choose "Yes, I trust this folder", then "Use this MCP server". Enter alone says no; '
        "`claude mcp reset-project-choices` lets it ask again",
        tool=f"mcp__{NAME}__{{tool}}",
        host=Switch(project={".claude/settings.json": _CLAUDE_HOST}, user={"~/.claude/settings.json": _CLAUDE_HOST}),
        quiet=Switch(project={".claude/settings.json": _CLAUDE_QUIET}, user={"~/.claude/settings.json": _CLAUDE_QUIET}),
        own_off=Switch(project={".claude/settings.json": _CLAUDE_OFF}, user={"~/.claude/settings.json": _CLAUDE_OFF}),
    ),
    "claude-desktop": ClientKind(
        "Claude Desktop",
        "claude-code",
        user="{data}/Claude/claude_desktop_config.json",
        starts_anywhere=True,
        asks=False,
        quiet=Switch(by_hand='choose "Always allow" in the client\'s first question about a tool'),
        own_tools=False,
    ),
    "codex": ClientKind(
        "Codex",
        "codex-2026",
        ".codex/config.toml",
        "~/.codex/config.toml",
        key="mcp_servers",
        form="toml",
        entry={"required": True},  # otherwise a task may begin before the tools are there
        first="user",
        at_start="trust the folder",
        quiet=Switch(entry={"default_tools_approval_mode": "approve"}),
        own_off=Switch(project={".codex/config.toml": _CODEX_OFF}, user={"~/.codex/config.toml": _CODEX_OFF}),
    ),
    "cursor": ClientKind(
        "Cursor",
        "copilot",
        ".cursor/mcp.json",
        "~/.cursor/mcp.json",
        root="${workspaceFolder}",
        quiet=Switch(
            project={".cursor/permissions.json": _CURSOR_QUIET}, user={"~/.cursor/permissions.json": _CURSOR_QUIET}
        ),
        own_off=Switch(
            project={".cursor/cli.json": _CURSOR_OFF},
            by_hand="in the editor, leave the terminal and edit tools unchecked in a custom mode; .cursor/cli.json"
            " covers the command line only",
        ),
    ),
    "vscode": ClientKind(
        "VS Code",
        "copilot",
        ".vscode/mcp.json",
        "{data}/Code/User/mcp.json",
        key="servers",
        entry={"type": "stdio"},
        root="${workspaceFolder}",
        quiet=Switch(by_hand='choose "Always Allow" for the server in the client\'s first question'),
        own_off=Switch(by_hand="leave only the tools of handrail checked in Configure Tools of the chat view"),
    ),
    "gemini-cli": ClientKind(
        "Gemini CLI",
        "gemini-3",
        ".gemini/settings.json",
        "~/.gemini/settings.json",
        asks=False,
        at_start="trust the folder; in other folders it starts no server",
        host=Switch(
            project={".gemini/settings.json": {"policyPaths": [_GEMINI_POLICY]}, _GEMINI_POLICY: _GEMINI_HOST},
            user={"~/.gemini/policies/handrail.toml": _GEMINI_HOST},
        ),
        quiet=Switch(entry={"trust": True}),
        own_off=Switch(
            project={".gemini/settings.json": {"policyPaths": [_GEMINI_POLICY]}, _GEMINI_POLICY: _GEMINI_OFF},
            user={"~/.gemini/policies/handrail.toml": _GEMINI_OFF},
        ),
    ),
    "opencode": ClientKind(
        "opencode",
        "copilot",
        "opencode.json",
        "{config}/opencode/opencode.json",
        key="mcp",
        entry={"type": "local", "enabled": True},
        one_list=True,
        asks=False,
        tool=f"{NAME}_{{tool}}",
        host=Switch(
            project={"opencode.json": _OPENCODE_HOST}, user={"{config}/opencode/opencode.json": _OPENCODE_HOST}
        ),
        quiet=Switch(
            project={"opencode.json": _OPENCODE_QUIET}, user={"{config}/opencode/opencode.json": _OPENCODE_QUIET}
        ),
        own_off=Switch(
            project={"opencode.json": _OPENCODE_OFF}, user={"{config}/opencode/opencode.json": _OPENCODE_OFF}
        ),
    ),
    "zed": ClientKind(
        "Zed",
        "copilot",
        ".zed/settings.json",
        "{config}/zed/settings.json",
        key="context_servers",
        asks=False,
        first="user",
        tool=f"mcp:{NAME}:{{tool}}",
        host=Switch(user={"{config}/zed/settings.json": _ZED_HOST}),
        quiet=Switch(user={"{config}/zed/settings.json": _ZED_QUIET}),
        own_off=Switch(user={"{config}/zed/settings.json": _ZED_OFF}),
    ),
    "windsurf": ClientKind(
        "Windsurf",
        "copilot",
        user="~/.codeium/windsurf/mcp_config.json",
        starts_anywhere=True,
        asks=False,
        quiet=Switch(by_hand="the client has no such setting"),
        own_off=Switch(by_hand="the client has no such setting; ask the model to use the tools of handrail"),
    ),
    "cline": ClientKind(
        "Cline",
        "copilot",
        user="~/.cline/data/settings/cline_mcp_settings.json",
        starts_anywhere=True,
        asks=False,
        host=Switch(entry={"autoApprove": ["{read}"]}, user={_CLINE_SETTINGS: _CLINE_HOST}),
        quiet=Switch(entry={"autoApprove": ["{tool}"]}),
        own_off=Switch(user={_CLINE_SETTINGS: _CLINE_OFF}),
    ),
    "qwen-code": ClientKind(
        "Qwen Code",
        "gemini-3",
        ".qwen/settings.json",
        "~/.qwen/settings.json",
        entry={"alwaysLoadTools": True},  # otherwise the model must search for the tools first
        asks=False,
        at_start="approve the server",
        tool=f"mcp__{NAME}__{{tool}}",
        host=Switch(project={".qwen/settings.json": _QWEN_HOST}, user={"~/.qwen/settings.json": _QWEN_HOST}),
        quiet=Switch(entry={"trust": True}),
        own_off=Switch(project={".qwen/settings.json": _QWEN_OFF}, user={"~/.qwen/settings.json": _QWEN_OFF}),
    ),
    "goose": ClientKind(
        "goose",
        "copilot",
        user="{config}/goose/config.yaml",
        key="extensions",
        form="yaml",
        entry={"enabled": True, "type": "stdio", "name": NAME, "timeout": 300, "bundled": None, "envs": {}},
        command="cmd",
        host=Switch(user={"{config}/goose/config.yaml": {"GOOSE_MODE": "approve"}}),
        quiet=Switch(by_hand="nothing, unless GOOSE_MODE is set: then allow the tools in goose configure"),
        own_off=Switch(by_hand="switch off the extension developer with goose configure, Toggle Extensions"),
    ),
}
