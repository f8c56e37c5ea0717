"""Runs a command on a terminal of its own, and says as JSON what came of it.

Reads from stdin a JSON object:
  command  words; the first is a path
  cwd, env, columns, rows
  pipes    streams that are no terminal: "stdin" (empty), "stdout", "stderr"
  steps    each waits for what is seen ("seen", a regular expression over what came since the last step)
           or for a file ("file"), then types "type", makes a file ("touch"), resizes to "columns", or sends "signal" to the command alone
  within   seconds for all of it

Writes to stdout a JSON object: code, signal, screen, stdout, stderr, left (steps that were never reached),
firstByte and seconds (since the start). Whatever is still there in the end is ended.
"""
import fcntl
import json
import os
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

TICK = 0.02


def set_size(screen, rows, columns):
    fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def start(told, terminal):
    """Starts the command as the leader of a session whose terminal this is."""
    pipes = told.get("pipes", [])

    def take_terminal():
        os.setsid()
        fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)

    return subprocess.Popen(
        told["command"],
        cwd=told.get("cwd"),
        env=told.get("env"),
        stdin=subprocess.DEVNULL if "stdin" in pipes else terminal,
        stdout=subprocess.PIPE if "stdout" in pipes else terminal,
        stderr=subprocess.PIPE if "stderr" in pipes else terminal,
        preexec_fn=take_terminal,
    )


class Run:
    def __init__(self, told):
        self.told = told
        self.steps = list(told.get("steps", []))
        self.began = time.monotonic()
        self.until = self.began + told.get("within", 100)
        self.screen, terminal = os.openpty()
        set_size(terminal, told.get("rows", 40), told.get("columns", 80))
        self.child = start(told, terminal)
        os.close(terminal)
        self.texts = {"screen": b"", "stdout": b"", "stderr": b""}
        self.names = {self.screen: "screen"}
        for name in ("stdout", "stderr"):
            stream = getattr(self.child, name)
            if stream is not None:
                self.names[stream.fileno()] = name
        self.looked_at = 0
        self.first_byte = None

    def read(self):
        ready, _, _ = select.select(list(self.names), [], [], TICK)
        for fd in ready:
            try:
                data = os.read(fd, 65536)
            except OSError:
                data = b""
            if not data:
                del self.names[fd]
                continue
            if self.first_byte is None and fd == self.screen:
                self.first_byte = time.monotonic() - self.began
            self.texts[self.names[fd]] += data
        return len(ready) > 0

    def is_due(self, step):
        if "file" in step and not os.path.exists(step["file"]):
            return False
        if "seen" not in step:
            return True
        seen = self.texts["screen"].decode("utf-8", "replace")
        found = re.search(step["seen"], seen[self.looked_at:])
        if found is None:
            return False
        self.looked_at += found.end()
        return True

    def do(self, step):
        if "columns" in step:
            set_size(self.screen, self.told.get("rows", 40), step["columns"])
        if "type" in step:
            os.write(self.screen, step["type"].encode())
        if "touch" in step:
            open(step["touch"], "w").close()
        if "signal" in step:
            os.kill(self.child.pid, getattr(signal, step["signal"]))

    def to_the_end(self):
        while time.monotonic() < self.until:
            # Looked at before: what it wrote last may come between a look for output and its end.
            has_ended = self.child.poll() is not None
            any_read = self.read()
            if self.steps and self.is_due(self.steps[0]):
                self.do(self.steps.pop(0))
            if has_ended and not any_read:
                break
        is_late = self.child.poll() is None
        self.end_all()
        code = self.child.wait()
        decoded = {name: text.decode("utf-8", "replace") for name, text in self.texts.items()}
        return {
            **decoded,
            "code": code if code >= 0 else None,
            "signal": None if code >= 0 else signal.Signals(-code).name,
            "late": is_late,
            "left": self.steps,
            "firstByte": self.first_byte,
            "seconds": time.monotonic() - self.began,
        }

    def end_all(self):
        """The command leads a group; nobody else is in it."""
        if self.child.poll() is None:
            os.killpg(self.child.pid, signal.SIGKILL)


if __name__ == "__main__":
    print(json.dumps(Run(json.load(sys.stdin)).to_the_end()))
