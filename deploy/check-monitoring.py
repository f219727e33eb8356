#!/usr/bin/env python3
# Holds alerts and dashboard to a real hub: starts a hub with TLS and a journal, puts it under load, has a real
# Prometheus scrape it for 30 s, and asks for every expression of dashboard and alerts. Each must be understood, each of
# the dashboard must give a series, and each selector of an alert must name a metric that the hub has. Before that:
# promtool on the rules and their cases, and on the page of metrics, fresh and under load.
#
#     deploy/check-monitoring.py .build/release/locationhub [first port]
#
# Where redis-server is installed the hub is one of a cluster; where it is not, what is about clusters is left out, and
# this says so.
#
# Exit code 0 where all holds, 1 where something does not, 77 where a tool is missing, which it names.
import base64, http.server, json, os, pathlib, re, shutil, subprocess, sys, tempfile, threading, time
import urllib.parse, urllib.request

HERE = pathlib.Path(__file__).resolve().parent
SECONDS = 30
OF_CLUSTERS = "locationhub_cluster_"
# The metrics that an alert asks for are looked for in the page, for it gives no series while nothing is wrong.
NAME = re.compile(r"\b(?:locationhub|process)_[a-z_]+")


def run(*words, stdin=None):
    outcome = subprocess.run(words, input=stdin, capture_output=True, text=True)
    return outcome.returncode, (outcome.stdout + outcome.stderr).strip()


def get(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode()


def wait_for(url):
    for _ in range(200):
        try:
            return get(url)
        except OSError:
            time.sleep(0.1)
    sys.exit(f"{url} does not answer")


class Checks:
    def __init__(self):
        self.failures = 0

    def check(self, holds, what):
        if not holds:
            self.failures += 1
            print("FAILED:", what)


def expressions():
    """Of the dashboard, with its variables filled in, and of the alerts."""
    dashboard = json.loads((HERE / "grafana/locationhub.json").read_text())
    panels = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    filled = [text.replace("$instance", ".*").replace("$__rate_interval", "20s") for text in panels]
    return filled


def start_engine(directory, port):
    return subprocess.Popen(
        ["redis-server", "--bind", "127.0.0.1", "--port", str(port), "--save", "", "--dir", str(directory)],
        stdout=subprocess.DEVNULL)


def join_cluster(directory, port, engine):
    """The file of a cluster whose engine listens there."""
    (directory / "cluster.key").write_text(os.urandom(32).hex() + "\n")
    (directory / "hub.cluster").write_text(
        f"name = a\nadvertise = 127.0.0.1:{port}\nkey-file = {directory}/cluster.key\n"
        f"bus = redis://127.0.0.1:{engine}\nledger = redis://127.0.0.1:{engine}\n")
    return ["--cluster", str(directory / "hub.cluster")]


class Receiver(http.server.BaseHTTPRequestHandler):
    """Takes every event."""
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


def set_webhook(directory, port):
    """The file of a webhook and a stream whose receiver listens there."""
    receiver = http.server.ThreadingHTTPServer(("127.0.0.1", port), Receiver)
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    (directory / "secret").write_text("whsec_" + base64.b64encode(os.urandom(32)).decode() + "\n")
    (directory / "webhooks").write_text(
        f"[all]\nurl = http://127.0.0.1:{port}/\nallow = 127.0.0.1\nchannel = *\n"
        f"secret-file = {directory}/secret\n"
        f"[lake]\nstream = http://127.0.0.1:{port}/\nallow = 127.0.0.1\nchannel = *\npositions = on\n"
        f"secret-file = {directory}/secret\n")
    return ["--webhooks", str(directory / "webhooks")]


def start_hub(program, directory, port, admin, options):
    key = directory / "tls.key"
    run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30",
        "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", str(key),
        "-out", str(directory / "tls.pem"))
    return subprocess.Popen(
        [program, "serve", "--dev-auth", "--port", str(port), "--admin-port", str(admin), "--data",
         str(directory / "data"), "--tls-cert", str(directory / "tls.pem"), "--tls-key", str(key),
         *options],
        stdout=subprocess.DEVNULL, stderr=open(directory / "hub.log", "w"))


