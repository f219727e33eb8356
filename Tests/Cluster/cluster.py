"""Three hubs, an engine and HAProxy as processes on this machine, for the demo and the tests beside this file.

The configuration is that of deploy/cluster/, with the ports that the caller chooses.
"""

import os
import random
import re
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
DEPLOY = os.path.join(ROOT, "deploy/cluster")
NAMES = ("hub-a", "hub-b", "hub-c")
ENGINES = ("redis-server", "valkey-server")


given = set()


def free_ports(count):
    """Ports that were free a moment ago, none of which the system gives to anyone else: it takes those from 32,768 on
    (`net.ipv4.ip_local_port_range`). So each is still free when a process that was killed starts again. None is given
    twice, though whom it was given to may not have it yet. PORTS=FROM-TO for a part of them, where others choose some
    at the same time."""
    first, end = map(int, os.environ.get("PORTS", "20000-32000").split("-"))
    ports = []
    while len(ports) < count:
        port = random.randrange(first, end)
        with socket.socket() as listener:
            try:
                listener.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in given:
            given.add(port)
            ports.append(port)
    return ports


def within(seconds):
    """A time that is promised, where tests are held to those: `make test-cluster`, with 1,000 CUTS, for which nothing
    else should run on the machine. Beside other tests, which may hold up each of these processes for seconds, times are
    only shown, and what is promised for a moment has a minute."""
    return seconds if int(os.environ.get("CUTS", "0")) >= 1000 else max(seconds, 60)


def wait_until(condition, seconds, what):
    """Asks again and again, for at most so long (`within`); fails with `what`. Returns the seconds that it took."""
    start, seconds = time.monotonic(), within(seconds)
    while time.monotonic() - start < seconds:
        if condition():
            return time.monotonic() - start
        time.sleep(0.02)
    raise AssertionError(f"not within {seconds} s: {what}")


