"""Starts and ends every command and terminal inside the sandbox, as its first process.

This module is sent as code (no file of Handrail exists inside), so it imports no other module of Handrail. Its start
delays the first command, so it imports C modules only: `socket`, `signal` and `json` would double the time.

Requests arrive on the socket `control` with descriptors: a marshalled request, the command's own `channel`, its output
and error (or all handles from 0 on). On the channel the supervisor sends `started PID` (of a terminal, with handles),
`failed ERRNO` or `exit PID STATUS PIDS LIMIT`; these PIDS still run, or ended with a terminal. The host sends `look`,
answered by `look PIDS DIRECTORY`, and `end`, or closes the channel, which means the same. A mark tells to which command
a process belongs: the hard limit of a resource that ordinary processes never use; a process can only lower it.
"""

import _socket
import marshal
import os
import resource
import select
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Callable, Iterable
    from typing import Any
else:
    import _signal

MARK = resource.RLIMIT_RTTIME
HIGHEST_MARK = 1 << 62
RUNNING, BACKGROUND, ENDING = "running", "background", "ending"
ENDING_PAUSE_MS = 4
EVERYONE = -1
"""As a process number: every process that we may signal. Only used as the first process of our own namespace."""


class Task:
    """Holds the state of one command or terminal."""

    def __init__(self, channel: int, request: "dict[str, Any]", mark: int) -> None:
        self.channel, self.mark = _socket.socket(fileno=channel), mark
        self.keep_background: bool = request["keep_background"]
        self.grace: float = request["grace"]
        self.pid, self.state, self.kill_at = 0, RUNNING, 0.0
        self.status: int | None = None
        self.host_closed = False  # whether the host closed its end of the channel
        self.limit = b"-"  # the limit that ended it
        self.ended: set[int] = set()  # the processes that ended with it because it keeps none

    def send(self, message: bytes, *descriptors: int) -> None:
        raw = b"".join(fd.to_bytes(4, sys.byteorder) for fd in descriptors)
        ancillary = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, raw)] if raw else []
        try:
            self.channel.sendmsg([message], ancillary, _socket.MSG_NOSIGNAL | _socket.MSG_DONTWAIT)
        except OSError:
            return  # the host closed the channel; the closed channel makes us end the command


