"""Tokens that a hub makes, as a back end and its phones use them, while the hub is killed again and again: checked with
HMAC and base64 of Python, and with none of the hub's code.

KILLS (3 by default) is how often it is killed, FORGED (5,000) how many tokens that it never gave are tried.
"""
import base64
import hashlib
import hmac
import http.client
import json
import os
import random
import subprocess
import tempfile
import threading
import time
import unittest

from hub_process import HubProcess

KILLS, FORGED = int(os.environ.get("KILLS", "3")), int(os.environ.get("FORGED", "5000"))
SECRET = b"a secret of thirty-two bytes and more"


def claims(token, secret=SECRET):
    """What a token says, once its signature was found good."""
    head, body, signature = token.split(".")
    expected = hmac.new(secret, f"{head}.{body}".encode(), hashlib.sha256).digest()
    assert hmac.compare_digest(unbase64(signature), expected)
    return json.loads(unbase64(body))


def unbase64(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Asker:
    """One connection at a time, which is opened anew where it has ended."""

    def __init__(self, port):
        self.port, self.connection = port, None

    def ask(self, method, target, body=None):
        """The status and the answer; throws OSError or HTTPException where the hub has gone."""
        if self.connection is None:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            self.connection.request(method, target, None if body is None else json.dumps(body))
            answer = self.connection.getresponse()
            text = answer.read()
        except BaseException:
            self.close()
            raise
        return answer.status, json.loads(text) if text else None

    def close(self):
        if self.connection is not None:
            self.connection.close()
            self.connection = None


class Phone(threading.Thread):
    """Refreshes its tokens as fast as it can; what it has no answer to it asks again."""

    def __init__(self, port, pair, gate):
        super().__init__()
        self.asker, self.gate, self.is_over = Asker(port), gate, False
        self.tokens, self.faults = [pair["refreshToken"]], []

    def run(self):
        while not self.is_over:
            self.gate.wait()
            try:
                status, answer = self.asker.ask("POST", "/v1/tokens/refresh", {"refreshToken": self.tokens[-1]})
            except (OSError, http.client.HTTPException):
                continue
            if status != 200:
                self.faults.append((status, answer))
                return
            self.tokens.append(answer["refreshToken"])
        self.asker.close()


class TestCredentials(unittest.TestCase):
    def setUp(self):
        self.files = tempfile.TemporaryDirectory()
        self.addCleanup(self.files.cleanup)
        key = os.path.join(self.files.name, "secret")
        with open(key, "wb") as file:
            file.write(SECRET)
        self.hub = HubProcess("--loops", "2", "--token-sign-key", key)
        self.addCleanup(self.hub.stop)
        self.ops = Asker(self.hub.port)
        self.addCleanup(self.ops.close)

    def begin(self, sub):
        status, pair = self.ops.ask("POST", "/v1/tokens?role=ops&id=backend", {"sub": sub, "role": "rider"})
        self.assertEqual(status, 201, pair)
        return pair

    def settled(self):
        """The families whose last record in the journal says that a used token is good no more."""
        words = [os.environ["LOCATIONHUB"], "journal", "export", f"{self.hub.folder.name}/data"]
        last = {}
        for line in subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines():
            record = json.loads(line)
            if record["record"].startswith("token"):
                last[record["jti"]] = record["record"]
        return {family for family, kind in last.items() if kind == "tokens_settled"}

    def refresh(self, token):
        return self.ops.ask("POST", "/v1/tokens/refresh", {"refreshToken": token})

    def test_the_tokens_are_json_web_tokens(self):
        pair = self.begin("rider-1")
        access, refresh = claims(pair["accessToken"]), claims(pair["refreshToken"])
        self.assertEqual((access["sub"], access["role"], access["jti"]), ("rider-1", "rider", pair["jti"]))
        self.assertEqual(access["exp"] * 1000, pair["accessExpires"])
        self.assertAlmostEqual(access["exp"] - access["iat"], 900, delta=0.01)
        self.assertNotIn("role", refresh)
        self.assertEqual(refresh["jti"], pair["jti"])

    def test_over_kills_none_is_lost_and_none_is_good_twice(self):
        gate = threading.Event()
        phones = [Phone(self.hub.port, self.begin(f"rider-{number}"), gate) for number in range(16)]
        gate.set()
        for phone in phones:
            phone.start()
        try:
            for _ in range(KILLS):
                least = min(len(phone.tokens) for phone in phones) + 20
                while min(len(phone.tokens) for phone in phones) < least and not any(p.faults for p in phones):
                    phones[0].join(0.01)
                gate.clear()
                self.hub.kill()
                self.hub.start()
                gate.set()
        finally:
            for phone in phones:
                phone.is_over = True
            gate.set()
            for phone in phones:
                phone.join()
        self.assertEqual([phone.faults for phone in phones], [[]] * len(phones))
        # Until the time in which an answer may have been lost is over, and that is stored. Then nobody asks the hub
        # anything before it is killed.
        families = {claims(phone.tokens[-1])["jti"] for phone in phones}
        deadline = time.monotonic() + 180
        while self.settled() != families:
            self.assertLess(time.monotonic(), deadline, "not stored that the grace is over")
            time.sleep(0.5)
        self.hub.kill()
        self.hub.start()
        self.ops.close()
        used = 0
        for number, phone in enumerate(phones):
            self.assertEqual(len(set(phone.tokens)), len(phone.tokens), "each answer has another token")
            # One that was used, the newest of them for each other phone: it ends the family.
            status, _ = self.refresh(phone.tokens[-2] if number % 2 else random.choice(phone.tokens[:-2]))
            self.assertEqual(status, 401)
            for token in phone.tokens:
                self.assertEqual(self.refresh(token)[0], 401)
                used += 1
        print(f"{KILLS} kills: {used} refresh tokens, each good once; none of them after its family's end")

    def test_none_that_is_forged_is_taken(self):
        pair = self.begin("rider-1")
        head, body, signature = pair["refreshToken"].split(".")
        said, taken = json.loads(unbase64(body)), 0
        for number in range(FORGED):
            if number and number % (FORGED // (KILLS + 1)) == 0:
                self.hub.kill()
                self.hub.start()
                self.ops.close()
            kind = number % 5
            if kind == 0:  # another signature
                token = f"{head}.{body}.{base64url(random.randbytes(32))}"
            elif kind == 1:  # another serial under the same signature
                token = f"{head}.{base64url(json.dumps({**said, 'n': number}).encode())}.{signature}"
            elif kind == 2:  # no signature
                token = f"{base64url(json.dumps({'alg': 'none', 'typ': 'refresh+jwt'}).encode())}.{body}."
            elif kind == 3:  # one byte of it is another
                index = random.randrange(len(pair["refreshToken"]))
                other = random.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.")
                token = pair["refreshToken"][:index] + other + pair["refreshToken"][index + 1:]
                try:
                    if [unbase64(part) for part in token.split(".")] == [
                            unbase64(part) for part in (head, body, signature)]:
                        continue  # only unused bits of the last character differ
                except ValueError:
                    pass
            else:
                token = pair["accessToken"]
            taken += self.refresh(token)[0] == 200
        self.assertEqual(taken, 0)
        print(f"{KILLS} kills: {FORGED} forged tokens, none taken")
        self.assertEqual(self.refresh(pair["refreshToken"])[0], 200, "all that cost its owner nothing")

    def test_a_revocation_is_taken_back(self):
        path, token = "/v1/revocations?role=ops&id=backend", self.begin("rider-9")["accessToken"]
        self.assertEqual([self.ops.ask("POST", path, {"sub": "rider-9"})[0] for _ in range(2)], [201, 200])
        self.assertEqual(self.ops.ask("GET", f"/v1/trips/t1?access_token={token}")[0], 401)
        self.assertEqual(self.ops.ask("DELETE", f"{path}&sub=rider-9"), (204, None))
        self.assertEqual(self.ops.ask("DELETE", f"{path}&sub=rider-9")[0], 404)
        self.hub.kill()
        self.ops.close()
        self.hub.start()
        self.assertEqual(self.ops.ask("GET", path)[1]["revocations"], [])
        self.assertNotEqual(self.ops.ask("GET", f"/v1/trips/t1?access_token={token}")[0], 401, "it counts again")
        # A late repetition revokes again.
        self.assertEqual(self.ops.ask("POST", path, {"sub": "rider-9"})[0], 201)
        self.assertEqual(self.ops.ask("DELETE", f"{path}&jti=none")[0], 404)

    def test_the_audit_trail_names_who_and_no_token(self):
        pair = self.begin("rider-1")
        self.ops.ask("POST", "/v1/revocations?role=ops&id=backend", {"sub": "driver-9"})
        self.ops.ask("POST", "/v1/revocations?role=rider&id=thief", {"sub": "driver-9"})
        self.refresh(pair["refreshToken"])
        self.hub.kill()
        self.ops.close()
        lines = subprocess.run(
            [os.environ["LOCATIONHUB"], "journal", "export", f"{self.hub.folder.name}/data", "--audit"],
            check=True, capture_output=True, text=True).stdout
        self.hub.start()
        said = [(line["action"], line.get("sub"), line.get("target"), line["status"])
                for line in map(json.loads, lines.splitlines())]
        self.assertEqual(said[:2], [("issue_tokens", "backend", "rider-1", 201), ("revoke", "backend", "driver-9", 201)])
        self.assertIn(("refresh_tokens", None, "rider-1", 200), said)
        self.assertNotIn(pair["refreshToken"].split(".")[2], lines)
        status, answer = self.ops.ask("GET", "/v1/revocations?role=ops&id=backend")
        self.assertEqual((status, answer["revocations"]), (200, [{"sub": "driver-9"}]))


if __name__ == "__main__":
    unittest.main()
