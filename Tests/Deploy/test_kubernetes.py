"""The manifests: their form, by Kubernetes' schemas, and whether they go with each other, the image and the hub."""

import os
import re
import subprocess
import tempfile
import unittest

import yaml

from deployment import DEPLOY, HUB, edited, needs, read, run, write

MANIFEST = "kubernetes/locationhub.yaml"


def validate(folder, text):
    return subprocess.run(
        ["kubernetes-validate", "--strict", write(f"{folder}/manifest.yaml", text)], capture_output=True, text=True)


class Kubernetes(unittest.TestCase):
    def setUp(self):
        self.objects = {each["kind"]: each for each in yaml.safe_load_all(read(f"{DEPLOY}/{MANIFEST}"))}
        self.pod = self.objects["StatefulSet"]["spec"]["template"]
        self.container = self.pod["spec"]["containers"][0]
        self.environment = {each["name"]: each["value"] for each in self.container["env"]}

    @needs("kubernetes-validate")
    def test_the_schemas_take_it_and_refuse_seeded_faults(self):
        with tempfile.TemporaryDirectory() as folder:
            good = validate(folder, read(f"{DEPLOY}/{MANIFEST}"))
            self.assertEqual((good.returncode, good.stderr), (0, ""), good.stdout)
            self.assertNotIn("WARN", good.stdout, "a kind without a schema is not looked at")
            for old, new in {
                "  replicas: 1": "  replicaz: 1", "replicas: 1": "replicas: one",
                "port: 8080, targetPort": "prt: 8080, targetPort",
                "readOnlyRootFilesystem: true": "readOnlyRootFileSystem: true", "minAvailable: 1": "minAvailable: []",
                "policyTypes: [Ingress, Egress]": "policyTypes: Ingress", "accessModes: [": "accessMode: [",
            }.items():
                bad = validate(folder, edited(MANIFEST, {old: new}))
                self.assertNotEqual(bad.returncode, 0, new)

    def test_all_objects_mean_the_same_pod_and_ports(self):
        labels = self.pod["metadata"]["labels"]
        monitor = yaml.safe_load(read(f"{DEPLOY}/kubernetes/podmonitor.yaml"))["spec"]
        spec = {kind: each["spec"] for kind, each in self.objects.items()}
        for selector in (
            spec["StatefulSet"]["selector"]["matchLabels"], spec["Service"]["selector"],
            spec["PodDisruptionBudget"]["selector"]["matchLabels"], spec["NetworkPolicy"]["podSelector"]["matchLabels"],
            monitor["selector"]["matchLabels"],
        ):
            self.assertEqual(selector, labels)
        self.assertEqual(spec["StatefulSet"]["serviceName"], self.objects["Service"]["metadata"]["name"])
        ports = {port["name"]: port["containerPort"] for port in self.container["ports"]}
        self.assertEqual(ports, {"http": 8080, "admin": 8081})
        allowed = [rule["ports"][0]["port"] for rule in spec["NetworkPolicy"]["ingress"]]
        self.assertEqual(allowed, ["http", "admin"])
        self.assertEqual(spec["Service"]["ports"][0]["targetPort"], "http", "the admin port is not for clients")
        self.assertEqual(monitor["podMetricsEndpoints"][0]["port"], "admin")
        job = yaml.safe_load(read(f"{DEPLOY}/prometheus/prometheus.yml"))["scrape_configs"][0]["job_name"]
        self.assertEqual(labels[monitor["jobLabel"]], job, "alerts and dashboard ask for this job")
        probes = {name: self.container[name]["httpGet"] for name in ("startupProbe", "readinessProbe", "livenessProbe")}
        self.assertEqual({probe["port"] for probe in probes.values()}, {"admin"})
        self.assertEqual([probe["path"] for probe in probes.values()], ["/readyz", "/readyz", "/healthz"])

    def test_the_pod_is_as_narrow_as_the_image_allows(self):
        spec, own = self.pod["spec"], self.container["securityContext"]
        user = re.search(r"^USER (\d+):(\d+)$", read(f"{DEPLOY}/image/Containerfile"), re.M)
        context = spec["securityContext"]
        self.assertEqual((context["runAsUser"], context["runAsGroup"]), (int(user[1]), int(user[2])))
        self.assertTrue(context["runAsNonRoot"] and own["readOnlyRootFilesystem"])
        self.assertFalse(own["allowPrivilegeEscalation"] or spec["enableServiceLinks"])
        self.assertEqual(own["capabilities"]["drop"], ["ALL"])
        claim = self.objects["StatefulSet"]["spec"]["volumeClaimTemplates"][0]["spec"]
        self.assertEqual(claim["accessModes"], ["ReadWriteOncePod"])

    def test_full_tables_fit_into_the_memory(self):
        """With 2 KB for a driver, and as much for a trip without one."""
        limit = self.container["resources"]["limits"]["memory"]
        self.assertRegex(limit, r"^\d+Gi$")
        entries = int(self.environment["LHUB_MAX_DRIVERS"]) + int(self.environment["LHUB_MAX_TRIPS"])
        self.assertLess(2000 * entries, 0.5 * 2**30 * int(limit[:-2]))

    def test_a_drain_has_the_time_that_it_takes(self):
        delay = float(self.environment["LHUB_DRAIN_DELAY"]) + float(self.environment.get("LHUB_DRAIN_SPREAD", 0))
        self.assertEqual(self.pod["spec"]["terminationGracePeriodSeconds"], delay + 10)
        probe = self.container["readinessProbe"]
        self.assertLess(probe["periodSeconds"] * probe["failureThreshold"], delay, "it is noticed within the delay")

    def test_the_hub_takes_the_settings(self):
        image = re.search(r"(?m)^ENV ((?:.*\\\n)*.*)", read(f"{DEPLOY}/image/Containerfile"))[1].replace("\\\n", " ")
        settings = dict(pair.split("=", 1) for pair in image.split()) | self.environment
        with tempfile.TemporaryDirectory() as folder:
            key = write(f"{folder}/key", "0123456789abcdef0123456789abcdef\n")
            self.assertEqual(settings["LHUB_TOKEN_KEYS"], "/keys/token-keys")
            self.assertEqual(settings["LHUB_DATA"], self.container["volumeMounts"][0]["mountPath"])
            settings |= {"LHUB_TOKEN_KEYS": key, "LHUB_DATA": folder}
            shown = run(HUB, "serve", "--check", env=os.environ | settings)
            for value in ("0.0.0.0", "8081", "10.0.0.0/8", "https://hub.example", "json", "16G"):
                self.assertIn(value, shown)


if __name__ == "__main__":
    unittest.main(verbosity=2)