class Supervisor:
    """Runs the commands of one sandbox until the host is gone."""

    def __init__(self, control: _socket.socket, options: "dict[str, Any]", first: int) -> None:
        self.control = control
        self.first = first  # the process of a first command that started along with the sandbox, or 0
        self.alone: bool = options["alone"] and os.getpid() == 1  # whether every visible process is of this sandbox
        self.watch: dict[str, Any] = options["watch"]
        self.tasks: dict[int, Task] = {}
        self.own_mark = resource.getrlimit(MARK)[1]
        self.next_mark = HIGHEST_MARK if self.own_mark == resource.RLIM_INFINITY else self.own_mark
        self.watch_at, self.watch_pause, self.seen = 0.0, 0.0, 0
        self.hung_up: set[int] = set()  # processes that the kernel ended together with their terminal
        self.wake, wake_in = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        _signal.signal(_signal.SIGCHLD, lambda _number, _frame: None)
        _signal.set_wakeup_fd(wake_in)
        self.poller = select.poll()
        self.poller.register(control.fileno(), select.POLLIN)
        self.poller.register(self.wake, select.POLLIN)

    def run(self) -> None:
        try:
            self.control.send(b"ready", _socket.MSG_NOSIGNAL)
        except ConnectionError:
            return  # the host ended while we started
        while True:
            for fd, _ in self.poller.poll(self.pause()):
                if fd == self.wake:
                    os.read(self.wake, 4096)
                elif fd in self.tasks:
                    self.receive_end(self.tasks[fd])
                elif fd == self.control.fileno() and not self.receive():
                    return
            self.reap()
            for task in list(self.tasks.values()):
                self.advance(task)
            if self.tasks and time.monotonic() >= self.watch_at:
                self.enforce_limits()

    def pause(self) -> int | None:
        """Return how many milliseconds to wait for an event; None to wait without a limit."""
        if any(task.state == ENDING for task in self.tasks.values()):
            return ENDING_PAUSE_MS
        return max(0, int((self.watch_at - time.monotonic()) * 1000)) + 1 if self.tasks else None

    def receive(self) -> bool:
        """Receive and start one request. Return False if the host is gone."""
        message, ancillary, _, _ = self.control.recvmsg(64, _socket.CMSG_SPACE(24), _socket.MSG_CMSG_CLOEXEC)
        if not message:
            return False
        raw = b"".join(data for _, _, data in ancillary)
        payload, channel, *streams = (int.from_bytes(raw[at : at + 4], sys.byteorder) for at in range(0, len(raw), 4))
        request = marshal.loads(os.pread(payload, os.fstat(payload).st_size, 0))  # noqa: S302  our own host sent it
        os.close(payload)
        self.next_mark -= 1
        task = self.tasks[channel] = Task(channel, request, self.next_mark)
        self.poller.register(channel, select.POLLIN)
        self.watch_pause = self.watch["pause"]
        self.watch_at = time.monotonic() + self.watch_pause
        try:
            if request["adopt"]:
                self.adopt(task, request)
            elif request["terminal"]:
                self.start_terminal(task, request)
            else:
                self.start(task, request, streams)
        except OSError as error:
            task.send(b"failed %d" % (error.errno or 0))
            self.forget(task)
        for fd in streams:
            os.close(fd)
        return True

    def adopt(self, task: Task, request: "dict[str, Any]") -> None:
        """Take over the first command (see `first_command.py`), whose processes have the supervisor's own mark."""
        task.mark, task.pid = self.own_mark, self.first
        for pid in self.others():
            for name, value in request["limits"]:
                try:
                    resource.prlimit(pid, name, (value, value))
                except (OSError, ValueError):
                    continue  # the process ended, or has a lower limit already

    def start(self, task: Task, request: "dict[str, Any]", streams: list[int]) -> None:
        def attach() -> None:
            os.setsid()
            given = streams if len(streams) > 2 else [os.open(os.devnull, os.O_RDONLY), *streams]
            for target, fd in enumerate(given):
                os.dup2(fd, target)

        task.pid = os.fork()
        if not task.pid:
            become(task, request, attach)

    def start_terminal(self, task: Task, request: "dict[str, Any]") -> None:
        import termios  # noqa: PLC0415  only terminals need it

        screen, keyboard = os.openpty()
        termios.tcsetwinsize(keyboard, request["terminal"])
        started, starting = os.pipe2(os.O_CLOEXEC)  # the start of the program closes it, or its failure
        task.pid = os.fork()
        if task.pid:
            task.send(b"started %d" % task.pid, screen, started)
            for fd in (screen, keyboard, started, starting):
                os.close(fd)
            return
        become(task, request, lambda: os.login_tty(keyboard))

    def receive_end(self, task: Task) -> None:
        """Begin to end a command whose host sent `end` or closed the channel."""
        try:
            message = task.channel.recv(64, _socket.MSG_DONTWAIT)
            if message == b"look":
                where, others = os.readlink(b"/proc/%d/cwd" % task.pid), {*self.survivors(task)} - {task.pid}
                task.send(b"look %s %s" % (listed(others), where))
                return
        except BlockingIOError:
            return
        except OSError:
            message = b""
        if not message:
            self.poller.unregister(task.channel.fileno())
            task.host_closed = True
        self.begin_end(task)

    def reap(self) -> bool:
        """Collect the exit statuses of ended processes. Return True if there were any."""
        by_pid = {task.pid: task for task in self.tasks.values() if task.status is None}
        found = False
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return found
            if not pid:
                return found
            found = True
            if pid in by_pid:
                by_pid[pid].status = status
            elif os.WIFSIGNALED(status) and os.WTERMSIG(status) == _signal.SIGHUP:
                self.hung_up.add(pid)

    def advance(self, task: Task) -> None:
        """Take the next step of a command: report its end, keep its children, or end them."""
        if task.state == ENDING:
            self.end(task)
        elif task.status is not None:
            left = self.survivors(task)
            if not left:
                self.report(task, left)
                self.forget(task)
            elif not task.keep_background:
                task.ended = set(left)
                self.begin_end(task)
            elif task.state == RUNNING:
                self.report(task, left)
                task.state = BACKGROUND

    def begin_end(self, task: Task) -> None:
        """Ask the processes of a command to end; `end` kills them after the grace period."""
        if task.state != ENDING:
            task.state = ENDING
            task.kill_at = time.monotonic() + task.grace
            self.signal(self.survivors(task), _signal.SIGTERM)

    def end(self, task: Task) -> None:
        """Kill the processes of a command after the grace period, and report when all have ended."""
        left = self.survivors(task)
        if left and time.monotonic() >= task.kill_at:
            self.kill(task, left)
            self.reap()
            left = self.survivors(task)
        if not left and task.status is not None:
            self.report(task, left)
            self.forget(task)

    def kill(self, task: Task, left: list[int]) -> None:
        """Kill the processes of a command so that none escapes by forking."""
        if self.alone and all(other.state == ENDING for other in self.tasks.values()):
            self.signal([EVERYONE], _signal.SIGKILL)  # all at once: none can fork in between
            return
        stopped: set[int] = set()
        while set(left) - stopped:  # a stopped process cannot fork, and still counts for the limit of processes
            self.signal(left, _signal.SIGSTOP)
            stopped.update(left)
            left = self.survivors(task)
        self.signal(left, _signal.SIGKILL)

    def end_everything(self) -> None:
        """Kill every command without a grace period, and report each end."""
        for task in self.tasks.values():
            task.state, task.kill_at = ENDING, 0.0
        while self.tasks:
            self.reap()
            for task in list(self.tasks.values()):
                self.advance(task)

    def report(self, task: Task, left: list[int]) -> None:
        if not task.keep_background:
            task.ended, self.hung_up = task.ended | self.hung_up, set()
        task.send(b"exit %d %d %s %s" % (task.pid, task.status or 0, listed(left or task.ended), task.limit))

    def forget(self, task: Task) -> None:
        fd = task.channel.fileno()
        del self.tasks[fd]
        if not task.host_closed:
            self.poller.unregister(fd)
        task.channel.close()

    def signal(self, pids: "Iterable[int]", number: int) -> None:
        for pid in pids:
            try:
                os.kill(pid, number)
            except (ProcessLookupError, PermissionError):
                continue  # the process has ended or, at the level `off` only, became another user

    def survivors(self, task: Task) -> list[int]:
        """Return the running processes of one command."""
        while True:
            left = self.scan_processes(task)
            if left or not self.reap():  # else scan again: what has ended may have left a child that the scan missed
                return left

    def scan_processes(self, task: Task) -> list[int]:
        """Return the processes of a command that one scan finds. Kill processes that belong to no command."""
        leaders = {other.pid: other for other in self.tasks.values() if other.status is None}
        marks = {other.mark: other for other in self.tasks.values()}
        mine = []
        for pid in self.others():
            owner = leaders.get(pid) or marks.get(mark_of(pid))
            if owner is None and self.alone:
                self.signal([pid], _signal.SIGKILL)
            elif owner is task and is_alive(pid):
                mine.append(pid)
        return mine

    def others(self) -> list[int]:
        """Return every process of this sandbox but the supervisor."""
        if self.alone:
            me = os.getpid()
            return [pid for name in os.listdir("/proc") if name.isdigit() and (pid := int(name)) != me]
        found = children_of(os.getpid())
        for pid in found:  # the list grows meanwhile
            found += children_of(pid)
        return found

    def enforce_limits(self) -> None:
        """End every command if together they exceed a limit that the kernel does not enforce."""
        pids = self.others()
        steady, self.seen = len(pids) == self.seen, len(pids)
        self.watch_pause = min(self.watch_pause * 2, self.watch["longest_pause"]) if steady else self.watch["pause"]
        self.watch_at = time.monotonic() + self.watch_pause
        limit = self.broken_limit(pids)
        if limit:
            for task in self.tasks.values():
                task.limit = limit
            self.end_everything()

    def broken_limit(self, pids: list[int]) -> bytes:
        if len(pids) > self.watch["processes"]:
            return b"processes"
        if sum(map(resident_bytes, pids)) > self.watch["memory"]:
            return b"memory"
        room = os.statvfs(self.watch["root"])
        return b"disk" if room.f_bavail * room.f_frsize < self.watch["disk_reserve"] else b""


