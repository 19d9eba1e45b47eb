"""The first process inside the sandbox: it starts every command and terminal in there, and ends them.

It is handed over as code (no file of ours exists inside), so it stands alone, and it starts before the first
command may begin, so it imports C modules only: `socket`, `signal` and `json` would double its start.

Requests come over `control`: one byte string with descriptors, the first of which is a marshalled `Request` tuple,
the second the command's `channel`. On the channel we say `started PID`, `failed ERRNO` or `exit STATUS PIDS`;
the host says `end`, or closes it, which means the same. What belongs to a command is known by a mark that is inherited
whatever a process does and can only be lowered: the hard limit of a resource that ordinary processes never use.
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
else:
    import _signal

MARK = resource.RLIMIT_RTTIME
HIGHEST_MARK = 1 << 62
RUNNING, BACKGROUND, ENDING = "running", "background", "ending"


class Task:
    def __init__(self, channel, request, mark):
        self.channel, self.mark = channel, mark
        self.keep_background = request["keep_background"]
        self.grace = request["grace"]
        self.pid = 0
        self.status = None
        self.state = RUNNING
        self.kill_at = 0.0
        self.why = b"-"  # the limit that ended it

    def say(self, message, *descriptors):
        ancillary = []
        if descriptors:
            raw = b"".join(fd.to_bytes(4, sys.byteorder) for fd in descriptors)
            ancillary = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, raw)]
        try:
            self.channel.sendmsg([message], ancillary, _socket.MSG_NOSIGNAL | _socket.MSG_DONTWAIT)
        except OSError:
            pass  # the host let go of this command: its channel's end tells us to end it


class Supervisor:
    def __init__(self, control, options, first):
        self.control = control
        self.first = first  # a command that was started beside us, or 0
        self.alone = options["alone"]  # whether every process that we can see is ours
        self.watch = watch = options["watch"]
        self.tasks = {}
        self.poller = select.poll()
        self.poller.register(control.fileno(), select.POLLIN)
        wake_out, wake_in = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self.wake = wake_out
        self.poller.register(wake_out, select.POLLIN)
        _signal.signal(_signal.SIGCHLD, lambda number, frame: None)
        _signal.set_wakeup_fd(wake_in)
        own = resource.getrlimit(MARK)[1]
        self.own_mark = own
        self.next_mark = HIGHEST_MARK if own == resource.RLIM_INFINITY else own
        self.watch_pause = watch["pause"]
        self.seen = 0

    def run(self):
        while True:
            for fd, event in self.poller.poll(self.pause()):
                if fd == self.wake:
                    os.read(self.wake, 4096)
                elif fd == self.control.fileno():
                    if not self.receive():
                        return
                elif fd in self.tasks:
                    self.hear(self.tasks[fd])
            self.reap()
            for task in list(self.tasks.values()):
                self.advance(task)
            self.look_after_limits()

    def pause(self):
        """Milliseconds to sleep; None while there is nothing to wait for but events."""
        if any(task.state == ENDING for task in self.tasks.values()):
            return 4
        if not self.tasks:
            self.watch_pause = self.watch["pause"]
            return None
        return self.watch_pause

    # requests

    def receive(self):
        """Take one request; False when the host is gone."""
        message, ancillary, _, _ = self.control.recvmsg(64, _socket.CMSG_SPACE(16), _socket.MSG_CMSG_CLOEXEC)
        if not message:
            return False
        descriptors = []
        for _, _, data in ancillary:
            descriptors += [int.from_bytes(data[at : at + 4], sys.byteorder) for at in range(0, len(data), 4)]
        payload, channel, *streams = descriptors
        size = os.fstat(payload).st_size
        request = marshal.loads(os.pread(payload, size, 0))
        os.close(payload)
        self.next_mark -= 1
        task = Task(_socket.socket(fileno=channel), request, self.next_mark)
        self.tasks[channel] = task
        self.poller.register(channel, select.POLLIN)
        try:
            if request["adopt"]:
                self.adopt(task, request)
            elif request["terminal"]:
                self.start_terminal(task, request)
            else:
                self.start(task, request, streams)
        except OSError as error:
            task.say(b"failed %d" % error.errno)
            self.forget(task)
        finally:
            for fd in streams:
                os.close(fd)
        self.watch_pause = self.watch["pause"]
        return True

    def adopt(self, task, request):
        """The first command was started beside us: everything that bears our own mark is its."""
        task.mark = self.own_mark
        task.pid = self.first
        for pid in self.others():
            for name, value in request["limits"]:
                try:
                    resource.prlimit(pid, name, (value, value))
                except (OSError, ValueError):
                    pass  # it ended, or a lower limit already holds
        task.say(b"started %d" % task.pid)

    def start(self, task, request, streams):
        pid = os.fork()
        if pid:
            task.pid = pid
            task.say(b"started %d" % pid)
            return
        try:
            os.setsid()
            nothing = os.open("/dev/null", os.O_RDONLY)
            for target, fd in enumerate([nothing, *streams]):
                os.dup2(fd, target)
            become(task, request)
        except OSError as error:
            task.say(b"failed %d" % error.errno)
        finally:
            os._exit(127)

    def start_terminal(self, task, request):
        master, slave = os.openpty()
        os.set_inheritable(master, False)
        try:
            set_window_size(slave, *request["terminal"])
            pid = os.fork()
            if pid:
                task.pid = pid
                task.say(b"started %d" % pid, master)
                return
        finally:
            if task.pid:
                os.close(master)
                os.close(slave)
        try:
            os.login_tty(slave)
            become(task, request)
        except OSError as error:
            task.say(b"failed %d" % error.errno)
        finally:
            os._exit(127)

    def hear(self, task):
        try:
            message = task.channel.recv(64, _socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            message = b""
        if not message:
            self.poller.unregister(task.channel.fileno())
        self.begin_end(task)

    # endings

    def reap(self):
        by_pid = {task.pid: task for task in self.tasks.values() if task.status is None}
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            if pid in by_pid:
                by_pid[pid].status = status

    def advance(self, task):
        if task.state == RUNNING and task.status is not None:
            left = self.survivors(task)
            if left and not task.keep_background:
                self.begin_end(task)
            else:
                self.report(task, left)
                task.state = BACKGROUND
                if not left:
                    self.forget(task)
        elif task.state == BACKGROUND and not self.survivors(task):
            self.forget(task)
        elif task.state == ENDING:
            self.end(task)

    def begin_end(self, task):
        if task.state != ENDING:
            task.state = ENDING
            task.kill_at = time.monotonic() + task.grace
            self.signal(self.survivors(task), _signal.SIGTERM)

    def end(self, task):
        left = self.survivors(task)
        if left and time.monotonic() >= task.kill_at:
            frozen = set()
            while set(left) - frozen:  # what is stopped cannot fork, and what it holds of the limit stays held
                self.signal(left, _signal.SIGSTOP)
                frozen |= set(left)
                left = self.survivors(task)
            self.signal(left, _signal.SIGKILL)
            self.reap()
            left = self.survivors(task)
        if not left and task.status is not None:
            self.report(task, [])
            self.forget(task)

    def report(self, task, left):
        pids = b",".join(b"%d" % pid for pid in sorted(left)) or b"-"
        task.say(b"exit %d %s %s" % (task.status, pids, task.why))

    def forget(self, task):
        fd = task.channel.fileno()
        del self.tasks[fd]
        try:
            self.poller.unregister(fd)
        except KeyError:
            pass  # the host had closed its end
        task.channel.close()

    def signal(self, pids, number):
        for pid in pids:
            try:
                os.kill(pid, number)
            except (ProcessLookupError, PermissionError):
                pass  # it ended meanwhile, or (only where nothing confines it) became another user

    # the process table

    def survivors(self, task):
        """The living processes of one command; whatever belongs to no command is ended in passing."""
        leaders = {other.pid: other for other in self.tasks.values() if other.status is None}
        marks = {other.mark: other for other in self.tasks.values()}
        mine = []
        for pid in self.others():
            owner = leaders.get(pid) or marks.get(mark_of(pid))
            if owner is task:
                if is_alive(pid):
                    mine.append(pid)
            elif owner is None and self.alone:
                self.signal([pid], _signal.SIGKILL)
        return mine

    def others(self):
        if self.alone:
            me = os.getpid()
            return [pid for name in os.listdir("/proc") if name.isdigit() and (pid := int(name)) != me]
        found, queue = [], [os.getpid()]
        while queue:
            children = children_of(queue.pop())
            found += children
            queue += children
        return found

    def look_after_limits(self):
        """Where the kernel does not count for us: too many processes or too little disk ends every command."""
        if not self.tasks:
            return
        pids = self.others()
        steady = len(pids) == self.seen
        self.seen = len(pids)
        self.watch_pause = min(self.watch_pause * 2, self.watch["longest_pause"]) if steady else self.watch["pause"]
        why = self.broken_limit(pids)
        if why:
            for task in self.tasks.values():
                task.why = why
            self.end_everything()

    def broken_limit(self, pids):
        if len(pids) > self.watch["processes"]:
            return b"processes"
        if sum(map(resident, pids)) > self.watch["memory"]:
            return b"memory"
        room = os.statvfs(self.watch["root"])
        return b"disk" if room.f_bavail * room.f_frsize < self.watch["disk_reserve"] else b""

    def end_everything(self):
        for task in self.tasks.values():
            task.state, task.kill_at = ENDING, 0.0
        while self.tasks:
            self.reap()
            for task in list(self.tasks.values()):
                self.advance(task)


def become(task, request):
    """In the new process: from here on we are the command."""
    _signal.set_wakeup_fd(-1)
    for number in (_signal.SIGPIPE, _signal.SIGXFSZ, _signal.SIGCHLD):
        _signal.signal(number, _signal.SIG_DFL)
    _signal.pthread_sigmask(_signal.SIG_SETMASK, ())
    for name, value in ((MARK, task.mark), *request["limits"]):
        highest = resource.getrlimit(name)[1]
        if highest == resource.RLIM_INFINITY or value <= highest:
            resource.setrlimit(name, (value, value))
    os.chdir(request["cwd"])
    os.execvpe(request["argv"][0], request["argv"], request["environment"])


def set_window_size(fd, rows, columns):
    import termios  # only terminals need it

    termios.tcsetwinsize(fd, (rows, columns))


def mark_of(pid):
    try:
        return resource.prlimit(pid, MARK)[1]
    except OSError:
        return None


def is_alive(pid):
    fields = stat_of(pid)
    # The main thread of a living process may have ended: then it looks like a zombie with threads.
    return bool(fields) and (fields[0] not in (b"Z", b"X") or int(fields[17]) > 1)


def stat_of(pid):
    """The fields after the name, which may hold anything."""
    return read("/proc/%d/stat" % pid).rpartition(b") ")[2].split()


def resident(pid):
    fields = read("/proc/%d/statm" % pid).split()
    return int(fields[1]) * 4096 if fields else 0


def children_of(pid):
    found = []
    try:
        threads = os.listdir("/proc/%d/task" % pid)
    except OSError:
        return found
    for thread in threads:
        found += map(int, read("/proc/%d/task/%s/children" % (pid, thread)).split())
    return found


def read(path):
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(fd, 65536)
    except OSError:
        return b""
    finally:
        os.close(fd)


def main(control, options, first):
    supervisor = Supervisor(control, options, first)
    control.send(b"ready", _socket.MSG_NOSIGNAL)
    supervisor.run()
    if not supervisor.alone:  # where we are alone, our own end takes everything along
        supervisor.end_everything()
