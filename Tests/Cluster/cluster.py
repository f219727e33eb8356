"""Three hubs, an engine and HAProxy as processes on this machine, for the demo and the tests beside this file.

The configuration is that of deploy/cluster/, with the ports that the caller chooses.
"""

import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
DEPLOY = os.path.join(ROOT, "deploy/cluster")
NAMES = ("hub-a", "hub-b", "hub-c")
ENGINES = ("redis-server", "valkey-server")


def free_ports(count):
    """Ports that were free a moment ago."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def wait_until(condition, seconds, what):
    """Asks again and again, for at most so long; fails with `what`. Returns the seconds that it took."""
    start = time.monotonic()
    while time.monotonic() - start < seconds:
        if condition():
            return time.monotonic() - start
        time.sleep(0.02)
    raise AssertionError(f"not within {seconds} s: {what}")


class Process:
    """A process that can be stopped, killed and started again."""

    def __init__(self, arguments, log, environment=None):
        self.arguments, self.log, self.environment = arguments, log, environment
        self.start()

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                self.arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**os.environ, **(self.environment or {})}, start_new_session=True)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def end(self):
        """In order, as an operator ends it."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def read_log(self):
        with open(self.log) as log:
            return log.read()


class Hub(Process):
    """A hub of the cluster."""

    def __init__(self, executable, name, port, admin, cluster_file, folder, options=()):
        self.name, self.port, self.admin, self.cluster_file = name, port, admin, cluster_file
        super().__init__(
            [
                executable, "serve", "--dev-auth", "--loops", "1", "--port", str(port), "--admin-port", str(admin),
                "--cluster", cluster_file, "--data", f"{folder}/{name}.data", "--log-level", "info", *options,
            ], f"{folder}/{name}.log")

    def get(self, path):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}{path}", timeout=5) as reply:
                return reply.status, reply.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def metrics(self):
        """All figures by name, labels included."""
        lines = self.get("/metrics")[1].splitlines()
        return {
            name.removeprefix("locationhub_"): float(value)
            for name, value in (line.rsplit(" ", 1) for line in lines if line and not line.startswith("#"))
        }

    def figure(self, name):
        return self.metrics().get(name, 0)


class Cluster:
    """An engine on each port of `engines`, of which the first is the ledger, three hubs and HAProxy."""

    def __init__(self, executable, engines=1, has_proxy=True, options=()):
        self.executable, self.options = executable, options
        self.folder = tempfile.mkdtemp(prefix="cluster-")
        os.makedirs(f"{self.folder}/engines")
        ports = free_ports(engines + 2 * len(NAMES) + 1)
        self.engine_ports = ports[:engines]
        self.listen = ports[engines]
        rest = ports[engines + 1:]
        self.places = {name: (rest[2 * index], rest[2 * index + 1]) for index, name in enumerate(NAMES)}
        self.engines, self.hubs, self.proxy = [], {}, None
        with open(f"{self.folder}/cluster.key", "w") as file:
            file.write(secrets.token_hex(32) + "\n")
        try:
            for port in self.engine_ports:
                self.engines.append(self.start_engine(port))
            for name in NAMES:
                self.hubs[name] = self.start_hub(name)
            for hub in self.hubs.values():
                wait_until(lambda: hub.figure("cluster_peers") == len(NAMES) - 1, 20, f"{hub.name} knows the others")
            if has_proxy:
                self.start_proxy()
        except BaseException:
            self.end()
            raise

    def start_engine(self, port):
        executable = next(filter(None, map(shutil.which, ENGINES)), ENGINES[0])
        folder = f"{self.folder}/engines/{port}"
        os.makedirs(folder, exist_ok=True)
        return Process(
            [executable, f"{DEPLOY}/redis.conf", "--port", str(port), "--dir", folder],
            f"{self.folder}/engine-{port}.log")

    def start_hub(self, name):
        port, admin = self.places[name]
        return Hub(
            self.executable, name, port, admin, self.write_file(name), self.folder, self.options)

    def write_file(self, name, key_file=None):
        """deploy/cluster/hub.cluster, with this hub's name and the ports of this run."""
        with open(f"{DEPLOY}/hub.cluster") as file:
            text = file.read()
        for setting, value in [
            ("name", name), ("advertise", f"127.0.0.1:{self.places[name][0]}"),
            ("bus", "\nbus = ".join(f"redis://127.0.0.1:{port}" for port in self.engine_ports)),
            ("ledger", f"redis://127.0.0.1:{self.engine_ports[0]}"),
            ("key-file", key_file or f"{self.folder}/cluster.key"),
        ]:
            text, count = re.subn(rf"(?m)^{setting} = .*$", f"{setting} = {value}", text)
            assert count == 1, f"{setting} stands once in hub.cluster"
        path = f"{self.folder}/{name}.cluster"
        with open(path, "w") as file:
            file.write(text)
        return path

    def start_proxy(self):
        environment = {"LISTEN": f"127.0.0.1:{self.listen}"}
        for name, (port, admin) in self.places.items():
            letter = name[-1].upper()
            environment |= {f"HUB_{letter}": f"127.0.0.1:{port}", f"ADMIN_{letter}": str(admin)}
        self.proxy = Process(
            ["haproxy", "-f", f"{DEPLOY}/haproxy.cfg"], f"{self.folder}/haproxy.log", environment)
        wait_until(lambda: self.answers(self.listen), 10, "HAProxy answers")

    @staticmethod
    def answers(port):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=1) as reply:
                return reply.status == 200
        except OSError:
            return False

    def status(self, *options):
        """What `locationhub cluster status` prints."""
        return subprocess.run(
            [self.executable, "cluster", "status", "--cluster", f"{self.folder}/hub-a.cluster", *options],
            capture_output=True, text=True, timeout=20)

    def end(self):
        """Ends all that this started, and removes its files."""
        for process in [self.proxy, *self.hubs.values(), *self.engines]:
            if process:
                process.end()
        shutil.rmtree(self.folder, ignore_errors=True)
