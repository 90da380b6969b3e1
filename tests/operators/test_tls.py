#!/usr/bin/python3
"""TLS of lbfd's addresses: who is shown the right certificate talks to it, tokens are for nobody's ears, and a renewed
certificate needs no restart."""

import http.client
import json
import os
import shutil
import socket
import ssl
import subprocess
import tempfile
import time
import unittest

from certificates import Authority, TlsLbfd
from lbfd import LBFD, METRICS_TOKEN, TOKEN, Lbfd, Munged


class Tls(unittest.TestCase):
    def curl(self, lbfd, ca_file, host="127.0.0.1"):
        """(exit status, what it says or gets)."""
        if shutil.which("curl") is None:
            self.skipTest("curl is not installed")
        done = subprocess.run(["curl", "--silent", "--show-error", "--noproxy", "*", "--cacert", ca_file, "-H", f"Authorization: Bearer {TOKEN}",
                               f"https://{host}:{lbfd.port}/v1/networks"],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, done.stdout + done.stderr

    def refused_by_all(self, lbfd, ca_file, why):
        """curl, a command and a relay, which have libcurl alike, in their own words."""
        unverified = 60  # curl(1): peer certificate cannot be authenticated
        status, said = self.curl(lbfd, ca_file)
        self.assertEqual(unverified, status, said)
        self.assertIn(why, said)
        done = lbfd.command("lbf-report", "--health", ca_file=ca_file)
        self.assertEqual((1, ""), (done.returncode, done.stdout))
        self.assertRegex(done.stderr, rf"^lbf-report: error: lbfd at https://127\.0\.0\.1:\d+ is not trusted: .*{why}.*LBF_CA_FILE names it\n$")
        outcome, said = self.relay(lbfd, ca_file)
        self.assertEqual("L", outcome)
        self.assertIn("is not trusted", said)

    def relay(self, lbfd, ca_file):
        """What becomes of a step without ranks: "D" delivered, "L" lost; and why."""
        with tempfile.TemporaryDirectory() as folder:
            description = {"cluster": "c", "job": 5, "step": 0, "restart": 0, "uid": os.getuid(), "nodes": ["n0"], "node_index": 0, "tasks": 1,
                           "tasks_per_node": [1], "task_ids": [0], "command": ["./a"]}
            with open(f"{folder}/step", "w", encoding="ascii") as file:
                json.dump(description, file)
            os.mkdir(f"{folder}/rings", 0o700)
            done = lbfd.command("lbf-relay", "--ring-dir", f"{folder}/rings", "--server", f"https://127.0.0.1:{lbfd.port}", "--step-file",
                                f"{folder}/step", "--end-fd", "0", "--status-fd", "1", "--deliver-timeout-s", "1", ca_file=ca_file)
            return done.stdout[:1], done.stdout[1:] + done.stderr

    def test_all_clients_verify(self):
        with TlsLbfd() as lbfd:
            self.assertEqual((0, '{"networks":["zero"]}'), self.curl(lbfd, lbfd.authority.file))
            done = lbfd.command("lbf-report", "--health")
            self.assertEqual((0, ""), (done.returncode, done.stderr))
            self.assertIn("Steps       0 under way, 0 started", done.stdout)
            self.assertEqual(0, lbfd.command("lbf-report", "--networks", host="localhost").returncode)
            self.assertEqual("D", self.relay(lbfd, lbfd.authority.file)[0])
            self.assertIn('"job":5', lbfd.command("lbf-report", "--json", "-j", "5").stdout.replace(" ", ""))

    def test_a_wrong_ca_is_refused(self):
        with TlsLbfd() as lbfd:
            self.refused_by_all(lbfd, Authority(lbfd.folder.name, "other").file, "unable to get local issuer certificate")
            done = lbfd.command("lbf-report", "--health", ca_file="/nonexistent")
            self.assertIn("is not trusted", done.stderr)

    def test_another_hosts_certificate_is_refused(self):
        lbfd = TlsLbfd()
        lbfd.authority.sign(lbfd.certificate, lbfd.key, names="DNS:elsewhere")
        with lbfd:
            self.refused_by_all(lbfd, lbfd.authority.file, "no alternative certificate subject name matches target host name")

    def test_an_expired_certificate_is_refused(self):
        lbfd = TlsLbfd()
        lbfd.authority.sign(lbfd.certificate, lbfd.key, days=-1)
        with lbfd:
            self.assertIn("is not valid any more", lbfd.log())
            self.refused_by_all(lbfd, lbfd.authority.file, "certificate has expired")

    def test_requests_of_every_kind(self):
        with TlsLbfd() as lbfd:
            context = ssl.create_default_context(cafile=lbfd.authority.file)

            def request(method, target, body=None, token=TOKEN):
                connection = http.client.HTTPSConnection("127.0.0.1", lbfd.port, timeout=30, context=context)
                connection.request(method, target, body, {"Authorization": f"Bearer {token}"})
                answer = connection.getresponse()
                text = answer.read().decode()
                connection.close()
                return answer.status, answer.headers["Content-Type"], text

            lbfd.request = request
            lbfd.run_empty_step()
            self.assertEqual(200, request("GET", "/metrics", token=METRICS_TOKEN)[0])
            self.assertEqual(400, request("PUT", "/v1/steps/c/8/0/0/streams/0", "x" * 3_000_000)[0])
            connection = http.client.HTTPSConnection("127.0.0.1", lbfd.port, timeout=30, context=context)
            for _ in range(5):  # of one connection
                connection.request("GET", "/v1/health")
                answer = connection.getresponse()
                answer.read()
                self.assertEqual(200, answer.status)
            connection.close()

    def test_old_protocols_and_no_tls_at_all(self):
        with TlsLbfd() as lbfd:
            self.assertEqual(1, lbfd.handshake(minimum_version=ssl.TLSVersion.TLSv1_2, maximum_version=ssl.TLSVersion.TLSv1_2))
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            context.set_ciphers("ALL:@SECLEVEL=0")
            context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
            with self.assertRaises((ssl.SSLError, ConnectionError)), socket.create_connection(("127.0.0.1", lbfd.port), timeout=30) as plain:
                context.wrap_socket(plain)
            with self.assertRaises((http.client.HTTPException, ConnectionError)):
                lbfd.request("GET", "/v1/health")
            self.assertEqual(1, lbfd.handshake())

    def wait_for(self, lbfd, is_so):
        give_up = time.monotonic() + 30
        while not is_so():
            self.assertLess(time.monotonic(), give_up, lbfd.log())
            time.sleep(0.2)

    def test_a_renewed_certificate_needs_no_restart(self):
        with TlsLbfd() as lbfd:
            self.assertEqual(1, lbfd.handshake())
            context = ssl.create_default_context(cafile=lbfd.authority.file)
            old = http.client.HTTPSConnection("127.0.0.1", lbfd.port, timeout=30, context=context)
            old.request("GET", "/v1/health")
            old.getresponse().read()
            lbfd.authority.sign(lbfd.certificate, lbfd.key, serial=2)
            self.wait_for(lbfd, lambda: lbfd.handshake() == 2)
            self.assertEqual(0, self.curl(lbfd, lbfd.authority.file)[0])
            old.request("GET", "/v1/health")  # goes on
            self.assertEqual(200, old.getresponse().status)
            old.close()
            lbfd.write("lbfd.pem", "nonsense\n")
            self.wait_for(lbfd, lambda: lbfd.handshake() == 2 and "the certificate before it stays" in lbfd.log())
            self.assertEqual(2, lbfd.handshake())
            lbfd.authority.sign(lbfd.certificate, lbfd.key, serial=3)
            self.wait_for(lbfd, lambda: lbfd.handshake() == 3)

    def test_what_does_not_fit_ends_the_start(self):
        lbfd = TlsLbfd()
        self.addCleanup(lbfd.folder.cleanup)
        with open(lbfd.key, encoding="ascii") as file:
            fits = file.read()
        lbfd.authority.sign(lbfd.path("other.pem"), lbfd.path("other.key"))
        for change, words in ((lambda: os.chmod(lbfd.key, 0o640), "must be a file of lbfd's user alone"),
                              (lambda: shutil.copy(lbfd.path("other.key"), lbfd.key), "key values mismatch: the key of tls_certificate is needed"),
                              (lambda: os.remove(lbfd.key), "read tls_key")):
            lbfd.write("lbfd.key", fits)
            os.chmod(lbfd.key, 0o600)
            change()
            for arguments in ([], ["--check-config"]):
                done = subprocess.run([LBFD, "--config", lbfd.path("lbfd.toml"), *arguments],
                                      capture_output=True, text=True, timeout=60, check=False)
                self.assertEqual(1, done.returncode, done)
                self.assertIn(words, done.stdout + done.stderr)


def own_address():
    """Of this host, and not of the loopback network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError as error:
            raise unittest.SkipTest(f"this host has no network: {error}")
        address = probe.getsockname()[0]
    if address.startswith("127."):
        raise unittest.SkipTest("this host has the loopback network only")
    return address


class OtherHosts(unittest.TestCase):
    """Where other hosts reach lbfd it knows who asks, and nobody reads tokens on their way."""

    def status(self, lbfd, address, token, context=None):
        make = http.client.HTTPConnection if context is None else http.client.HTTPSConnection
        connection = make(address, lbfd.port, timeout=30, **({} if context is None else {"context": context}))
        connection.request("GET", "/v1/networks" if token == TOKEN else "/metrics", headers={"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        answer.read()
        connection.close()
        return answer.status

    def test_neither_munge_nor_tls_ends_the_start(self):
        for address in ("tcp:0.0.0.0:0", "tcp:[::]:0"):
            lbfd = Lbfd(addresses=["tcp:127.0.0.1:0", address])
            self.addCleanup(lbfd.folder.cleanup)
            done = subprocess.run([LBFD, "--config", lbfd.path("lbfd.toml")], env=lbfd.environment(), stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual((1, ""), (done.returncode, done.stdout))
            said, = done.stderr.splitlines()
            self.assertTrue(said.startswith(f"lbfd: error: listen: {address} is open to other hosts and munge does not answer: "), said)
            self.assertTrue(said.endswith(f"; without munge listen on {address.replace('tcp:', 'tls:')}"), said)
            self.assertFalse(os.path.exists(lbfd.path("state")))

    def test_tokens_need_tls(self):
        address = own_address()
        with Munged() as munged, Lbfd(addresses=["tcp:0.0.0.0:0"], munge_socket=munged.socket) as lbfd:
            for token in (TOKEN, METRICS_TOKEN):
                self.assertEqual(401, self.status(lbfd, address, token))
                self.assertEqual(200, self.status(lbfd, "127.0.0.1", token))
        lbfd = TlsLbfd(["tls:0.0.0.0:0"])
        lbfd.authority.sign(lbfd.certificate, lbfd.key, names=f"IP:{address}")
        with lbfd:
            context = ssl.create_default_context(cafile=lbfd.authority.file)
            for token in (TOKEN, METRICS_TOKEN):
                self.assertEqual(200, self.status(lbfd, address, token, context))
        with Lbfd("token_over_tcp = true\n", ["tcp:0.0.0.0:0"]) as lbfd:
            self.assertEqual(200, self.status(lbfd, address, TOKEN))


if __name__ == "__main__":
    unittest.main(verbosity=2)
