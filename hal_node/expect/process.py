# -*- coding: utf-8 -*-
"""Run something that may hang: a program, or a read from a file system that no longer answers.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

import errno
import json
import os
import select
import signal
import subprocess
import time

from .values import Reading, Unreadable, to_bytes, to_text

MYPY = False
if MYPY:
    from typing import Any, Callable, NoReturn  # noqa: F401  in comments

__metaclass__ = type

SEARCH_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
MOST_OUTPUT = 4 * 1024 * 1024  # bytes
FILE_TIMEOUT_SECONDS = 20
AFTER_A_HANG_SECONDS = 2  # many entries may be on the file system that hangs


def run(argv, timeout_seconds=20):
    # type: (list[str], float) -> tuple[int, str, str]
    """Run a program without a shell and return (exit status, output, errors) as texts.

    Raises Unreadable when it is not there, may not be run, is killed, prints too much or takes too long; then it is
    killed with everything it started. Its locale is C and its input is empty.
    """
    environment = dict(os.environ, LC_ALL='C', LANGUAGE='C')
    environment['PATH'] = environment.get('PATH', '') + ':' + SEARCH_PATH
    program = _find(argv[0], environment['PATH'])
    try:
        with open(os.devnull, 'rb') as nothing:
            process = subprocess.Popen([to_bytes(word) for word in [program] + list(argv[1:])],
                                       stdin=nothing, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       env=environment, cwd='/', close_fds=True, preexec_fn=os.setsid)  # type: Any  # its streams are pipes
    except (OSError, ValueError) as error:
        raise Unreadable('cannot run %s: %s' % (argv[0], getattr(error, 'strerror', None) or error))
    try:
        out, err = _collect(process, time.time() + timeout_seconds, argv[0], timeout_seconds)
    finally:
        _kill_group(process)
        process.stdout.close()
        process.stderr.close()
    status = process.returncode
    if status < 0:
        raise Unreadable('%s was killed by signal %d' % (argv[0], -status))
    return status, to_text(out), to_text(err)


def _find(name, search_path):
    # type: (str, str) -> str
    """Return the path of a program. subprocess would search the caller's PATH, which under sudo lacks sbin."""
    if '/' in name:
        return name
    for folder in search_path.split(':'):
        path = os.path.join(folder or '/', name)
        if os.path.isfile(to_bytes(path)) and os.access(to_bytes(path), os.X_OK):
            return path
    raise Unreadable('there is no program %s' % name)


def _collect(process, deadline, name, timeout_seconds):
    # type: (Any, float, str, float) -> tuple[bytes, bytes]
    """Read both streams to their ends, or until a second after the program's own end: a daemon may keep them open."""
    streams = {process.stdout.fileno(): [], process.stderr.fileno(): []}  # type: dict[int, list[bytes]]
    opened = list(streams)
    size = 0
    over = None
    while opened:
        now = time.time()
        if over is None and process.poll() is not None:
            over = now + 1
        enough = over is not None and now > over
        if now > deadline and not enough:
            raise Unreadable('%s did not finish within %g s' % (name, timeout_seconds))
        ready = _readable(opened, 0 if enough else min(0.2, max(0, deadline - now)))
        if enough and not ready:  # a second alone says nothing: this process may have been off the processor
            break
        for descriptor in ready:
            chunk = os.read(descriptor, 65536)
            if not chunk:
                opened.remove(descriptor)
                continue
            streams[descriptor].append(chunk)
            size += len(chunk)
            if size > MOST_OUTPUT:
                raise Unreadable('%s printed more than %d bytes' % (name, MOST_OUTPUT))
    nap = 0.0005  # most programs end with their output; an audit runs dozens
    while process.poll() is None:
        if time.time() > deadline:
            raise Unreadable('%s did not finish within %g s' % (name, timeout_seconds))
        time.sleep(nap)
        nap = min(2 * nap, 0.02)
    return b''.join(streams[process.stdout.fileno()]), b''.join(streams[process.stderr.fileno()])


