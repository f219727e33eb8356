"""The Debian package: what lintian says of it, and how it is installed, used, installed again and removed."""

import os
import re
import shlex
import stat
import subprocess
import tempfile
import unittest
import urllib.error
import urllib.request

from cluster import Process, free_ports, wait_until
from deployment import DEPLOY, HUB, RELEASE_ONLY, edited, needs, read, run, write

FOLDERS = ("var/lib/dpkg/info", "var/lib/dpkg/updates")


@needs("systemd-analyze")
class Unit(unittest.TestCase):
    """As it is for an installation by hand; the package's differs in the executable's path."""

    def test_systemd_understands_it_and_it_is_shut_in(self):
        with tempfile.TemporaryDirectory() as folder:
            installed = edited("locationhub.service", {"ExecStart=/usr/local/bin/locationhub": f"ExecStart={HUB}"})
            unit = write(f"{folder}/locationhub.service", installed)
            write(f"{folder}/locationhub.socket", read(f"{DEPLOY}/locationhub.socket"))
            done = subprocess.run(
                ["systemd-analyze", "verify", "--man=no", unit, f"{folder}/locationhub.socket"], text=True,
                capture_output=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            run("systemd-analyze", "security", "--offline=true", "--threshold=20", unit)


class Credentials(unittest.TestCase):
    def test_the_unit_hands_over_each_secret_that_the_samples_name(self):
        handed = re.findall(r"(?m)^(?:# )?LoadCredential=([a-z-]+):", read(f"{DEPLOY}/locationhub.service"))
        samples = "".join(read(f"{DEPLOY}/{file}") for file in ("locationhub.conf", "cluster/hub.cluster"))
        named = re.findall(r"(?m) = /run/credentials/locationhub\.service/(\S+)$", samples)
        self.assertEqual(sorted(handed), sorted(named))
        self.assertNotRegex(samples, r"(?m)^(# *)?[a-z-]*(password-file|key-file|-key) = (?!/run/credentials/)")


@RELEASE_ONLY
@needs("dpkg-deb", "objdump")
class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="package-")
        cls.package = run(f"{DEPLOY}/debian/build.sh", HUB, cls.folder.name).strip()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def dpkg(self, root, *words):
        return run("dpkg", f"--root={root}", "--force-depends", "--force-script-chrootless", *words)

    def empty_root(self, name):
        root = f"{self.folder.name}/{name}"
        for folder in FOLDERS:
            os.makedirs(f"{root}/{folder}")
        write(f"{root}/var/lib/dpkg/status", "")
        return root

    @needs("lintian")
    def test_lintian_finds_no_error(self):
        print(run("lintian", "--fail-on", "error", "--allow-root", self.package))

    def test_what_it_depends_on_is_installed_here(self):
        """For it is what the executable is linked with: names and versions are those of a system that runs it."""
        depends = run("dpkg-deb", "-f", self.package, "Depends").strip()
        self.assertRegex(depends, r"\blibssl3")
        self.assertRegex(depends, r"\blibc6 \(>= 2\.\d+\)")
        for package in depends.split(", "):
            self.assertIn("ok installed", run("dpkg-query", "-W", "-f", "${Status}", package.split()[0]))

    def test_the_manual_has_each_verb(self):
        root = f"{self.folder.name}/unpacked"
        run("dpkg-deb", "-x", self.package, root)
        page = run("zcat", f"{root}/usr/share/man/man1/locationhub.1.gz")
        verbs = re.findall(r"^  (\w+) ", run(HUB, "--help"), re.M)
        self.assertGreater(len(verbs), 9)
        for verb in verbs:
            self.assertRegex(page, rf"(?m)^\.B {verb}$")

    @unittest.skipIf(os.geteuid(), "dpkg installs for root only")
    def test_it_is_installed_into_an_empty_root_and_runs_from_there(self):
        root = self.empty_root("root")
        self.dpkg(root, "--install", self.package)
        key = f"{root}/etc/locationhub/token.key"
        self.assertEqual(stat.S_IMODE(os.stat(key).st_mode), 0o600)
        self.assertGreaterEqual(len(read(key).strip()), 43)
        unit = read(f"{root}/lib/systemd/system/locationhub.service")
        command = shlex.split(re.search(r"^ExecStart=(.*)", unit, re.M)[1])
        self.assertEqual(command[0], "/usr/bin/locationhub")
        port, admin = free_ports(2)
        # Paths of the root instead of those of the machine, and the key itself instead of what systemd hands over.
        here = [root + word if word.startswith("/") else word for word in command]
        here += ["--token-keys", key, "--port", str(port), "--admin-port", str(admin), "--drain-delay", "0"]
        run(*here, "--check")
        hub = Process(here, f"{self.folder.name}/hub.log")
        try:
            program, address = here[0], f"http://127.0.0.1:{port}"
            ready = [program, "health", "--url", address, "--ready"]
            wait_until(lambda: subprocess.run(ready, capture_output=True).returncode == 0, 20, "it is ready")
            self.assertEqual(self.status(f"{address}/v1/trips"), 401)
            token = run(program, "token", "--key", key, "--role", "ops", "--sub", "me").strip()
            self.assertEqual(self.status(f"{address}/v1/drivers", token), 200)
        finally:
            hub.end()
        self.assertEqual(hub.process.returncode, 0)
        run(program, "journal", "verify", f"{root}/var/lib/locationhub")

    def status(self, url, token=None):
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
        try:
            with urllib.request.urlopen(request, timeout=10) as reply:
                return reply.status
        except urllib.error.HTTPError as error:
            return error.code

    @unittest.skipIf(os.geteuid(), "dpkg installs for root only")
    def test_settings_key_and_journal_outlive_an_upgrade_and_the_journal_a_purge(self):
        root = self.empty_root("upgraded")
        self.dpkg(root, "--install", self.package)
        settings, key = f"{root}/etc/locationhub/locationhub.conf", f"{root}/etc/locationhub/token.key"
        write(settings, "port = 9000\n")
        secret = read(key)
        os.makedirs(f"{root}/var/lib/private/locationhub")
        journal = write(f"{root}/var/lib/private/locationhub/segment", "events\n")
        enabled = f"{root}/etc/systemd/system/multi-user.target.wants/locationhub.service"
        os.makedirs(os.path.dirname(enabled))
        os.symlink("/lib/systemd/system/locationhub.service", enabled)
        self.dpkg(root, "--install", self.package)
        self.assertEqual((read(settings), read(key)), ("port = 9000\n", secret))
        self.dpkg(root, "--remove", "locationhub")
        self.assertFalse(os.path.exists(f"{root}/usr/bin/locationhub"))
        self.assertEqual((read(settings), read(key)), ("port = 9000\n", secret))
        self.dpkg(root, "--purge", "locationhub")
        self.assertFalse(os.path.exists(f"{root}/etc/locationhub"))
        self.assertFalse(os.path.lexists(enabled), "nothing is enabled any more")
        self.assertEqual(read(journal), "events\n")

    @unittest.skipIf(os.geteuid(), "dpkg installs for root only")
    def test_a_key_that_a_full_disk_cut_off_is_drawn_again(self):
        root = self.empty_root("full")
        os.makedirs(f"{root}/etc/locationhub")
        key = write(f"{root}/etc/locationhub/token.key", "")
        self.dpkg(root, "--install", self.package)
        self.assertGreaterEqual(len(read(key).strip()), 43)
        self.assertEqual(os.listdir(os.path.dirname(key)).count("token.key.new"), 0)

    def test_a_later_commit_is_a_newer_version(self):
        versions = []
        for time in (1_000_000_000, 1_000_000_001):
            folder = f"{self.folder.name}/{time}"
            os.mkdir(folder)
            run(f"{DEPLOY}/debian/build.sh", HUB, folder, env=os.environ | {"SOURCE_DATE_EPOCH": str(time)})
            versions.append(run("dpkg-deb", "-f", f"{folder}/{os.listdir(folder)[0]}", "Version").strip())
        run("dpkg", "--compare-versions", versions[0], "lt", versions[1])
        commit = re.search(r"commit ([0-9a-z]+)", run(HUB, "version"))[1]
        self.assertRegex(versions[0], rf"^[0-9.]+(~[a-z0-9]+)?\+20010909014640\.{commit}-1$")

    @unittest.skipIf(os.geteuid(), "dpkg installs for root only")
    def test_each_machine_has_a_key_of_its_own(self):
        keys = set()
        for name in ("one", "two"):
            root = self.empty_root(name)
            self.dpkg(root, "--install", self.package)
            keys.add(read(f"{root}/etc/locationhub/token.key"))
        self.assertEqual(len(keys), 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
