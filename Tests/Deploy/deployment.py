"""What the tests beside this file share: a hub with tokens, files of deploy/ with other values, nginx and HAProxy."""

import contextlib
import logging
import os
import shutil
import ssl
import subprocess
import tempfile
import unittest

import cluster
from cluster import Process, free_ports, wait_until

DEPLOY = os.path.join(cluster.ROOT, "deploy")
HUB = os.environ["LOCATIONHUB"]
os.environ["PATH"] += ":/usr/sbin:/sbin"
# It warns of callbacks that take long, as starting a proxy does.
logging.getLogger("asyncio").setLevel(logging.ERROR)


def needs(*tools):
    """Skips a test, by name, where one of these is not installed."""
    missing = [tool for tool in tools if not shutil.which(tool)]
    return unittest.skipIf(missing, f"there is no {' and no '.join(missing)}")


def run(*words, **options):
    """Runs a command to its end; with what it printed where it fails."""
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, **options)
    assert done.returncode == 0, f"{' '.join(words)}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


# As `swift build` leaves it, the executable needs the shared libraries of a Swift toolchain.
RELEASE_ONLY = unittest.skipIf("libswiftCore" in run("ldd", HUB), "the executable is not that of `make release`")


def read(path):
    with open(path) as file:
        return file.read()


def write(path, text):
    with open(path, "w") as file:
        file.write(text)
    return path


def edited(path, changes):
    """A file of deploy/ with these values instead of its own; each must be there once."""
    text = read(os.path.join(DEPLOY, path))
    for old, new in changes.items():
        assert text.count(old) == 1, f"{path} has {text.count(old)} times {old}"
        text = text.replace(old, new)
    return text


class Hub(cluster.Hub):
    """A hub that takes tokens, with an admin port, which keeps its ports and its journal over restarts."""

    def __init__(self, folder, *options):
        self.folder = folder
        self.port, self.admin = free_ports(2)
        self.key = write(f"{folder}/token.key", "0123456789abcdef0123456789abcdef\n")
        arguments = [HUB, "serve", "--port", str(self.port), "--admin-port", str(self.admin), "--token-keys", self.key]
        Process.__init__(self, [*arguments, "--data", f"{folder}/data", *options], f"{folder}/hub.log")

    def start(self):
        super().start()
        wait_until(lambda: self.get("/readyz")[0] == 200, 20, "the hub is ready")

    def token(self, role, sub):
        return run(HUB, "token", "--key", self.key, "--role", role, "--sub", sub).strip()


def certificate(folder):
    """A certificate for localhost and 127.0.0.1 that signs itself: its file and its key's."""
    files = f"{folder}/tls.pem", f"{folder}/tls.key"
    run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30",
        "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", files[1],
        "-out", files[0])
    return files


def nginx(folder, hub, port, plain):
    """deploy/nginx.conf as a process of its own, in front of a hub; on a port without TLS as well."""
    pem, key = certificate(folder)
    server = write(f"{folder}/locationhub.conf", edited("nginx.conf", {
        "listen 443 ssl;": f"listen 127.0.0.1:{port} ssl; listen 127.0.0.1:{plain};",
        "server 127.0.0.1:8080;": f"server 127.0.0.1:{hub.port};",
        "/etc/letsencrypt/live/hub.example/fullchain.pem": pem, "/etc/letsencrypt/live/hub.example/privkey.pem": key,
        "/var/log/nginx/access.log": f"{folder}/access.log", "/var/log/nginx/error.log": f"{folder}/nginx.log",
    }))
    kinds = "client_body", "proxy", "fastcgi", "uwsgi", "scgi"
    paths = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    main = write(f"{folder}/nginx.conf", f"""
        daemon off; pid {folder}/nginx.pid; error_log {folder}/nginx.log;
        events {{}}
        http {{ {paths} include {server}; }}""")
    return Process(["nginx", "-c", main, "-e", f"{folder}/nginx.log"], f"{folder}/nginx.log")


def haproxy(folder, hub, port, plain):
    """deploy/haproxy.cfg, likewise."""
    pem = write(f"{folder}/haproxy.pem", "".join(map(read, certificate(folder))))
    # Only root can change to another user.
    own = {"    chroot /var/lib/haproxy\n    user haproxy\n    group haproxy\n": ""} if os.geteuid() else {}
    file = write(f"{folder}/haproxy.cfg", edited("haproxy.cfg", own | {
        "bind :443 ssl crt /etc/haproxy/hub.example.pem":
            f"bind 127.0.0.1:{plain}\n    bind 127.0.0.1:{port} ssl crt {pem}",
        "server hub 127.0.0.1:8080 check port 8081": f"server hub 127.0.0.1:{hub.port} check port {hub.admin}",
    }))
    return Process(["haproxy", "-f", file], f"{folder}/haproxy.log")


PROXIES = {"nginx": nginx, "haproxy": haproxy}


class Site:
    """A hub with proxies in front of it, each by its name."""

    def __init__(self, *options, proxies=tuple(PROXIES)):
        self.stack = contextlib.ExitStack()
        self.ports, self.plain_ports, self.trust = {}, {}, {}
        try:
            folder = self.stack.enter_context(tempfile.TemporaryDirectory(prefix="deploy-"))
            self.hub = Hub(folder, "--trusted-proxy", "127.0.0.1", *options)
            self.stack.callback(self.hub.end)
            for name in proxies:
                own = os.path.join(folder, name)
                os.mkdir(own)
                self.ports[name], self.plain_ports[name] = free_ports(2)
                proxy = PROXIES[name](own, self.hub, self.ports[name], self.plain_ports[name])
                self.stack.callback(proxy.end)
                self.trust[name] = ssl.create_default_context(cafile=f"{own}/tls.pem")
                wait_until(lambda: proxy.process.poll() is not None or self.reaches(f"{own}/tls.pem", name), 20, name)
                assert proxy.process.poll() is None, f"{name} has ended: {proxy.read_log()}"
        except BaseException:
            self.stack.close()
            raise

    def reaches(self, pem, name):
        """By the hub's own verb, so that this is tested as well."""
        url = f"https://localhost:{self.ports[name]}"
        return subprocess.run([HUB, "health", "--url", url, "--ca", pem], capture_output=True).returncode == 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stack.close()
