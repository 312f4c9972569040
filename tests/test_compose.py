"""What `docker compose` starts is open to this machine alone, and Qdrant answers nobody without its key."""

import pytest
import yaml
from conftest import ROOT


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
