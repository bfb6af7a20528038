"""Runs a Spark Connect server as a separate process. Its sessions use the Python of the tests."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.live.ports import accepts, free_port
from tests.live.process import ServerProcess

START_SECONDS_MAX = 180.0
CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"


class SparkConnectServer:
    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        import pyspark

        self._address = f"127.0.0.1:{free_port()}"
        self.url = f"sc://{self._address}"
        all_settings = {
            **settings,
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": self._address.rpartition(":")[2],
        }
        home = Path(pyspark.__file__).parent
        command = [str(home / "bin" / "spark-submit"), "--master", "local[2]", "--class", CLASS]
        for name, value in all_settings.items():
            command += ["--conf", f"{name}={value}"]
        environment = {
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        }
        self._process = ServerProcess(command, folder / "connect.log", environment=environment)

    def start(self) -> None:
        self._process.start(lambda: accepts(self._address), START_SECONDS_MAX)

    def stop(self) -> None:
        self._process.stop()
