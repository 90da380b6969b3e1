#!/usr/bin/python3
"""lbfd by https: (docs/lbfd.md, "Configuration"): the plugin in srun, relays and commands verify its certificate, beside munge."""

import json
import os
import re
import shutil
import sys

sys.dont_write_bytecode = True
import cluster_case  # noqa: E402
from cluster_case import BIN, HERE, USER, ClusterCase  # noqa: E402

sys.path.append(os.path.join(HERE, "../operators"))
from certificates import Authority  # noqa: E402


class OverTls(ClusterCase):
    """On a cluster of its own: its slurmds know the CA."""

    def setUp(self):
        super().setUp()
        self.site = Authority(self.work, "site")
        self.ca_file = os.path.join(self.work, "ca.pem")
        shutil.copy(self.site.file, self.ca_file)
        self.use_own("s", env={"LBF_CA_FILE": self.ca_file})
        self.env["LBF_CA_FILE"] = self.ca_file
        self.listen_with_tls()

    def listen_with_tls(self):
        """Its address is known when the cluster is up."""
        with open(self.state("plugstack.conf"), encoding="utf-8") as file:
            plugstack = file.read()
        self.address, = re.findall(r"lbfd=http://(\S+)", plugstack)
        certificate, key = os.path.join(self.work, "lbfd.pem"), os.path.join(self.work, "lbfd.key")
        self.site.sign(certificate, key, names=f"IP:{self.address.split(':')[0]}")
        self.facts["lbfd_settings"] += [f'listen=["unix:{self.state("run", "lbfd.sock")}", "tls:{self.address}"]',
                                        f'tls_certificate="{certificate}"', f'tls_key="{key}"']
        with open(self.state("cluster.json"), "w", encoding="utf-8") as file:
            json.dump(self.facts, file)
        self.lbfd("restart")
        with open(self.state("plugstack.conf"), "w", encoding="utf-8") as file:
            file.write(plugstack.replace("lbfd=http://", "lbfd=https://"))
        self.assertEqual(0, self.health(self.ca_file).status)

    def health(self, ca_file):
        return self.run_command(os.path.join(BIN, "lbf-report"), "--health", user=USER,
                                env={"LBF_SERVER": f"https://{self.address}", "LBF_CA_FILE": ca_file})

    def test_events_come_and_the_result_is_in_srun(self):
        done, job = self.predict("--nodes=2", "--ntasks=2", self.program("steps"), "60")
        self.assertEqual(0, done.status, done)
        self.assertRegex(done.err, r"(?m)^lbf: .*(self-prediction error|to get a number).*: lbf-report -j ")
        self.assertEqual(2 * 60, self.calls_of(self.step(job))["MPI_Sendrecv"])

    def test_an_lbfd_that_is_not_trusted_gets_nothing(self):
        shutil.copy(Authority(self.work, "other").file, self.ca_file)
        self.assertIn("is not trusted", self.health(self.ca_file).err)
        done, job = self.predict("--nodes=2", "--ntasks=2", self.program("steps"), "60")
        self.assertEqual(0, done.status, done)
        self.assertIn("is not trusted", done.err)
        self.assert_unknown(job)


if __name__ == "__main__":
    cluster_case.main()
