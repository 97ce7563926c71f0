//! Clusters, and documents shared by namespaces: quotas, limit ranges, shared resources.

use super::document_writer::DocumentWriter;
use super::layout::CorpusLayout;
use super::singletons::QUIET_CLUSTER;
use super::tree::CorpusTree;

pub(super) fn write(world: &CorpusLayout, tree: &mut CorpusTree) {
    for index in 0..world.census.clusters {
        tree.add(format!("data{}", CorpusLayout::cluster_path(index)), cluster(world, index));
    }
    for index in 0..world.census.quotas {
        tree.add(format!("data{}", quota_path(index)), quota(world, index));
    }
    for index in 0..world.census.limit_ranges {
        tree.add(format!("data{}", limit_range_path(index)), limit_range(world, index));
    }
    for index in 0..world.census.shared {
        tree.add(format!("data{}", shared_path(index)), shared(world, index));
    }
}

pub(super) fn quota_path(index: usize) -> String {
    format!("/openshift/quotas/quota-{index}.yml")
}

pub(super) fn limit_range_path(index: usize) -> String {
    format!("/openshift/limitranges/limits-{index}.yml")
}

pub(super) fn shared_path(index: usize) -> String {
    format!("/openshift/shared-resources/shared-{index}.yml")
}

fn cluster(world: &CorpusLayout, index: usize) -> String {
    let mut random = world.random("cluster", index);
    let name = CorpusLayout::cluster_name(index);
    let mut page = DocumentWriter::new("/openshift/cluster-1.yml", &mut random);
    page.labels(&mut random, "cluster");
    page.line(0, &format!("name: {name}"));
    page.description(0, &mut random);
    for (key, host) in [
        ("consoleUrl", "console"),
        ("prometheusUrl", "prometheus"),
        ("alertmanagerUrl", "alertmanager"),
        ("grafanaUrl", "grafana"),
    ] {
        page.line(0, &format!("{key}: https://{host}.{name}.example.com"));
    }
    page.line(0, &format!("serverUrl: https://api.{name}.example.com:6443"));
    page.line(0, &format!("elbFQDN: elb.apps.{name}.example.com"));
    page.line(0, &format!("internal: {}", random.chance(30)));
    page.line(0, "auth:");
    page.line(0, "- service: github-org-team");
    page.line(2, "org: corpus");
    page.line(2, &format!("team: {name}-users"));
    if random.chance(50) {
        page.line(0, "- {service: oidc, name: sso, issuer: 'https://sso.example.com'}");
    }
    page.secret(0, "automationToken", &format!("platform/clusters/{name}"), "token");
    page.list(0, "managedGroups", &["developers", "sre"]);
    page.line(0, "network:");
    page.line(2, "type: OVNKubernetes");
    page.line(2, &format!("vpc: 10.{}.0.0/16", index % 250));
    page.line(2, "service: 172.30.0.0/16");
    page.line(2, "pod: 10.128.0.0/14");
    match random.below(10) {
        0 => page.reference(0, "disable", QUIET_CLUSTER),
        1 => {
            page.comment(0, &mut random);
            page.line(0, "disable:");
            page.list(2, "integrations", &["openshift-limitranges", "terraform-resources"]);
        }
        _ => {}
    }
    page.finish()
}

fn quota(world: &CorpusLayout, index: usize) -> String {
    let mut random = world.random("quota", index);
    let size = random.between(1, 16);
    let mut page = DocumentWriter::new("/openshift/quota-1.yml", &mut random);
    page.line(0, "labels: {}");
    page.line(0, &format!("name: quota-{index}"));
    page.description(0, &mut random);
    page.line(0, "quotas:");
    page.line(0, "- name: compute");
    page.line(2, "resources:");
    page.line(4, &format!("limits: {{cpu: \"{}\", memory: {}Gi}}", size * 2, size * 4));
    page.line(4, &format!("requests: {{cpu: \"{size}\", memory: {}Gi}}", size * 2));
    page.line(2, "scopes: [NotTerminating]");
    page.line(0, "- name: objects");
    page.line(2, "resources:");
    page.line(4, &format!("pods: {}", size * 10));
    page.finish()
}

fn limit_range(world: &CorpusLayout, index: usize) -> String {
    let mut random = world.random("limits", index);
    let mut page = DocumentWriter::new("/openshift/limitrange-1.yml", &mut random);
    page.line(0, "labels: {}");
    page.line(0, &format!("name: limits-{index}"));
    page.description(0, &mut random);
    page.line(0, "limits:");
    page.line(0, "- type: Container");
    page.line(
        2,
        &format!(
            "default: {{cpu: {}m, memory: {}Mi}}",
            random.between(1, 9) * 100,
            random.between(1, 8) * 128
        ),
    );
    page.line(2, "defaultRequest:");
    page.line(4, "cpu: 100m");
    page.line(4, "memory: 128Mi");
    page.finish()
}

fn shared(world: &CorpusLayout, index: usize) -> String {
    let mut random = world.random("shared", index);
    let mut page = DocumentWriter::new("/openshift/shared-resources-1.yml", &mut random);
    page.line(0, "labels: {}");
    page.line(0, &format!("name: shared-{index}"));
    page.description(0, &mut random);
    page.line(0, "openshiftResources:");
    page.line(0, "- provider: resource");
    page.line(2, "path: /shared/ca-bundle.yaml");
    page.line(0, "- provider: vault-secret");
    page.line(2, &format!("name: pull-{index}"));
    page.line(2, &format!("path: platform/pull/{index}"));
    page.line(2, &format!("version: {}", random.between(1, 30)));
    page.line(2, "type: kubernetes.io/dockerconfigjson");
    page.finish()
}
