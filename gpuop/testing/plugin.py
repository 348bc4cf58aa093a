"""The pytest plugin: the fixture `gpuop_device`, for tests that run on several devices.

pytest loads it wherever gpuop is installed, so it imports the package only for tests that use the fixture.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

HELP = """what the tests that use the fixture `gpuop_device` run on: "best" (the device in use), "all", "first-per-api",
"none" (they are skipped), or names with commas between"""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("gpuop").addoption("--gpuop-devices", default="best", metavar="NAMES", help=HELP)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "gpuop_devices(*names): skip this test on other devices; 'cuda' is any of CUDA's"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize tests that use `gpuop_device`, through the name that it depends on."""
    if "gpuop_device_name" in metafunc.fixturenames:
        names = _names(metafunc.config.getoption("--gpuop-devices"))
        if names is not None:
            metafunc.parametrize("gpuop_device_name", names, scope="session")


def _names(option: str) -> list[str] | None:
    """The names of devices; None: the one in use."""
    if option in ("best", "none"):
        return None
    if option not in ("all", "first-per-api"):
        return option.split(",")
    import gpuop

    names = [device.name for device in gpuop.devices()]
    if option == "first-per-api":
        return list({name.split(":")[0]: name for name in reversed(names)}.values())[::-1]
    return names


@pytest.fixture(scope="session")
def gpuop_device_name() -> str:
    """The name of the device that tests run on; "" for the one in use."""
    return ""


@pytest.fixture
def gpuop_device(gpuop_device_name: str, request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of the device that the test runs on, which is in use during the test."""
    if request.config.getoption("--gpuop-devices") == "none":
        pytest.skip("--gpuop-devices=none")
    import gpuop

    chosen = gpuop_device_name or gpuop.device().name
    for mark in request.node.iter_markers("gpuop_devices"):
        if not any(chosen == name or chosen.startswith(f"{name}:") for name in mark.args):
            pytest.skip(f"this test is for {', '.join(mark.args)}, not for {chosen}")
    with gpuop.use_device(chosen) as backend:
        yield backend.name
