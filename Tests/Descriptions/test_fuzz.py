"""schemathesis against a running hub: no 5xx, nothing undescribed, and no request taken that does not fit.

FUZZ_SECONDS=… for another time than 20 s, FUZZ_SEED=… for other requests.
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
SECONDS = os.environ.get("FUZZ_SECONDS", "20")
CHECKS = [
    "not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance",
    "response_headers_conformance", "unsupported_method", "negative_data_rejection",
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
                "run", PROTOCOL / "openapi.yaml", "--url", f"http://{hub.address}", "--checks", ",".join(CHECKS),
                "--max-time", SECONDS, "--seed", os.environ.get("FUZZ_SEED", "1"), "--continue-on-failure",
                "--no-color", "--warnings", "off", "--generation-database", "none",
                "--generation-with-security-parameters", "false",
            ]
            for path in ENDLESS:
                command += ["--exclude-path", path]
            run = subprocess.run(
                command, cwd=folder.name, env={**os.environ, "SCHEMATHESIS_HOOKS": "schemathesis_hooks"},
                capture_output=True, text=True, timeout=float(SECONDS) + 120, check=False)
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
