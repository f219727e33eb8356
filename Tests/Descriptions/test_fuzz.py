"""schemathesis against a running hub: no 5xx, nothing undescribed, and no request taken that does not fit.

The requests are the same ones at each run, however fast the machine is. FUZZ_SECONDS=… goes on with new ones for so
long, FUZZ_SEED=… asks others.
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from descriptions import OpenAPI, PROTOCOL
from hub import Hub

HERE = pathlib.Path(__file__).resolve().parent
SECONDS = os.environ.get("FUZZ_SECONDS")
HOW_MANY = (
    ["--max-time", SECONDS, "--generation-database", "none"] if SECONDS else
    ["--max-examples", "10", "--generation-deterministic"])
# What these look for is not so here: a request that fits may still come at the wrong time, what was deleted may be made
# anew by its id, and development credentials stand in the query.
NO_CHECKS = [
    "positive_data_acceptance", "use_after_free", "ensure_resource_availability", "ignored_auth",
    "missing_required_header",
]
# A WebSocket and a stream do not end by themselves.
ENDLESS = ["/v1/ws", "/v1/events"]


class TestFuzz(unittest.TestCase):
    def test_schemathesis_finds_no_fault(self):
        hub = Hub()
        folder = tempfile.TemporaryDirectory()  # what it has found before would be asked again
        try:
            command = [
                pathlib.Path(sys.executable).with_name("schemathesis"), "--config-file", HERE / "schemathesis.toml",
                "run", PROTOCOL / "openapi.yaml", "--url", f"http://{hub.address}",
                "--exclude-checks", ",".join(NO_CHECKS),
                *HOW_MANY, "--seed", os.environ.get("FUZZ_SEED", "1"), "--continue-on-failure",
                # However slow the machine is.
                "--request-timeout", "60", "--suppress-health-check", "too_slow",
                "--no-color", "--warnings", "off", "--generation-with-security-parameters", "false",
            ]
            for path in ENDLESS:
                command += ["--exclude-path", path]
            run = subprocess.run(
                command, cwd=folder.name, env={**os.environ, "SCHEMATHESIS_HOOKS": "schemathesis_hooks"},
                capture_output=True, text=True, timeout=float(SECONDS or 480) + 1200, check=False)
            counts = answers_by_status(hub)
        finally:
            hub.stop()
            folder.cleanup()
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        operations = len(list(OpenAPI().operations())) - len(ENDLESS)
        self.assertIn(f"Tested: {operations}\n", run.stdout)
        self.assertGreater(counts.get("200", 0) + counts.get("201", 0), 50, f"too few were taken: {counts}")
        print(run.stdout.split("Test cases:")[1].split("\n\n")[0].strip(), counts)


def answers_by_status(hub):
    """How many answers had which status, as the hub counts them."""
    _, _, page = hub.ask("GET", "/metrics")
    return {line.split('"')[1]: int(line.split()[-1]) for line in page.decode().splitlines()
            if line.startswith("locationhub_http_responses_total{")}


if __name__ == "__main__":
    unittest.main(verbosity=2)
