#!/usr/bin/env python3
"""Checks that an app lists every service it uses in its dependencies.

An integration of the process form: see docs/specs/process-integration.md. It needs only Python's standard library.
"""

import json
import sys
from urllib.parse import urlparse

QUERY = """
query Apps {
  apps_v1 {
    name
    dependencies { name }
    codeComponents { url }
    quayRepos { org { name } }
    namespaces { cluster { name } }
  }
}
"""

ACCOUNTS = """
query Accounts {
  namespaces_v1 {
    app { name }
    managedExternalResources
    externalResources {
      __typename
      provisioner { __typename ... on AWSAccount_v1 { name } }
    }
  }
}
"""

JENKINS = """
query Jenkins {
  jenkins_configs_v1 {
    app { name }
    instance { name }
  }
}
"""

SETTINGS = """
query Settings {
  app_interface_settings_v1 {
    dependencies {
      type
      services { name }
    }
  }
}
"""


def describe(_request):
    queries = [("Apps", QUERY), ("Accounts", ACCOUNTS), ("Jenkins", JENKINS), ("Settings", SETTINGS)]
    return {
        "name": "service-dependencies",
        "description": "Checks that an app names every service it uses",
        "queries": [{"name": name, "text": text} for name, text in queries],
        "flags": [{"name": "app-name", "dimension": "app", "help": "Only this app; may be given several times"}],
        # It only checks the data: there is nothing to change in a sandbox or outside of it.
        "sandbox": True,
    }


def code_host(url):
    host = urlparse(url).hostname or ""
    for kind in ("github", "gitlab"):
        if host == kind or host.startswith(kind + ".") or host.endswith(kind + ".com"):
            return kind
    return None


def uses(app, accounts, jenkins):
    """The types of services that an app uses, each with the first evidence."""
    found = {}

    def use(kind, why):
        if kind is not None:
            found.setdefault(kind, why)

    for component in app["codeComponents"] or []:
        use(code_host(component["url"]), "the code at " + component["url"])
    for repos in app["quayRepos"] or []:
        use("quay", "the images of " + repos["org"]["name"])
    for namespace in app["namespaces"] or []:
        use("openshift", "a namespace on " + namespace["cluster"]["name"])
    for instance in jenkins.get(app["name"], []):
        use("jenkins", "jobs on " + instance)
    for account in accounts.get(app["name"], []):
        use("aws", "resources in the account " + account)
    return found


def declare(request):
    answers = request["answers"]
    settings = answers["Settings"]["app_interface_settings_v1"] or []
    services = {}
    for entry in [entry for one in settings for entry in one["dependencies"] or []]:
        services.setdefault(entry["type"], []).extend(service["name"] for service in entry["services"])
    accounts, jenkins = {}, {}
    for namespace in answers["Accounts"]["namespaces_v1"] or []:
        if namespace["managedExternalResources"]:
            for resource in namespace["externalResources"] or []:
                name = (resource["provisioner"] or {}).get("name")
                if name:
                    accounts.setdefault(namespace["app"]["name"], []).append(name)
    for config in answers["Jenkins"]["jenkins_configs_v1"] or []:
        jenkins.setdefault(config["app"]["name"], []).append(config["instance"]["name"])
    shards = []
    for index, app in enumerate(answers["Apps"]["apps_v1"] or []):
        shards.append(
            {
                "key": [["app", app["name"]]],
                "state": {
                    "uses": {
                        kind: {"why": why, "services": sorted(services.get(kind, []))}
                        for kind, why in uses(app, accounts, jenkins).items()
                    },
                    "dependencies": sorted(one["name"] for one in app["dependencies"] or []),
                },
                "place": {"query": "Apps", "at": "/apps_v1/%d" % index},
            }
        )
    return {"shards": shards}


def plan(request):
    state = request["state"]
    if state is None:
        return {}
    app = dict(request["key"])["app"]
    faults = []
    for kind, used in sorted(state["uses"].items()):
        if not used["services"]:
            continue
        if not set(used["services"]) & set(state["dependencies"]):
            names = " or ".join("`%s`" % name for name in used["services"])
            faults.append(
                {
                    "text": "`%s` uses %s (%s) and does not name it" % (app, kind, used["why"]),
                    "hint": "add %s to its `dependencies`" % names,
                }
            )
    return {"faults": faults}


def apply(_request):
    raise SystemExit("there is nothing to apply: this integration only checks")


def main():
    phases = {"describe": describe, "declare": declare, "plan": plan, "apply": apply}
    phase = phases[sys.argv[1]]
    json.dump(phase(json.load(sys.stdin)), sys.stdout)


if __name__ == "__main__":
    main()