def start_prometheus(directory, port, admin):
    text = (HERE / "prometheus/prometheus.yml").read_text()
    text = text.replace("15s", "2s").replace("127.0.0.1:8081", f"127.0.0.1:{admin}")
    text = text.replace("alerts.yml", str(HERE / "prometheus/alerts.yml"))
    (directory / "prometheus.yml").write_text(text)
    return subprocess.Popen(
        ["prometheus", f"--config.file={directory}/prometheus.yml", f"--storage.tsdb.path={directory}/tsdb",
         f"--web.listen-address=127.0.0.1:{port}"],
        stdout=subprocess.DEVNULL, stderr=open(directory / "prometheus.log", "w"))


def check_page(checks, page, when):
    status, said = run("promtool", "check", "metrics", stdin=page)
    checks.check(status == 0 and not said, f"promtool on the page of a hub {when}: {said}")


def check_expressions(checks, prometheus, page, is_of_cluster):
    for text in expressions():
        if OF_CLUSTERS in text and not is_of_cluster:
            continue
        answer = json.loads(get(f"{prometheus}/api/v1/query?query={urllib.parse.quote(text)}"))
        checks.check(answer["data"]["result"], f"no series for the dashboard's {text}")
    rules = json.loads(get(f"{prometheus}/api/v1/rules"))["data"]["groups"][0]["rules"]
    families = set(re.findall(r"^([a-z_]+)[{ ]", page, re.M))
    for rule in rules:
        checks.check(rule["health"] == "ok", f"{rule['name']}: {rule.get('lastError', rule['health'])}")
        checks.check(rule["state"] == "inactive", f"{rule['name']} is {rule['state']} although nothing is wrong")
        for name in NAME.findall(rule["query"]):
            if name.startswith(OF_CLUSTERS) and not is_of_cluster:
                continue
            checks.check(name in families, f"{rule['name']} asks for {name}, which the hub does not have")
    return len(rules)


def main():
    program, first = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 18080
    missing = [tool for tool in ("promtool", "prometheus", "openssl") if not shutil.which(tool)]
    if missing:
        print("skipped: needs", ", ".join(missing), "(Debian: apt-get install prometheus openssl)")
        sys.exit(77)
    checks = Checks()
    for words in (("check", "config"), ("check", "rules"), ("test", "rules")):
        file = {"check config": "prometheus.yml", "check rules": "alerts.yml", "test rules": "alerts-test.yml"}
        status, said = run("promtool", *words, str(HERE / "prometheus" / file[" ".join(words)]))
        checks.check(status == 0, f"promtool {' '.join(words)}: {said}")
    port, admin, web = first, first + 1, first + 2
    running = []
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        try:
            cluster = []
            if shutil.which("redis-server"):
                running.append(start_engine(directory, first + 3))
                cluster = join_cluster(directory, port, first + 3)
            else:
                print("left out: what is about clusters needs redis-server")
            running.append(start_hub(program, directory, port, admin, set_webhook(directory, first + 4) + cluster))
            page = f"http://127.0.0.1:{admin}/metrics"
            check_page(checks, wait_for(page), "that has just started")
            running.append(start_prometheus(directory, web, admin))
            wait_for(f"http://127.0.0.1:{web}/-/ready")
            load = subprocess.run(
                [program, "simulate", "--url", f"wss://localhost:{port}/v1/ws", "--ca", str(directory / "tls.pem"),
                 "--drivers", "100", "--trips", "--duration", str(SECONDS)], capture_output=True, text=True)
            checks.check(load.returncode == 0, f"simulate: {load.stdout}{load.stderr}")
            loaded = get(page)
            check_page(checks, loaded, "under load")
            rules = check_expressions(checks, f"http://127.0.0.1:{web}", loaded, bool(cluster))
            series = sum(not line.startswith("#") for line in loaded.splitlines())
            print(f"{len(expressions())} expressions of the dashboard, {rules} alerts, {series} series,",
                  f"{checks.failures} failures")
        finally:
            for process in reversed(running):
                process.terminate()
                process.wait()
    sys.exit(1 if checks.failures else 0)


main()
