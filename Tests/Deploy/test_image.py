"""The image: its size and its owner, and a hub that is run from it, stopped, and started again."""

import json
import os
import signal
import tempfile
import unittest
import urllib.request

from cluster import Process, free_ports, wait_until
from deployment import DEPLOY, HUB, RELEASE_ONLY, needs, run, write

NAME = "locationhub-test:latest"
# It works in a container too, where overlays and namespaces are not to be had.
os.environ |= {"STORAGE_DRIVER": "vfs", "BUILDAH_ISOLATION": "chroot"}


def descendants(pid):
    children = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children") as file:
            children += map(int, file.read().split())
    return children + [below for child in children for below in descendants(child)]


def is_hub(pid):
    try:
        with open(f"/proc/{pid}/cmdline") as file:
            return file.read().startswith("/locationhub\0serve")
    except OSError:
        return False


@unittest.skipIf(os.geteuid(), "buildah needs root here, for want of user namespaces")
@RELEASE_ONLY
@needs("buildah", "openssl")
class Image(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="image-")
        cls.name = run(f"{DEPLOY}/image/build.sh", HUB, NAME).strip()
        cls.container = run("buildah", "from", cls.name).strip()
        cls.root = run("buildah", "mount", cls.container).strip()

    @classmethod
    def tearDownClass(cls):
        run("buildah", "umount", cls.container)
        run("buildah", "rm", cls.container)
        run("buildah", "rmi", cls.name)
        cls.folder.cleanup()

    def test_it_is_small_and_has_nothing_but_the_hub(self):
        sizes = {}
        for folder, _, names in os.walk(self.root):
            sizes |= {os.path.join(folder, name): os.lstat(os.path.join(folder, name)).st_size for name in names}
        print(f"{sum(sizes.values()) / 1e6:.1f} MB in {len(sizes)} files")
        self.assertLessEqual(sum(sizes.values()), 25_000_000)
        names = [path.removeprefix(self.root) for path in sizes]
        others = [name for name in names if ".so." not in name and name != "/locationhub"]
        self.assertEqual(others, ["/etc/ssl/certs/ca-certificates.crt"])
        with open(f"{self.root}/etc/ssl/certs/ca-certificates.crt") as file:
            self.assertGreater(file.read().count("BEGIN CERTIFICATE"), 50)

    def test_it_is_nobodys_with_a_directory_of_its_own(self):
        data = os.stat(f"{self.root}/data")
        self.assertEqual((data.st_uid, data.st_gid), (65532, 65532))
        config = json.loads(run("buildah", "inspect", self.container))["Docker"]["config"]
        self.assertEqual((config["User"], config["Entrypoint"], config["Cmd"]),
                         ("65532:65532", ["/locationhub"], ["serve"]))
        self.assertIn("/data", config["Volumes"])
        self.assertEqual(config["Healthcheck"]["Test"][:3], ["CMD", "/locationhub", "health"])
        for setting in config["Env"]:
            name, value = setting.split("=", 1)
            self.assertTrue(not value.startswith("/etc") or os.path.exists(self.root + value), f"{name}={value}")

    @needs("unshare")
    def test_its_root_may_be_read_only(self):
        """As the manifests for Kubernetes have it; in a mount namespace, for buildah has no such option."""
        port, admin = free_ports(2)
        settings = f"LHUB_HOST=127.0.0.1 LHUB_PORT={port} LHUB_ADMIN_PORT={admin} LHUB_DEV_AUTH=true LHUB_DATA=/data"
        hub = Process(["unshare", "--mount", "sh", "-euc", f"""
            mkdir -p {self.root}/proc  # as runtimes do
            mount --bind {self.root} {self.root}
            mount -o remount,bind,ro {self.root}
            mount -t tmpfs -o uid=65532,gid=65532,mode=700 data {self.root}/data
            mount -t proc proc {self.root}/proc
            exec env -i PATH="$PATH" {settings} chroot --userspec=65532:65532 {self.root} /locationhub serve"""],
            f"{self.folder.name}/read-only.log")
        try:
            self.admin = admin
            self.wait_for(hub)
        finally:
            hub.end()
        self.assertEqual(hub.process.returncode, 0, hub.read_log())

    def in_container(self, *words):
        ports = [f"--env=LHUB_PORT={self.port}", f"--env=LHUB_ADMIN_PORT={self.admin}"]
        keys = ["--env=LHUB_TOKEN_KEYS=/keys", f"--volume={self.key}:/keys:ro"]
        # As orchestrators do, /data is a volume that outlives the container.
        volume = f"--volume={self.folder.name}/data:/data"
        return ["buildah", "run", "--user", "65532:65532", *ports, *keys, volume, self.container, "--", *words]

    def health(self, *words):
        words = "/locationhub", "health", "--url", f"http://127.0.0.1:{self.admin}", *words
        return run(*self.in_container(*words))

    def stop(self, hub):
        """SIGTERM goes to the hub, as it does from an orchestrator."""
        serving = list(filter(is_hub, descendants(hub.process.pid)))
        self.assertTrue(serving, hub.read_log())
        os.kill(serving[-1], signal.SIGTERM)
        self.assertEqual(hub.process.wait(20), 0, hub.read_log())

    def ask(self, path, body=None):
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", body and json.dumps(body).encode(),
            {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=10) as reply:
            return json.load(reply)

    def test_it_serves_ends_in_order_and_has_its_data_after_a_restart(self):
        self.port, self.admin = free_ports(2)
        self.key = write(f"{self.folder.name}/keys", "0123456789abcdef0123456789abcdef\n")
        os.mkdir(f"{self.folder.name}/data")
        os.chown(f"{self.folder.name}/data", 65532, 65532)
        self.token = run(HUB, "token", "--key", self.key, "--role", "ops", "--sub", "o1").strip()
        hub = Process(self.in_container("/locationhub", "serve"), f"{self.folder.name}/hub.log")
        try:
            self.wait_for(hub)
            self.assertEqual((self.health(), self.health("--ready")), ("healthy\n", "ready\n"))
            self.ask("/v1/trips", {"tripId": "T1", "riderId": "r1"})
            self.stop(hub)
            hub.start()
            self.wait_for(hub)
            self.assertEqual(self.ask("/v1/trips/T1")["tripId"], "T1")
            self.stop(hub)
        finally:
            for pid in filter(is_hub, descendants(hub.process.pid) if hub.process.poll() is None else []):
                os.kill(pid, signal.SIGKILL)
            hub.end()

    def wait_for(self, hub):
        ready = f"http://127.0.0.1:{self.admin}/readyz"

        def answers():
            assert hub.process.poll() is None, hub.read_log()
            try:
                with urllib.request.urlopen(ready, timeout=1):
                    return True
            except OSError:
                return False

        wait_until(answers, 30, "the hub is ready")


if __name__ == "__main__":
    unittest.main(verbosity=2)