def _readable(descriptors, seconds):
    # type: (list[int], float) -> list[int]
    try:
        return select.select(descriptors, [], [], seconds)[0]
    except select.error as error:  # Python 2 does not retry after a signal
        if error.args[0] == errno.EINTR:
            return []
        raise


def _kill_group(process):
    # type: (subprocess.Popen[bytes]) -> None
    """End what the program started, too. A process stuck in the kernel is left, not waited for."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except OSError:
        pass
    for _attempt in range(50):
        if process.poll() is not None:
            return
        time.sleep(0.02)


def read_guarded(read, requests, timeout_seconds=FILE_TIMEOUT_SECONDS, most_hangs=None):
    # type: (Callable[[Any], Reading], list[Any], float, int | None) -> list[Reading | Unreadable]
    """Return [read(request), ...] as Reading or Unreadable, computed in a child process.

    A network file system that hangs would hang the caller for good; here it costs one entry `timeout_seconds`, further
    ones AFTER_A_HANG_SECONDS each, and the rest is read by a new child. After `most_hangs` the rest is not asked.
    """
    results, children = [], 0  # type: list[Reading | Unreadable], int
    while len(results) < len(requests):
        if most_hangs is not None and children >= most_hangs:
            left = Unreadable('not asked: %d reads before it did not come to an end' % children)
            return results + [left] * (len(requests) - len(results))
        children += 1
        results.extend(_one_child(read, requests[len(results):], timeout_seconds))
        timeout_seconds = min(timeout_seconds, AFTER_A_HANG_SECONDS)
    return results


def _one_child(read, requests, timeout_seconds):
    # type: (Callable[[Any], Reading], list[Any], float) -> list[Reading | Unreadable]
    incoming, outgoing = os.pipe()
    child = os.fork()
    if child == 0:
        _serve(read, requests, incoming, outgoing)
    os.close(outgoing)
    results, rest, stopped = [], b'', ''  # type: list[Reading | Unreadable], bytes, str
    try:
        while len(results) < len(requests) and not stopped:
            # One wait an answer: a child that answers keeps going, however many requests there are.
            if not _readable([incoming], timeout_seconds):
                stopped = 'no answer within %g s: does its file system hang?' % timeout_seconds
                break
            chunk = os.read(incoming, 65536)
            if not chunk:
                stopped = 'the process that read it ended'
            rest += chunk
            complete = rest.split(b'\n')
            rest = complete.pop()
            results.extend(_decode(line) for line in complete)
    finally:
        os.close(incoming)
        _reap(child)
    if stopped and len(results) < len(requests):
        results.append(Unreadable(stopped))
    return results


def _serve(read, requests, incoming, outgoing):
    # type: (Callable[[Any], Reading], list[Any], int, int) -> NoReturn
    """Body of the child: never returns. It must not hold the caller's output open if it hangs."""
    try:
        os.close(incoming)
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nothing, descriptor)
        for request in requests:
            try:
                answer = {'reading': read(request).as_dict()}  # type: dict[str, Any]
            except Unreadable as error:
                answer = {'reason': error.reason, 'detail': error.detail}
            except Exception as error:  # noqa: B902 - whatever it is, one entry is unknown and the others are read
                answer = {'reason': 'cannot be read: %s' % error, 'detail': ''}
            line = json.dumps(answer).encode('ascii') + b'\n'
            while line:
                line = line[os.write(outgoing, line):]
    finally:
        os._exit(0)


def _decode(line):
    # type: (bytes) -> Reading | Unreadable
    answer = json.loads(line.decode('ascii'))
    if 'reading' in answer:
        return Reading(**{str(key): value for key, value in answer['reading'].items()})
    return Unreadable(answer['reason'], answer['detail'])


def _reap(child):
    # type: (int) -> None
    for attempt in range(100):
        try:
            if os.waitpid(child, os.WNOHANG)[0]:
                return
            if attempt == 50:
                os.kill(child, signal.SIGKILL)
        except OSError:
            return
        time.sleep(0.002 if attempt < 50 else 0.01)
