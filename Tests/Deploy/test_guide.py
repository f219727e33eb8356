"""deploy/README.md, "Into production", followed literally on a machine of its own (sandbox.sh), command by command."""

import os
import re
import subprocess
import sys
import tempfile
import unittest

from deployment import DEPLOY, HUB, RELEASE_ONLY, needs, read, run, write

HERE = os.path.dirname(os.path.abspath(__file__))
# What is looked at behind a step, by the number of its heading.
CHECKS = {
    1: 'test "$(stat -c %a /etc/locationhub/token.key)" = 600',
    3: 'test "$(curl -s -o /dev/null -w "%{http_code}" --cacert $ca https://hub.example/metrics)" = 404',
    4: 'locationhub journal inspect /var/lib/locationhub >/dev/null',
    6: f"""until locationhub health --ready; do sleep 1; done
        curl -s --fail-with-body -H "Authorization: Bearer $token" http://127.0.0.1:8080/v1/drivers/driver-12
        before=$(cat /run/stand-in/locationhub); mkdir old; mv locationhub_*.deb old; mv new/*.deb .
        {sys.executable} {HERE}/follow_upgrade.py "$token" . & follower=$!
        until test -e following; do sleep 0.1; done""",
    7: """test "$(cat /run/stand-in/locationhub)" != "$before"
        grep -q device-keys /etc/locationhub/locationhub.conf
        curl -s --fail-with-body -H "Authorization: Bearer $token" http://127.0.0.1:8080/v1/drivers/driver-12
        touch stop; wait $follower
        test "$(grep -c event=stopped /var/log/locationhub.journal)" = 4""",
    8: """apt-get install --yes --allow-downgrades ./old/locationhub_*.deb
        until locationhub health --ready; do sleep 1; done
        test -e old/locationhub_$(dpkg-query -W -f '${Version}_${Architecture}' locationhub).deb""",
}


def steps():
    """The commands of each numbered step, as they stand there."""
    text = read(f"{DEPLOY}/README.md")
    section = re.search(r"^## Into production\n(.*?)^## ", text, re.M | re.S)[1]
    for number, body in re.findall(r"^### (\d)\. .*?\n(.*?)(?=^### |\Z)", section, re.M | re.S):
        yield int(number), "\n".join(line[4:] for line in body.splitlines() if line.startswith("    "))


def has_namespaces():
    trial = subprocess.run(["unshare", "--mount", "--net", "--pid", "--fork", "true"], capture_output=True)
    return trial.returncode == 0


@RELEASE_ONLY
@needs("nginx", "prometheus", "promtool", "curl", "openssl", "unshare", "ip")
class Guide(unittest.TestCase):
    @unittest.skipUnless(has_namespaces(), "a machine of its own needs root, and namespaces")
    def test_the_way_into_production_is_gone_as_it_stands(self):
        with tempfile.TemporaryDirectory(prefix="guide-") as folder:
            os.makedirs(f"{folder}/guide/new")
            for target, time in {"guide": 1_000_000_000, "guide/new": 1_000_000_001}.items():
                run(f"{DEPLOY}/debian/build.sh", HUB, f"{folder}/{target}",
                    env=os.environ | {"SOURCE_DATE_EPOCH": str(time)})
            script = ["set -x"]
            found = dict(steps())
            self.assertEqual(sorted(found), list(range(1, 9)))
            for number, commands in found.items():
                script += [f"echo; echo '=== {number}'", commands, CHECKS.get(number, "")]
            write(f"{folder}/guide/script", "\n".join([*script, "echo '=== end'", ""]))
            done = subprocess.Popen(
                [f"{HERE}/sandbox.sh", folder, "./script"], text=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
            try:
                output = done.communicate(timeout=600)[0]
            except subprocess.TimeoutExpired:
                done.kill()  # and with it all that it has started
                output = done.communicate()[0]
            self.assertEqual(done.returncode, 0, output[-6000:])
            for expected in (
                '{"drivers":[]', '"driverId":"driver-12"', "1 rule files found", "each once and in order", "=== end",
            ):
                self.assertIn(expected, output, output[-6000:])
            print(re.search(r"^.* each once and in order.*$", output, re.M)[0])


class Runbook(unittest.TestCase):
    def test_settings_are_checked_while_the_hub_is_down_and_its_credentials_are_gone(self):
        command = re.search(r"(?m)^    sudo locationhub (serve --check .*)$", read(f"{DEPLOY}/RUNBOOK.md"))[1]
        with tempfile.TemporaryDirectory() as folder:
            key = write(f"{folder}/token.key", "0123456789abcdef" * 3)
            for installed, file in {"locationhub.conf": f"{DEPLOY}/locationhub.conf", "token.key": key}.items():
                self.assertIn(f"/etc/locationhub/{installed}", command)
                command = command.replace(f"/etc/locationhub/{installed}", file)
            run(HUB, *command.split(), cwd=folder)


if __name__ == "__main__":
    unittest.main(verbosity=2)