class Relay:
    """A way to a port on this machine that can be cut, as a network is: what is sent there gets lost, without an error.

    Or so that both sides get an error, and no connection can be made (`cut(has_error=True)`).
    """

    def __init__(self, target):
        self.target, self.is_cut, self.has_error, self.links = target, False, False, set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near = self.listener.accept()[0]
            except OSError:
                return
            self.links.add(near)
            if self.is_cut:
                if self.has_error:
                    self.drop(near)
                continue
            try:
                far = socket.create_connection(("127.0.0.1", self.target), timeout=5)
            except OSError:
                self.drop(near)
                continue
            far.settimeout(None)
            self.links.add(far)
            for link in (near, far):
                link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for pair in ((near, far), (far, near)):
                threading.Thread(target=self.pump, args=pair, daemon=True).start()

    def pump(self, source, sink):
        try:
            while data := source.recv(1 << 16):
                if not self.is_cut:
                    sink.sendall(data)
        except OSError:
            pass
        if not self.is_cut:
            self.drop(source, sink)

    def drop(self, *links):
        for link in links:
            self.links.discard(link)
            try:
                link.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            link.close()

    def cut(self, has_error=False):
        self.is_cut, self.has_error = True, has_error
        if has_error:
            self.drop(*list(self.links))

    def restore(self):
        """What was lost is missing in its stream: whoever was connected is not any more."""
        self.drop(*list(self.links))
        self.is_cut = False

    def end(self):
        self.is_cut = True
        self.drop(self.listener, *list(self.links))


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
                self.process.wait(60)
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
    """A hub of the cluster; without `cluster_file` one by itself."""

    def __init__(self, executable, name, port, admin, cluster_file, folder, options=()):
        self.name, self.port, self.admin, self.cluster_file = name, port, admin, cluster_file
        super().__init__(
            [
                executable, "serve", "--dev-auth", "--loops", "1", "--port", str(port), "--admin-port", str(admin),
                *(["--cluster", cluster_file] if cluster_file else []), "--data", f"{folder}/{name}.data",
                "--log-level", "info", *options,
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

    def total(self, name):
        """A figure's sum over its labels."""
        return sum(value for key, value in self.metrics().items() if key.split("{")[0] == name)


class Cluster:
    """An engine on each port of `engines`, of which the first is the ledger, three hubs and HAProxy.

    `ledgers`: so many of the first engines are ledgers. `has_relays`: each hub goes to each engine by a way of its own
    (`relays`), which can be cut. `sentinels`: so many know where the ledger is, which has a replica then, and the bus is
    at the other engines.
    """

    def __init__(self, executable, engines=1, has_proxy=True, options=(), has_relays=False, sentinels=0, ledgers=1):
        self.executable, self.options = executable, options
        self.folder = tempfile.mkdtemp(prefix="cluster-")
        os.makedirs(f"{self.folder}/engines")
        ports = free_ports(engines + 2 * len(NAMES) + 1)
        self.engine_ports = ports[:engines]
        self.listen = ports[engines]
        rest = ports[engines + 1:]
        self.hub_ports = {name: (rest[2 * index], rest[2 * index + 1]) for index, name in enumerate(NAMES)}
        self.engines, self.hubs, self.proxy = [], {}, None
        self.relays, self.sentinels, self.replica, self.ledgers = {}, [], None, ledgers
        with open(f"{self.folder}/cluster.key", "w") as file:
            file.write(secrets.token_hex(32) + "\n")
        try:
            for port in self.engine_ports:
                self.engines.append(self.start_engine(port))
            if has_relays:
                self.relays = {name: [Relay(port) for port in self.engine_ports] for name in NAMES}
            if sentinels:
                self.start_sentinels(sentinels)
            for name in NAMES:
                self.hubs[name] = self.start_hub(name)
            for hub in self.hubs.values():
                wait_until(lambda: hub.figure("cluster_peers") == len(NAMES) - 1, 20, f"{hub.name} knows the others")
            if has_proxy:
                self.start_proxy()
        except BaseException:
            self.end()
            raise

    def start_engine(self, port, *more):
        executable = next(filter(None, map(shutil.which, ENGINES)), ENGINES[0])
        folder = f"{self.folder}/engines/{port}"
        os.makedirs(folder, exist_ok=True)
        # A copy, for sentinels have engines write theirs anew.
        shutil.copy(f"{DEPLOY}/redis.conf", f"{self.folder}/engine-{port}.conf")
        return Process(
            [executable, f"{self.folder}/engine-{port}.conf", "--port", str(port), "--dir", folder, *more],
            f"{self.folder}/engine-{port}.log")

    def start_sentinels(self, count):
        """A replica of the first engine, and those who choose between the two."""
        executable = next(filter(None, map(shutil.which, ENGINES)), ENGINES[0])
        master, (port, *ports) = self.engine_ports[0], free_ports(count + 1)
        self.replica_port = port
        self.replica = self.start_engine(port, "--replicaof", "127.0.0.1", str(master))
        wait_until(lambda: b"connected" in self.ask_engine(port, "ROLE"), 20, "the replica has heard of its master")
        for port in ports:
            with open(f"{self.folder}/sentinel-{port}.conf", "w") as file:
                file.write(f"port {port}\nbind 127.0.0.1\ndir {self.folder}\nsentinel monitor hubs 127.0.0.1 {master} 2\n"
                           "sentinel down-after-milliseconds hubs 2000\nsentinel failover-timeout hubs 10000\n")
            self.sentinels.append(Process(
                [executable, f"{self.folder}/sentinel-{port}.conf", "--sentinel"], f"{self.folder}/sentinel-{port}.log"))
        self.ledger = "sentinel://" + ",".join(f"127.0.0.1:{port}" for port in ports) + "/hubs"
        wait_until(lambda: all(
            self.field(self.ask_engine(port, "SENTINEL", "MASTER", "hubs"), "num-other-sentinels") == str(count - 1)
            and self.field(self.ask_engine(port, "SENTINEL", "MASTER", "hubs"), "num-slaves") == "1"
            for port in ports), 20, "the sentinels know each other and the replica")

    @staticmethod
    def field(reply, name):
        words = reply.decode(errors="replace").split("\r\n")
        return words[words.index(name) + 2] if name in words else None

    @staticmethod
    def ask_engine(port, *words):
        """One command to an engine or sentinel, and the first bytes of its reply; none where it is not there."""
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=5) as link:
                parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
                link.sendall(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(p), p) for p in parts))
                return link.recv(1 << 20)
        except OSError:
            return b""

    def start_hub(self, name):
        port, admin = self.hub_ports[name]
        return Hub(
            self.executable, name, port, admin, self.write_file(name), self.folder, self.options)

    def write_file(self, name, key_file=None):
        """deploy/cluster/hub.cluster, with this hub's name and the ports of this run."""
        with open(f"{DEPLOY}/hub.cluster") as file:
            text = file.read()
        ports = [relay.port for relay in self.relays[name]] if self.relays else self.engine_ports
        for setting, value in [
            ("name", name), ("advertise", f"127.0.0.1:{self.hub_ports[name][0]}"),
            ("bus", "\nbus = ".join(f"redis://127.0.0.1:{port}" for port in ports[1 if self.sentinels else 0:])),
            ("ledger", self.ledger if self.sentinels else
             "\nledger = ".join(f"redis://127.0.0.1:{port}" for port in ports[:self.ledgers])),
            ("key-file", key_file or f"{self.folder}/cluster.key"),
        ]:
            text, count = re.subn(rf"(?m)^{setting} = .*$", f"{setting} = {value}", text)
            assert count == 1, f"{setting} stands once in hub.cluster"
        path = f"{self.folder}/{name}.cluster"
        with open(path, "w") as file:
            file.write(text)
        return path

    def start_proxy(self):
        environment = {"LISTEN": str(self.listen)}
        for name, (port, admin) in self.hub_ports.items():
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
        for process in [self.proxy, *self.hubs.values(), *self.sentinels, self.replica, *self.engines]:
            if process:
                process.end()
        for relay in [relay for relays in self.relays.values() for relay in relays]:
            relay.end()
        shutil.rmtree(self.folder, ignore_errors=True)
