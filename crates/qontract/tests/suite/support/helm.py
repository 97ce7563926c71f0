"""Renders the chart in deploy/chart with Helm's own library.

Stdin has a JSON list of actions, and stdout gets a JSON list with the result of each action:

- {"values": …} returns the default values and their schema.
- {"render": VALUES, "capabilities": {"kube_version": …, "api_versions": […]}} returns the objects, rendered without a
  cluster.
- {"plan": VALUES} renders with the capabilities of the cluster.
- {"install": VALUES}, {"upgrade": VALUES}, {"uninstall": true} change the cluster.

The result of an action that fails is {"error": …}.
"""

import json
import sys

import helm_python as helm
import yaml
from helm_python import _native

CHART, RELEASE, NAMESPACE, KUBECONFIG = sys.argv[1:5]


def objects(manifest):
    return [one for one in yaml.safe_load_all(manifest) if one]


def render(chart, action):
    options = {"name": RELEASE, "namespace": NAMESPACE, **action.get("capabilities", {})}
    # `Chart.render` has no parameters for capabilities.
    rendered = _native.call_string(
        "helm_render", chart._raw(), json.dumps(action["render"]), json.dumps(options)
    )
    files = {path: text for path, text in json.loads(rendered).items() if not path.endswith("NOTES.txt")}
    return [one for path in sorted(files) for one in objects(files[path])]


def run(chart, action):
    if "values" in action:
        return {"values": chart.values, "schema": chart.schema}
    if "render" in action:
        # `helm install` checks the values, too.
        chart.validate_schema(action["render"])
        return render(chart, action)
    with helm.Config(kubeconfig_path=KUBECONFIG, namespace=NAMESPACE) as cluster:
        if "plan" in action:
            release = cluster.install(chart, RELEASE, action["plan"], namespace=NAMESPACE, dry_run="server")
        elif "install" in action:
            release = cluster.install(chart, RELEASE, action["install"], namespace=NAMESPACE)
        elif "upgrade" in action:
            release = cluster.upgrade(chart, RELEASE, action["upgrade"], namespace=NAMESPACE)
        else:
            cluster.uninstall(RELEASE)
            return []
        return objects(release["manifest"])


results = []
with helm.Chart.load(CHART) as chart:
    for action in json.load(sys.stdin):
        try:
            results.append(run(chart, action))
        except helm.HelmError as error:
            results.append({"error": str(error)})
json.dump(results, sys.stdout)
