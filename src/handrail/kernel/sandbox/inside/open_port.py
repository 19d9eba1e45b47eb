"""Opens a port in the network of the sandbox and hands it to the host; runs before the supervisor, at level `hosts`.

Like the supervisor, this module is sent as code and cannot import other modules of Handrail.
"""

import _socket
import sys


def main(control: _socket.socket) -> None:
    """Send the listening socket to the host, whose proxy takes the connections."""
    port = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    port.bind(("127.0.0.1", 0))
    port.listen(128)
    handle = port.fileno().to_bytes(4, sys.byteorder)
    control.sendmsg([b"port"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, handle)], _socket.MSG_NOSIGNAL)
    port.close()
