"""Checks of the Vault emulator with hvac, one function each. Arguments: the server URL, the root token."""

import sys

import hvac
from hvac import exceptions

SERVER, ROOT = sys.argv[1:]


def client(token=None):
    return hvac.Client(url=SERVER, token=token)


def refused(kind, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except kind as error:
        return error
    raise AssertionError(f"{call} succeeded")


def login_by_role():
    one = client()
    answer = one.auth.approle.login(role_id="role", secret_id="password")
    assert answer["auth"]["lease_duration"] == 600 and answer["auth"]["renewable"], answer
    assert one.token == answer["auth"]["client_token"] and one.is_authenticated()
    error = refused(exceptions.InvalidRequest, client().auth.approle.login, "role", "wrong")
    assert "invalid role or secret ID" in str(error), error


def login_by_kubernetes():
    one = client()
    answer = one.auth.kubernetes.login(role="pod", jwt="a.b.c")
    assert one.token == answer["auth"]["client_token"] and one.is_authenticated()
    refused(exceptions.Forbidden, client().auth.kubernetes.login, "pod", "x.y.z")
    refused(exceptions.InvalidRequest, client().auth.kubernetes.login, "nobody", "a.b.c")


def tokens_are_looked_up_and_renewed():
    one = client()
    one.auth.approle.login("role", "password")
    data = one.auth.token.lookup_self()["data"]
    assert data["id"] == one.token and data["ttl"] == 600 and data["renewable"], data
    renewed = one.auth.token.renew_self()["auth"]
    assert renewed["client_token"] == one.token and renewed["lease_duration"] == 600, renewed
    root = client(ROOT).auth.token.lookup_self()["data"]
    assert root["ttl"] == 0 and not root["renewable"], root
    assert not client("wrong").is_authenticated()


def it_is_not_sealed():
    assert client().sys.is_initialized() is not None
    assert not client().sys.is_sealed()


def secrets_have_versions():
    kv = client(ROOT).secrets.kv.v2
    first = kv.create_or_update_secret("a/b", {"x": "1"})
    second = kv.create_or_update_secret("a/b", {"x": "2"})
    assert (first["data"]["version"], second["data"]["version"]) == (1, 2)
    latest = kv.read_secret_version("a/b", raise_on_deleted_version=True)["data"]
    assert latest["data"] == {"x": "2"} and latest["metadata"]["version"] == 2, latest
    old = kv.read_secret_version("a/b", version=1, raise_on_deleted_version=True)["data"]
    assert old["data"] == {"x": "1"} and not old["metadata"]["destroyed"], old
    refused(exceptions.InvalidPath, kv.read_secret_version, "a/c", raise_on_deleted_version=True)
    refused(exceptions.InvalidPath, kv.read_secret_version, "a/b", version=9, raise_on_deleted_version=True)


def writes_have_a_precondition():
    kv = client(ROOT).secrets.kv.v2
    kv.create_or_update_secret("c", {"x": "1"}, cas=0)
    error = refused(exceptions.InvalidRequest, kv.create_or_update_secret, "c", {"x": "2"}, cas=0)
    assert "check-and-set parameter did not match" in str(error), error
    assert kv.create_or_update_secret("c", {"x": "2"}, cas=1)["data"]["version"] == 2


def versions_are_deleted_and_undeleted():
    kv = client(ROOT).secrets.kv.v2
    kv.create_or_update_secret("d", {"x": "1"})
    kv.delete_latest_version_of_secret("d")
    refused(exceptions.InvalidPath, kv.read_secret_version, "d", raise_on_deleted_version=True)
    gone = kv.read_secret_version("d", raise_on_deleted_version=False)["data"]
    assert gone["data"] is None and gone["metadata"]["deletion_time"] and gone["metadata"]["version"] == 1, gone
    kv.undelete_secret_versions("d", [1])
    assert kv.read_secret_version("d", raise_on_deleted_version=True)["data"]["data"] == {"x": "1"}
    kv.delete_secret_versions("d", [1])
    kv.undelete_secret_versions("d", [1])
    kv.destroy_secret_versions("d", [1])
    refused(exceptions.InvalidPath, kv.read_secret_version, "d", raise_on_deleted_version=False)
    assert kv.read_secret_metadata("d")["data"]["versions"]["1"]["destroyed"]


def metadata_is_read_and_deleted():
    kv = client(ROOT).secrets.kv.v2
    for number in range(12):
        kv.create_or_update_secret("e/f", {"x": str(number)})
    data = kv.read_secret_metadata("e/f")["data"]
    assert data["current_version"] == 12 and data["oldest_version"] == 3, data
    assert sorted(map(int, data["versions"])) == list(range(3, 13)), data
    assert kv.list_secrets("e")["data"]["keys"] == ["f"]
    assert "e/" in kv.list_secrets("")["data"]["keys"]
    kv.delete_metadata_and_all_versions("e/f")
    refused(exceptions.InvalidPath, kv.read_secret_metadata, "e/f")
    refused(exceptions.InvalidPath, kv.list_secrets, "e")


def the_engine_is_reported():
    assert client(ROOT).secrets.kv.v2.read_configuration()["data"]["max_versions"] == 0
    data = client(ROOT).read("sys/internal/ui/mounts/secret/a")["data"]
    assert data["path"] == "secret/" and data["options"]["version"] == "2", data


def unknown_tokens_are_refused():
    kv = client("wrong").secrets.kv.v2
    refused(exceptions.Forbidden, kv.read_secret_version, "a/b", raise_on_deleted_version=True)
    refused(exceptions.Forbidden, client().secrets.kv.v2.create_or_update_secret, "a/b", {})


CHECKS = [
    login_by_role,
    login_by_kubernetes,
    tokens_are_looked_up_and_renewed,
    it_is_not_sealed,
    secrets_have_versions,
    writes_have_a_precondition,
    versions_are_deleted_and_undeleted,
    metadata_is_read_and_deleted,
    the_engine_is_reported,
    unknown_tokens_are_refused,
]

for check in CHECKS:
    check()
print(f"{len(CHECKS)} checks")
