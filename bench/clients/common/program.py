"""A client that is a program: what it is called with, and its output."""

import os
import subprocess

from matrix import HOME


def run(*command, environment=None):
    """Runs a program of the client's installation, and gives what it wrote to stdout."""
    program = HOME / "bin" / command[0]
    done = subprocess.run([program, *command[1:]], capture_output=True, env={**os.environ, **(environment or {})})
    if done.returncode != 0:
        told = done.stderr.decode(errors="replace") or done.stdout.decode(errors="replace")
        raise RuntimeError(f"{command[0]} {command[1]}: exit code {done.returncode}: {told[-600:]}")
    return done.stdout
