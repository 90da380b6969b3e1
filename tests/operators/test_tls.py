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
import time
import unittest

from lbfd import BUILD, METRICS_TOKEN, TOKEN, Lbfd


def openssl(*arguments):
    if shutil.which("openssl") is None:
        raise unittest.SkipTest("openssl is not installed")
    done = subprocess.run(["openssl", *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"openssl {' '.join(arguments)}: {done.stderr}")
    return done.stdout


class Authority:
    """A CA in FOLDER, and what it signs."""

    def __init__(self, folder, name):
        self.folder, self.name = folder, name
        self.file = self.path("ca.pem")
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", self.path("ca.key"),
                "-out", self.file, "-days", "2", "-subj", f"/CN={name}")

    def path(self, name):
        return os.path.join(self.folder, f"{self.name}-{name}")

    def sign(self, certificate, key, names="IP:127.0.0.1,DNS:localhost", days=1, serial=1):
        new_key, request, extensions = self.path("new.key"), self.path("new.csr"), self.path("new.ext")
        openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", new_key, "-out", request,
                "-subj", "/CN=lbfd")
        with open(extensions, "w", encoding="ascii") as file:
            file.write(f"subjectAltName={names}\n")
        openssl("x509", "-req", "-in", request, "-CA", self.file, "-CAkey", self.path("ca.key"), "-days", str(days),
                "-set_serial", str(serial), "-extfile", extensions, "-out", self.path("new.pem"))
        os.chmod(new_key, 0o600)
        os.replace(new_key, key)
        os.replace(self.path("new.pem"), certificate)


class TlsLbfd(Lbfd):
    def __init__(self, addresses=("tls:127.0.0.1:0",), more_config=""):
        super().__init__()
        self.certificate, self.key = self.path("lbfd.pem"), self.path("lbfd.key")
        self.authority = Authority(self.folder.name, "site")
        self.authority.sign(self.certificate, self.key)
        with open(self.path("lbfd.toml"), encoding="utf-8") as file:
            text = file.read().replace('["tcp:127.0.0.1:0"]', json.dumps(list(addresses)))
        self.write("lbfd.toml", f'{text}tls_certificate = "{self.certificate}"\ntls_key = "{self.key}"\n{more_config}')

    def report(self, host, ca_file, *arguments):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("LBF_")}
        environment.update(LBF_SERVER=f"https://{host}:{self.port}", LBF_TOKEN=TOKEN, LBF_CA_FILE=ca_file)
        return subprocess.run([os.path.join(BUILD, "bin", "lbf-report"), *arguments], env=environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=60, check=False)

    def handshake(self, **options):
        """The serial number of the certificate that is shown."""
        context = ssl.create_default_context(cafile=self.authority.file)
        for key, value in options.items():
            setattr(context, key, value)
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as plain, \
                context.wrap_socket(plain, server_hostname="localhost") as tls:
            return int(tls.getpeercert()["serialNumber"], 16)


