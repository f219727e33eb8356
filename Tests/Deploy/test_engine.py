"""deploy/cluster/redis.conf with its users: the operators' may what the runbook asks for, the hubs' may not."""

import re
import subprocess
import tempfile
import unittest

from cluster import Process, free_ports, wait_until
from deployment import DEPLOY, needs, read, write


@needs("redis-server", "redis-cli")
class Users(unittest.TestCase):
    def ask(self, user, password, *words):
        return subprocess.run(
            ["redis-cli", "-p", str(self.port), "--no-auth-warning", "--user", user, "--pass", password, *words],
            capture_output=True, text=True, timeout=20).stdout

    def test_operators_can_do_what_the_runbook_says_and_hubs_cannot(self):
        text, count = re.subn(r"(?m)^# (user .*)$", r"\1", read(f"{DEPLOY}/cluster/redis.conf"))
        self.assertEqual(count, 3, "the hubs' user, the operators', and nobody else")
        self.port, = free_ports(1)
        with tempfile.TemporaryDirectory() as folder:
            file = write(f"{folder}/redis.conf", text)
            engine = Process(["redis-server", file, "--port", str(self.port), "--dir", folder], f"{folder}/engine.log")
            try:
                wait_until(lambda: self.ask("admin", "ANOTHER_PASSWORD", "ping") == "PONG\n", 20, engine.read_log())
                self.assertEqual(self.ask("locationhub", "PASSWORD", "ping"), "PONG\n")
                runbook = " ".join(read(f"{DEPLOY}/RUNBOOK.md").split())
                for words in (("CONFIG", "SET", "maxmemory", "512mb"), ("ACL", "LOG"), ("CLIENT", "LIST")):
                    self.assertIn(" ".join(words[:2]), runbook)
                    self.assertNotIn("NOPERM", self.ask("admin", "ANOTHER_PASSWORD", *words), words)
                    self.assertIn("NOPERM", self.ask("locationhub", "PASSWORD", *words), words)
            finally:
                engine.end()


if __name__ == "__main__":
    unittest.main(verbosity=2)
