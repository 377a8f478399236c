"""Ask the serving process of the emulated BMCs: `chassis.py SOCKET BMC get power`. ipmi_sim runs it.

It is started for every power status of every BMC, so it reads nothing but the standard library's socket.
"""

import os
import socket
import sys


def ask(path: str, words: "list[str]") -> "tuple[bool, str]":
    """Return whether it was done, and what was said. Raises OSError when nobody serves."""
    folder = os.open(os.path.dirname(path), os.O_PATH)
    try:
        with socket.socket(socket.AF_UNIX) as server:
            # By the folder's number: the path of a socket may have 107 bytes, one of a state folder more.
            server.connect(f"/proc/self/fd/{folder}/{os.path.basename(path)}")
            server.sendall("\0".join(words).encode())
            server.shutdown(socket.SHUT_WR)
            said = b""
            while part := server.recv(4096):
                said += part
    finally:
        os.close(folder)
    done, _, text = said.decode().partition("\n")
    return done == "ok", text


if __name__ == "__main__":
    try:
        done, text = ask(sys.argv[1], sys.argv[2:])
    except OSError as error:
        done, text = False, f"{sys.argv[1]}: {error.strerror}\n"
    sys.stdout.write(text)
    sys.exit(0 if done else 1)
