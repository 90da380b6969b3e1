"""A CA of a test's own, and an lbfd with an address of TLS whose certificate it signs."""

import os
import shutil
import socket
import ssl
import subprocess
import unittest

from lbfd import BUILD, TOKEN, Lbfd


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
        super().__init__(f'tls_certificate = "FOLDER/lbfd.pem"\ntls_key = "FOLDER/lbfd.key"\n{more_config}', addresses)
        self.certificate, self.key = self.path("lbfd.pem"), self.path("lbfd.key")
        self.authority = Authority(self.folder.name, "site")
        self.authority.sign(self.certificate, self.key)

    def command(self, name, *arguments, host="127.0.0.1", ca_file=None):
        """lbf-report and others, as users of this lbfd call them."""
        environment = self.environment(LBF_SERVER=f"https://{host}:{self.port}", LBF_TOKEN=TOKEN,
                                       LBF_CA_FILE=ca_file or self.authority.file)
        return subprocess.run([os.path.join(BUILD, "bin", name), *arguments], env=environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=60, check=False)

    def handshake(self, **options):
        """The serial number of the certificate that is shown."""
        context = ssl.create_default_context(cafile=self.authority.file)
        for key, value in options.items():
            setattr(context, key, value)
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as plain, \
                context.wrap_socket(plain, server_hostname="localhost") as tls:
            return int(tls.getpeercert()["serialNumber"], 16)