def become(task: Task, request: "dict[str, Any]", attach: "Callable[[], None]") -> None:
    """Become the command, in the new process, or report why not. `attach` connects its streams. Never return."""
    try:
        attach()
        _signal.set_wakeup_fd(-1)
        for number in _signal.valid_signals():
            if _signal.getsignal(number) not in (_signal.SIG_DFL, None):  # also a signal that our parent ignored
                _signal.signal(number, _signal.SIG_DFL)
        _signal.pthread_sigmask(_signal.SIG_SETMASK, ())
        for name, value in ((MARK, task.mark), *request["limits"]):
            highest = resource.getrlimit(name)[1]
            if highest == resource.RLIM_INFINITY or value <= highest:
                resource.setrlimit(name, (value, value))
        os.chdir(request["cwd"])
        argv, environment = request["argv"], request["environment"]
        program = argv[0] if b"/" in argv[0] else found(argv[0], environment)
        os.execve(program, argv, environment)  # noqa: S606  the sandbox exists for this
    except OSError as error:
        task.send(b"failed %d" % (error.errno or 0))
    finally:
        os._exit(127)


def found(name: bytes, environment: "dict[bytes, bytes]") -> bytes:
    """Return the file of a program in PATH; empty if there is none. A directory that cannot be searched has none."""
    places = environment.get(b"PATH", os.defpath.encode()).split(b":")
    files = [path for place in places if os.path.isfile(path := os.path.join(place, name))]
    return next((path for path in files if os.access(path, os.X_OK)), b"".join(files[:1]))