class Tls(unittest.TestCase):
    def test_commands_verify(self):
        with TlsLbfd() as lbfd:
            done = lbfd.report("127.0.0.1", lbfd.authority.file, "--health")
            self.assertEqual((0, ""), (done.returncode, done.stderr))
            self.assertIn("Steps       0 under way, 0 started", done.stdout)
            self.assertEqual(0, lbfd.report("localhost", lbfd.authority.file, "--networks").returncode)
            other = Authority(lbfd.folder.name, "other")
            done = lbfd.report("127.0.0.1", other.file, "--health")
            self.assertEqual(1, done.returncode)
            self.assertRegex(done.stderr, r"^lbf-report: error: lbfd at https://127\.0\.0\.1:\d+ is not trusted: .*LBF_CA_FILE names it\n$")
            done = lbfd.report("127.0.0.1", "/nonexistent", "--health")
            self.assertIn("is not trusted", done.stderr)

    def test_another_hosts_certificate(self):
        lbfd = TlsLbfd()
        lbfd.authority.sign(lbfd.certificate, lbfd.key, names="DNS:elsewhere")
        with lbfd:
            done = lbfd.report("127.0.0.1", lbfd.authority.file, "--health")
            self.assertEqual(1, done.returncode)
            self.assertIn("is not trusted", done.stderr)

    def test_an_expired_certificate(self):
        lbfd = TlsLbfd()
        lbfd.authority.sign(lbfd.certificate, lbfd.key, days=-1)
        with lbfd:
            self.assertIn("is not valid any more", lbfd.log())
            done = lbfd.report("127.0.0.1", lbfd.authority.file, "--health")
            self.assertEqual(1, done.returncode)
            self.assertIn("expired", done.stderr)

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

    def test_a_renewed_certificate_needs_no_restart(self):
        with TlsLbfd() as lbfd:
            self.assertEqual(1, lbfd.handshake())
            context = ssl.create_default_context(cafile=lbfd.authority.file)
            old = http.client.HTTPSConnection("127.0.0.1", lbfd.port, timeout=30, context=context)
            old.request("GET", "/v1/health")
            old.getresponse().read()
            lbfd.authority.sign(lbfd.certificate, lbfd.key, serial=2)
            give_up = time.monotonic() + 30
            while lbfd.handshake() != 2:
                self.assertLess(time.monotonic(), give_up, lbfd.log())
                time.sleep(0.2)
            old.request("GET", "/v1/health")  # goes on
            self.assertEqual(200, old.getresponse().status)
            lbfd.write("lbfd.pem", "nonsense\n")
            give_up = time.monotonic() + 30
            while "the certificate before it stays" not in lbfd.log():
                self.assertEqual(2, lbfd.handshake())
                self.assertLess(time.monotonic(), give_up, lbfd.log())
                time.sleep(0.2)
            self.assertEqual(2, lbfd.handshake())
            lbfd.authority.sign(lbfd.certificate, lbfd.key, serial=3)
            give_up = time.monotonic() + 30
            while lbfd.handshake() != 3:
                self.assertLess(time.monotonic(), give_up, lbfd.log())
                time.sleep(0.2)

    def test_what_does_not_fit_ends_the_start(self):
        lbfd = TlsLbfd()
        self.addCleanup(lbfd.folder.cleanup)
        with open(lbfd.key, encoding="ascii") as file:
            fits = file.read()
        lbfd.authority.sign(lbfd.path("other.pem"), lbfd.path("other.key"))
        for change, words in ((lambda: os.chmod(lbfd.key, 0o640), "must be a file of lbfd's user alone"),
                              (lambda: shutil.copy(lbfd.path("other.key"), lbfd.key), "is not the key of tls_certificate"),
                              (lambda: os.remove(lbfd.key), "read tls_key")):
            lbfd.write("lbfd.key", fits)
            os.chmod(lbfd.key, 0o600)
            change()
            for arguments in ([], ["--check-config"]):
                done = subprocess.run([os.path.join(BUILD, "bin", "lbfd"), "--config", lbfd.path("lbfd.toml"), *arguments],
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


class Tokens(unittest.TestCase):
    def status(self, lbfd, address, token, context=None):
        make = http.client.HTTPConnection if context is None else http.client.HTTPSConnection
        connection = make(address, lbfd.port, timeout=30, **({} if context is None else {"context": context}))
        connection.request("GET", "/v1/networks" if token == TOKEN else "/metrics", headers={"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        answer.read()
        connection.close()
        return answer.status

    def test_beyond_loopback_they_need_tls(self):
        address = own_address()
        with TlsLbfd(["tcp:0.0.0.0:0"]) as lbfd:
            for token in (TOKEN, METRICS_TOKEN):
                self.assertEqual(401, self.status(lbfd, address, token))
                self.assertEqual(200, self.status(lbfd, "127.0.0.1", token))
        lbfd = TlsLbfd(["tls:0.0.0.0:0"])
        lbfd.authority.sign(lbfd.certificate, lbfd.key, names=f"IP:{address}")
        with lbfd:
            context = ssl.create_default_context(cafile=lbfd.authority.file)
            for token in (TOKEN, METRICS_TOKEN):
                self.assertEqual(200, self.status(lbfd, address, token, context))
        with TlsLbfd(["tcp:0.0.0.0:0"], "token_over_tcp = true\n") as lbfd:
            self.assertEqual(200, self.status(lbfd, address, TOKEN))


if __name__ == "__main__":
    unittest.main(verbosity=2)
