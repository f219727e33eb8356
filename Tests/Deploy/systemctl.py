#!/usr/bin/python3
"""A stand-in for systemctl in the sandbox of test_guide.py, where no systemd runs.

It does what the units of that test ask for, by their own lines: user, credentials, state directory, environment, the
commands that start and reload them. It isolates nothing, and opens no sockets: a hub that is handed none opens its own.
"""

import os
import pwd
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time

PIDS = "/run/stand-in"


class Unit:
    def __init__(self, name):
        self.name = name.removesuffix(".service")
        paths = [f"{folder}/{self.name}.service" for folder in ("/etc/systemd/system", "/lib/systemd/system")]
        with open(next(filter(os.path.exists, paths))) as file:
            self.lines = re.findall(r"^(\w+)=(.*)$", file.read(), re.M)

    def all(self, key):
        return [value for name, value in self.lines if name == key]

    def one(self, key, default=""):
        return (self.all(key) or [default])[-1]

    @property
    def pid_file(self):
        return self.one("PIDFile", f"{PIDS}/{self.name}")

    def pid(self):
        """Of the main process; None where it does not run."""
        try:
            with open(self.pid_file) as file:
                pid = int(file.read())
            with open(f"/proc/{pid}/stat") as file:
                return None if file.read().rsplit(")", 1)[1].split()[0] == "Z" else pid
        except (OSError, ValueError):
            return None

    def words(self, command, environment):
        """As systemd splits it: $NAME becomes any number of words."""
        words = shlex.split(command.lstrip("-"))
        return [part for word in words for part in (
            shlex.split(environment.get(word[1:], "")) if word.startswith("$") else [word])]

    def environment(self):
        values = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
        for path in self.all("EnvironmentFile"):
            with open(path.lstrip("-")) as file:
                values |= {name: shlex.split(text)[0] if text else ""
                           for name, text in re.findall(r"^(\w+)=(.*)$", file.read(), re.M)}
        return values

    def user(self):
        name = "nobody" if self.one("DynamicUser") == "yes" else self.one("User", "root")
        return pwd.getpwnam(name)

    def prepare(self, user):
        for credential in self.all("LoadCredential"):
            name, path = credential.split(":", 1)
            folder = f"/run/credentials/{self.name}.service"
            os.makedirs(folder, exist_ok=True)
            shutil.copy(path, f"{folder}/{name}")
            os.chown(f"{folder}/{name}", user.pw_uid, user.pw_gid)
            os.chmod(f"{folder}/{name}", 0o400)
        for state in self.all("StateDirectory"):
            private = f"/var/lib/private/{state}"
            os.makedirs(private, int(self.one("StateDirectoryMode", "0755"), 8), exist_ok=True)
            for folder, _, names in os.walk(private):
                for path in [folder, *(f"{folder}/{name}" for name in names)]:
                    os.chown(path, user.pw_uid, user.pw_gid)
            os.chmod("/var/lib/private", 0o755)
            if not os.path.islink(f"/var/lib/{state}"):
                os.symlink(f"private/{state}", f"/var/lib/{state}")

    def start(self):
        if self.pid():
            return
        user, environment = self.user(), self.environment()
        self.prepare(user)
        options = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": [], "env": environment}
        for command in self.all("ExecStartPre"):
            subprocess.run(self.words(command, environment), check=True, **options)
        command = self.words(self.one("ExecStart"), environment)
        if self.one("Type") == "forking":
            subprocess.run(command, check=True, **options)
            return
        with open(f"/var/log/{self.name}.journal", "ab") as log:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd="/", **options)
        os.makedirs(PIDS, exist_ok=True)
        with open(self.pid_file, "w") as file:
            file.write(str(process.pid))

    def stop(self):
        pid = self.pid()
        if pid:
            os.kill(pid, signal.SIGTERM)
        end = time.monotonic() + float(re.sub(r"\D", "", self.one("TimeoutStopSec", "90")))
        while self.pid():
            if time.monotonic() > end:
                os.kill(pid, signal.SIGKILL)
                sys.exit(f"{self.name} did not stop in time")
            time.sleep(0.02)

    def reload(self):
        command = self.one("ExecReload").replace("$MAINPID", str(self.pid()))
        subprocess.run(self.words(command, {}), check=True)


def main():
    words = [word for word in sys.argv[1:] if word not in ("--quiet", "--system", "--")]
    verb, *rest = words
    units = [Unit(name) for name in rest if not name.startswith("-") and not name.endswith(".socket")]
    for unit in units:
        if verb in ("start", "restart") or verb == "enable" and "--now" in rest:
            if verb == "restart":
                unit.stop()
            unit.start()
        elif verb == "try-restart" and unit.pid():
            unit.stop()
            unit.start()
        elif verb == "stop":
            unit.stop()
        elif verb == "reload":
            unit.reload()
        elif verb == "is-active":
            sys.exit(0 if unit.pid() else 3)
        elif verb == "is-enabled":
            print("enabled")
        elif verb not in ("enable", "try-restart"):
            sys.exit(f"the stand-in knows no {verb}")


main()