def listed(pids: "Iterable[int]") -> bytes:
    return b",".join(b"%d" % pid for pid in sorted(pids)) or b"-"


def mark_of(pid: int) -> int:
    try:
        return resource.prlimit(pid, MARK)[1]
    except OSError:
        return 0


def is_alive(pid: int) -> bool:
    fields = read(f"/proc/{pid}/stat").rpartition(b") ")[2].split()
    # The main thread of a running process may have ended: the process then looks like a zombie with threads.
    return bool(fields) and (fields[0] not in (b"Z", b"X") or int(fields[17]) > 1)


def resident_bytes(pid: int) -> int:
    fields = read(f"/proc/{pid}/statm").split()
    return int(fields[1]) * resource.getpagesize() if fields else 0


def children_of(pid: int) -> list[int]:
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
    return [int(child) for thread in threads for child in read(f"/proc/{pid}/task/{thread}/children").split()]


def read(path: str) -> bytes:
    """Return the content of a file of /proc; empty if its process is gone."""
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read(65536)
    except OSError:
        return b""


def main(control: _socket.socket, options: "dict[str, Any]", first: int) -> None:
    supervisor = Supervisor(control, options, first)
    supervisor.run()
    if not supervisor.alone:  # in a namespace of our own, our end ends every process
        supervisor.end_everything()
    os._exit(0)
