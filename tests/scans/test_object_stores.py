"""Scans of objects behind a server that speaks S3, by Arrow's own client and by fsspec's."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import fs, parquet

import coreset_mcmc as cm
from coreset_mcmc.data.rows import Rows
from coreset_mcmc.scans import retries
from tests.scans.conftest import MAPPING, SIZE, as_batch, little_columns
from tests.scans.test_scan import equal

SECRET = "do-not-tell"
Application = Callable[[Any, Any], Iterable[bytes]]


class Flaky:
    """Refuses to hand out an object so many times."""

    def __init__(self, application: Application) -> None:
        self.application = application
        self.refused, self.times, self.requests = "", 0, 0

    def __call__(self, environ: Any, start_response: Any) -> Iterable[bytes]:
        self.requests += 1
        if environ["REQUEST_METHOD"] == "GET" and self.times and environ["PATH_INFO"].endswith(self.refused):
            self.times -= 1
            start_response("418 Not Now", [("Content-Length", "0")])
            return [b""]
        return self.application(environ, start_response)


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[str, Flaky]]:
    """The endpoint of a server that forgets everything when it ends."""
    from threading import Thread

    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    flaky = Flaky(DomainDispatcherApplication(create_backend_app))
    serving = make_server("127.0.0.1", 0, flaky, threaded=True)
    thread = Thread(target=serving.serve_forever, daemon=True)
    thread.start()
    yield f"127.0.0.1:{serving.server_port}", flaky
    serving.shutdown()
    thread.join()


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "FIRST_PAUSE", 0.001)
    for name, value in {"ACCESS_KEY_ID": "me", "SECRET_ACCESS_KEY": SECRET, "EC2_METADATA_DISABLED": "true"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)


class Bucket:
    """Objects of one test."""

    def __init__(self, endpoint: str, name: str) -> None:
        self.endpoint, self.name = endpoint, name
        self.options = {"key": "me", "secret": SECRET, "endpoint_url": f"http://{endpoint}"}
        self.files = fs.S3FileSystem(
            endpoint_override=endpoint, scheme="http", region="us-east-1", allow_bucket_creation=True
        )
        self.files.create_dir(name)

    def put(self, key: str, content: bytes) -> None:
        with self.files.open_output_stream(f"{self.name}/{key}") as stream:
            stream.write(content)

    def scan(self, path: str, client: str, columns: Any = None) -> cm.Scan:
        if client == "fsspec":
            return cm.scan_parquet(f"s3://{self.name}/{path}", columns, storage_options=self.options)
        query = f"scheme=http&endpoint_override={self.endpoint}&region=us-east-1"
        return cm.scan_parquet(f"s3://me:{SECRET}@{self.name}/{path}?{query}", columns)


@pytest.fixture
def bucket(server: tuple[str, Flaky], request: pytest.FixtureRequest) -> Bucket:
    return Bucket(server[0], f"test-{abs(hash(request.node.name))}")


def numbers(number: int, factor: float = 1.0) -> bytes:
    sink = pa.BufferOutputStream()
    values = np.arange(10.0) + 10 * number
    parquet.write_table(pa.table({"a": factor * values, "b": values}), sink, row_group_size=4)
    return sink.getvalue().to_pybytes()


@pytest.fixture
def few_objects(bucket: Bucket) -> Bucket:
    for number in range(12):
        bucket.put(f"few/part-{number}.parquet", numbers(number))
    bucket.put("few/_SUCCESS", b"x")
    return bucket


CLIENTS = ["arrow", "fsspec"]


@pytest.mark.parametrize("client", CLIENTS)
def test_the_same_rows_as_in_memory(client: str, bucket: Bucket, parquet_layouts: dict[str, Path]) -> None:
    for path in parquet_layouts["seven"].iterdir():
        bucket.put(f"table/{path.name}", path.read_bytes())
    scan = bucket.scan("table", client, MAPPING)
    batch = as_batch(little_columns())
    assert scan.size == SIZE
    for leaf in scan.leaves(scan.layout, range(scan.layout.num_leaves)):
        equal(leaf.batch, {key: array[leaf.start : leaf.stop] for key, array in batch.items()})
    total = Rows(scan).sum(_total, description="sum")
    assert total.tobytes() == Rows.of_arrays(batch).sum(_total, description="sum").tobytes()


def _total(batch: Any, weights: Any) -> Any:
    return weights @ batch["x"]


@pytest.mark.parametrize("client", CLIENTS)
class TestStores:
    def test_folders_patterns_and_files(self, client: str, few_objects: Bucket) -> None:
        scan = few_objects.scan("few", client)
        np.testing.assert_array_equal(scan.read(0, 120)["a"], np.arange(120.0))
        assert scan.place_of(25) == "row 5 of part-2.parquet (row 25 of all)"
        assert few_objects.scan("few/part-1*.parquet", client).size == 30
        assert few_objects.scan("few/part-11.parquet", client).size == 10
        with pytest.raises(cm.InputError, match="no such file or folder"):
            few_objects.scan("other", client)
        with pytest.raises(cm.InputError, match="no file that matches"):
            few_objects.scan("few/x*", client)

    def test_pickled(self, client: str, few_objects: Bucket) -> None:
        copy = pickle.loads(pickle.dumps(few_objects.scan("few", client)))
        np.testing.assert_array_equal(copy.read(0, 120)["a"], np.arange(120.0))

    def test_keys_are_not_shown(self, client: str, few_objects: Bucket) -> None:
        scan = few_objects.scan("few", client)
        with pytest.raises(cm.InputError) as refused:
            few_objects.scan("few", client, ["none"])
        shown = repr(scan) + repr(scan.files) + repr(scan.fingerprint()) + str(refused.value)
        assert SECRET not in shown
        assert f"s3://{few_objects.name}/few" in shown

    def test_fingerprints_by_etag(self, client: str, few_objects: Bucket) -> None:
        before = few_objects.scan("few", client).fingerprint()
        few_objects.put("few/part-3.parquet", numbers(3))
        assert few_objects.scan("few", client).fingerprint() == before
        few_objects.put("few/part-3.parquet", numbers(3, -1.0))
        assert few_objects.scan("few", client).fingerprint() != before

    def test_changes_are_noticed(self, client: str, few_objects: Bucket) -> None:
        """Within one second, and to the same size."""
        scan = few_objects.scan("few", client)
        few_objects.put("few/part-3.parquet", numbers(3, -1.0))
        with pytest.raises(cm.RunError, match=r"part-3.parquet was written again since the scan"):
            list(scan.leaves(scan.layout, [0]))
        few_objects.put("few/part-3.parquet", numbers(3))
        few_objects.put("few/part-12.parquet", numbers(12))
        with pytest.raises(cm.RunError, match=r"part-\d+.parquet was (added|written again) since the scan"):
            list(scan.leaves(scan.layout, [0]))
        few_objects.files.delete_file(f"{few_objects.name}/few/part-12.parquet")
        few_objects.files.delete_file(f"{few_objects.name}/few/part-3.parquet")
        with pytest.raises(cm.RunError, match=r"part-3.parquet has vanished"):
            list(scan.leaves(scan.layout, [0]))

    def test_failing_requests(self, client: str, few_objects: Bucket, server: tuple[str, Flaky]) -> None:
        scan, flaky = few_objects.scan("few", client), server[1]
        flaky.refused, flaky.times = "part-3.parquet", 2
        np.testing.assert_array_equal(scan.read(0, 120)["a"], np.arange(120.0))
        assert flaky.times == 0
        flaky.times = 10**6
        try:
            with pytest.raises(cm.RunError, match=r"part-3.parquet could not be read in 4 attempts"):
                scan.read(0, 120)
        finally:
            flaky.times = 0


def test_options_without_their_library(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "gcsfs", None)
    with pytest.raises(cm.InputError, match=r"no library for it.*pip install"):
        cm.scan_parquet("gs://bucket/table", storage_options={"token": "anon"})
