//! Tests of the test cluster: the server works, and nothing of it is left behind.

use qontract_testkit::cluster::{Api, TestCluster, User, shared, unique_name};
use qontract_testkit::eventually;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

const DEFINITION: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: KIND.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: KIND, plural: KIND, singular: KIND}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, properties: {size: {type: integer}}}}
";

/// Creates a namespace for this test.
fn namespace(api: &Api) -> String {
    let name = unique_name("testcluster");
    api.kubectl(&["create", "namespace", &name], "").text();
    name
}

/// The command lines of all processes that contain the directory of this server.
fn processes(api: &Api) -> Vec<String> {
    let folder = api.kubeconfig.parent().expect("it is in the directory").display().to_string();
    let output = Command::new("ps").args(["-A", "-o", "args"]).output().expect("`ps` runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().filter(|line| line.contains(&folder)).map(ToOwned::to_owned).collect()
}

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn a_namespace_is_created_and_removed() {
    let api = shared();
    let name = namespace(api);
    api.kubectl(&["-n", &name, "create", "configmap", "a"], "").text();
    // waits until the namespace controller has removed it
    api.kubectl(&["delete", "namespace", &name, "--timeout=60s"], "").text();
    let complaint = api.kubectl(&["get", "namespace", &name], "").error_text();
    assert!(complaint.contains("NotFound"), "{complaint}");
}

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn the_plain_user_may_do_nothing() {
    let complaint = shared().kubectl_as(User::Plain, &["get", "namespaces"], "").error_text();
    assert!(complaint.contains("(Forbidden)") && complaint.contains(r#"User "plain""#), "{complaint}");
}

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn custom_resources_are_validated_by_their_definition() {
    let api = shared();
    let name = namespace(api);
    let kind = unique_name("thing").replace('-', "");
    api.kubectl(&["apply", "-f", "-"], &DEFINITION.replace("KIND", &kind)).text();
    let definition = format!("crd/{kind}.example.com");
    api.kubectl(&["wait", "--for=condition=Established", "--timeout=60s", &definition], "").text();
    let resource = format!("{kind}.example.com");
    eventually("it is served", || api.kubectl(&["-n", &name, "get", &resource], "").ok.then_some(()));
    let object = |size: &str| {
        format!("apiVersion: example.com/v1\nkind: {kind}\nmetadata: {{name: a}}\nspec: {{size: {size}}}\n")
    };
    let create = |size: &str| api.kubectl(&["-n", &name, "create", "-f", "-"], &object(size));
    let complaint = create("large").error_text();
    assert!(complaint.contains("spec.size"), "{complaint}");
    create("3").text();
    let size = api.kubectl(&["-n", &name, "get", &resource, "a", "-o", "jsonpath={.spec.size}"], "").text();
    assert_eq!(size, "3");
    api.kubectl(&["delete", &definition], "").text();
}

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn a_deployment_creates_a_replica_set_and_pods() {
    let api = shared();
    let name = namespace(api);
    let kubectl = |arguments: &[&str]| api.kubectl(&[&["-n", &name], arguments].concat(), "").text();
    kubectl(&["create", "deployment", "a", "--image=nothing", "--replicas=2"]);
    let pods = eventually("two pods", || {
        let owners = "jsonpath={.items[*].metadata.ownerReferences[0].kind}";
        let owners = kubectl(&["get", "pods", "-l", "app=a", "-o", owners]);
        (owners.split_whitespace().count() == 2).then_some(owners)
    });
    assert_eq!(pods, "ReplicaSet ReplicaSet");
    assert_eq!(kubectl(&["get", "replicasets", "-o", "jsonpath={.items[*].spec.replicas}"]), "2");
}

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn objects_outlive_a_restart_and_nothing_outlives_the_cluster() {
    let mut cluster = TestCluster::start();
    let api = cluster.api.clone();
    let name = namespace(&api);
    let certificate = std::fs::read(&api.ca).expect("the server made it");

    cluster.stop_api_server();
    let complaint = api.kubectl(&["get", "namespace", &name], "").error_text();
    assert!(complaint.contains("refused"), "{complaint}");
    cluster.start_api_server();
    api.kubectl(&["get", "namespace", &name], "").text();
    cluster.restart_api_server();
    api.kubectl(&["get", "namespace", &name], "").text();
    assert_eq!(std::fs::read(&api.ca).expect("it is still there"), certificate);

    assert_eq!(processes(&api).iter().filter(|line| !line.starts_with("sh ")).count(), 3);
    drop(cluster);
    assert_eq!(processes(&api), [""; 0]);
    assert!(!api.ca.exists());
}

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn nothing_outlives_a_process_that_is_killed() {
    let mut holder = Command::new(env!("CARGO_BIN_EXE_testcluster"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let lines = BufReader::new(holder.stdout.take().unwrap()).lines().map(Result::unwrap);
    let lines: Vec<String> = lines.take_while(|line| !line.contains("KUBECONFIG")).collect();
    let find = |name: &str| {
        let value = lines.iter().find_map(|line| line.strip_prefix(&format!("export {name}='")));
        value.unwrap_or_else(|| panic!("{name} is printed: {lines:?}")).trim_end_matches('\'').to_owned()
    };
    let api = Api { kubeconfig: find("QONTRACT_KUBE_CONFIG").into(), ..shared().clone() };
    assert!(processes(&api).len() >= 3);
    holder.kill().expect("it is killed");
    holder.wait().expect("it is gone");
    eventually("its servers are gone", || processes(&api).is_empty().then_some(()));
    eventually("its folder is gone", || (!api.kubeconfig.exists()).then_some(()));
}
