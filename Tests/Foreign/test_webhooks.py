"""The signed requests of protocol/webhook-vectors.ndjson, verified by PyPI's `standardwebhooks` (v1) and `cryptography` (v1a).

WebhooksTests make the same requests anew, byte for byte. Run it with Tests/Foreign/run.sh.
"""

import base64
import datetime
import json
import pathlib
import unittest
from unittest import mock

import standardwebhooks
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

VECTORS = pathlib.Path(__file__).parents[2] / "protocol" / "webhook-vectors.ndjson"
# RFC 8032 §7.1, test 1
PUBLIC = bytes.fromhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")


class At(datetime.datetime):
    """A clock that stands at the time of the requests, of which the library refuses what is older than five minutes."""

    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(1764000000, tz)


class SignatureTests(unittest.TestCase):
    def setUp(self):
        patch = mock.patch("standardwebhooks.webhooks.datetime", At)
        patch.start()
        self.addCleanup(patch.stop)
        self.requests = []
        for line in VECTORS.read_text().splitlines():
            # The body's own bytes are what was signed.
            body = line[line.index(',"body":') + len(',"body":'):-1]
            self.requests.append((json.loads(line), body))
        self.assertGreaterEqual(len(self.requests), 2)

    @staticmethod
    def headers(request):
        return {f"webhook-{name}": request[name] for name in ("id", "timestamp", "signature")}

    def test_either_secret_verifies_during_a_rotation(self):
        for request, body in self.requests:
            for secret in request["secrets"]:
                payload = standardwebhooks.Webhook(secret).verify(body, self.headers(request))
                self.assertEqual(payload, request["body"])
                self.assertEqual(set(payload), {"type", "timestamp", "data"})

    def test_whatever_is_changed_is_refused(self):
        for request, body in self.requests:
            webhook = standardwebhooks.Webhook(request["secrets"][0])
            other = standardwebhooks.Webhook("whsec_" + base64.b64encode(b"x" * 32).decode())
            headers = self.headers(request)
            for hook, text, sent in [
                (webhook, body + " ", headers),
                (webhook, body, headers | {"webhook-id": "evt_e1_7_9"}),
                (webhook, body, headers | {"webhook-timestamp": "1764000001"}),
                (other, body, headers),
            ]:
                with self.assertRaises(standardwebhooks.WebhookVerificationError):
                    hook.verify(text, sent)

    def test_the_public_key_verifies(self):
        key = Ed25519PublicKey.from_public_bytes(PUBLIC)
        for request, body in self.requests:
            signatures = [s[4:] for s in request["signature"].split() if s.startswith("v1a,")]
            self.assertEqual(len(signatures), 1)
            signature = base64.b64decode(signatures[0], validate=True)
            signed = f'{request["id"]}.{request["timestamp"]}.{body}'.encode()
            key.verify(signature, signed)
            with self.assertRaises(InvalidSignature):
                key.verify(signature, signed + b" ")


if __name__ == "__main__":
    unittest.main()
