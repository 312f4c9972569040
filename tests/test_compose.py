"""What `docker compose` starts is open to this machine alone, and Qdrant answers nobody without its key."""

import re

import pytest
import yaml
from conftest import ROOT

from citerec.ground.settings import Settings

FIELDS = {f"CITEREC_{name}".upper() for name in Settings.model_fields}

@pytest.mark.parametrize("name", ["docker-compose.yml", "docker-compose.cluster.yml"])
def test_qdrant_has_a_key(name):
    """Ports belong to this machine; each Qdrant demands a key from the environment and answers no web page."""
    services = yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))["services"]
    for service, described in services.items():
        assert all(port.startswith("127.0.0.1:") for port in described.get("ports", [])), service
    nodes = [described["environment"] for described in services.values() if "qdrant/" in described.get("image", "")]
    assert nodes
    key = services["citerec"]["environment"]["CITEREC_QDRANT_API_KEY"]
    assert key.startswith("${CITEREC_QDRANT_API_KEY:?")
    for environment in nodes:
        assert environment["QDRANT__SERVICE__API_KEY"] == key
        assert environment["QDRANT__SERVICE__ENABLE_CORS"] == "false"
    # a key never travels in the clear to another host: citerec shares the network of the node that it asks
    assert services["citerec"]["environment"]["CITEREC_QDRANT_URL"] == "http://127.0.0.1:6333"
    assert services["citerec"]["network_mode"].removeprefix("service:") in services


def environments(name):
    """The services of a file, with the variables that each gets."""
    services = yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))["services"]
    return services, {service: described.get("environment", {}) for service, described in services.items()}


@pytest.mark.parametrize("name", ["docker-compose.yml", "docker-compose.cluster.yml"])
def test_every_variable_is_a_setting(name):
    """No variable of citerec is misspelled, here or in what a user is told to export."""
    _, given = environments(name)
    text = (ROOT / name).read_text(encoding="utf-8")
    named = {variable for variables in given.values() for variable in variables} | {*re.findall(r"CITEREC_\w+", text)}
    ours = {variable for variable in named if variable.startswith("CITEREC_")} - {"CITEREC_SNAPSHOT"}  # a folder
    assert ours and not ours - FIELDS


def test_a_model_on_the_host_is_reached():
    """Service and page get the language model that the user sets, and the network has a name for the host."""
    services, given = environments("docker-compose.yml")
    for service in ("citerec", "app"):
        assert services[service]["network_mode"] == "service:qdrant"
        for field in ("llm", "llm_base_url", "llm_model", "llm_api_key", "preset"):
            assert given[service][f"CITEREC_{field}".upper()] is None  # passed on where it is set, else left out
    assert services["qdrant"]["extra_hosts"] == ["host.docker.internal:host-gateway"]
    published = {port.rpartition(":")[2] for port in services["qdrant"]["ports"]}
    assert published == {"6333", "8000", "8866"}


def test_the_image_holds_the_page():
    """What the page needs is installed in the image, and its port is the one that is published."""
    docker = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    services, _ = environments("docker-compose.yml")
    assert "app" in re.search(r"ARG EXTRAS=(.*)", docker)[1].split(",")
    assert services["app"]["command"][:2] == ["app", "--page"] and "8866" in str(services["app"]["healthcheck"])
