"""A ReFrame test: one-way latency and peak rate of a layer, against a baseline of wiretwin.

Run it with ``reframe -c speed_test.py -r -S 'layer=mpi/openmpi' -S "baseline=$HOME/baselines/main"``.
"""

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import performance_function, run_before, sanity_function, variable


@rfm.simple_test
class Speed(rfm.RunOnlyRegressionTest):
    descr = "A layer is not slower than its baseline"
    valid_systems = ["*"]  # noqa: RUF012 (ReFrame's way)
    valid_prog_environs = ["*"]  # noqa: RUF012
    executable = "wiretwin"
    layer = variable(str, value="mpi/openmpi")
    measure = variable(str, value="--budget 30s")
    baseline = variable(str, value="")
    above = variable(str, value="20%")

    @run_before("run")
    def measure_fit_and_compare(self):
        self.executable_opts = ["measure", "--layers", self.layer, self.measure, "-o", "new"]
        self.postrun_cmds = ["wiretwin fit new -o twin.toml --format csv"]
        if self.baseline:
            gate = f"wiretwin compare {self.baseline} new --fail-above {self.above} && echo gate: held"
            self.postrun_cmds.append(gate)

    @sanity_function
    def the_gate_holds(self):
        if self.baseline:
            return sn.assert_found(r"^gate: held$", self.stdout)
        return sn.assert_found(r"^layer,", self.stdout)

    def column(self, name):
        """Return a figure of the layer from the table that `fit` printed."""
        lines = sn.evaluate(sn.extractall(r"^(layer,.*|" + self.layer + r",.*)$", self.stdout, 1))
        return float(dict(zip(lines[0].split(","), lines[1].split(","), strict=True))[name])

    @performance_function("us")
    def latency(self):
        return self.column("t_0_us")

    @performance_function("MB/s")
    def peak_rate(self):
        return self.column("r_max_MB_s")
