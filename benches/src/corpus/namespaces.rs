//! Namespaces, a quarter of all documents: cluster, resources, network policies.

use super::clusters;
use super::document_writer::DocumentWriter;
use super::layout::CorpusLayout;
use super::random::CorpusRng;
use super::resources::{self, ResourceKind};
use super::tree::CorpusTree;

pub(super) fn write(world: &CorpusLayout, tree: &mut CorpusTree) {
    for index in 0..world.census.namespaces {
        tree.add(format!("data{}", world.namespace_path(index)), namespace(world, index));
    }
}

fn namespace(world: &CorpusLayout, index: usize) -> String {
    let mut random = world.random("namespace", index);
    let app = world.app_of(index);
    let mut page = DocumentWriter::new("/openshift/namespace-1.yml", &mut random);
    page.labels(&mut random, &CorpusLayout::app_name(app));
    page.blank();
    page.line(0, &format!("name: {}", world.namespace_name(index)));
    page.description(0, &mut random);
    if random.chance(1) {
        page.line(0, "delete: true");
    }
    page.blank();
    page.reference(0, "cluster", &CorpusLayout::cluster_path(random.below(world.census.clusters)));
    page.reference(0, "app", &CorpusLayout::app_path(app));
    page.reference(0, "environment", &world.environment_path(world.environment_of(index)));
    page.blank();
    if random.chance(70) {
        page.reference(
            0,
            "limitRanges",
            &clusters::limit_range_path(random.below(world.census.limit_ranges)),
        );
    }
    if random.chance(60) {
        page.reference(0, "quota", &clusters::quota_path(random.below(world.census.quotas)));
    }
    if random.chance(50) {
        page.line(0, "managedRoles: true");
    }
    let wanted = random.below(4);
    let neighbours = random.distinct(wanted, world.census.namespaces);
    let neighbours = neighbours.into_iter().map(|other| world.namespace_path(other)).collect::<Vec<_>>();
    page.references(0, "networkPoliciesAllow", &neighbours);
    if random.chance(60) {
        page.references(0, "sharedResources", &[clusters::shared_path(random.below(world.census.shared))]);
    }
    if random.chance(10) {
        page.comment(0, &mut random);
    }
    page.list(0, "managedResourceTypes", &["ConfigMap", "Secret", "Service", "Route"]);
    page.blank();
    objects(world, index, &mut page, &mut random);
    if random.chance(30) {
        cloud_resources(world, index, &mut page, &mut random);
    }
    page.finish()
}

/// `openshiftResources`: the files of the namespace, a shared template, and secrets.
fn objects(world: &CorpusLayout, index: usize, page: &mut DocumentWriter, random: &mut CorpusRng) {
    let name = CorpusLayout::app_name(world.app_of(index));
    page.line(0, "openshiftResources:");
    // The variables are anchored here and merged below.
    page.line(0, "- provider: resource-template");
    page.line(2, "type: jinja2");
    page.line(2, &format!("path: {}", resources::shared_template(random)));
    let anchored = random.chance(30);
    page.line(2, if anchored { "variables: &variables" } else { "variables:" });
    page.line(4, &format!("service: {name}"));
    page.line(4, &format!("replicas: {}", random.between(1, 9)));
    page.line(4, &format!("debug: {}", random.pick(&["off", "false", "on"])));
    for (path, kind) in resources::of_namespace(world, index) {
        page.line(0, &format!("- provider: {}", kind.provider()));
        page.line(2, &format!("path: {path}"));
        match kind {
            ResourceKind::Template => {
                page.line(2, "type: extracurlyjinja2");
                page.line(2, "variables:");
                if anchored {
                    page.line(4, "<<: *variables");
                }
                page.line(4, &format!("port: {}", random.between(8000, 8099)));
            }
            ResourceKind::Route if random.chance(50) => {
                page.line(2, &format!("vault_tls_secret_path: tenants/{name}/tls"));
                page.line(2, &format!("vault_tls_secret_version: {}", random.between(1, 20)));
            }
            ResourceKind::Rule => page.line(2, "type: resource"),
            ResourceKind::Manifest | ResourceKind::Route => {}
        }
    }
    for secret in 0..random.between(2, 6) {
        let path = format!("tenants/{name}/{index}/secret-{secret}");
        let version = random.between(1, 40);
        match random.below(10) {
            0 | 1 => {
                page.line(0, "- provider: vault-secret");
                page.line(2, &format!("path: {path}"));
                page.line(2, &format!("version: {version}"));
                page.line(2, &format!("name: {name}-{secret}"));
                page.line(2, "annotations: {example.com/rotate: \"true\"}");
            }
            2 | 3 => {
                page.line(0, "- provider: vault-secret");
                page.line(2, &format!("path: \"{path}\""));
                page.line(2, &format!("version: {version}"));
            }
            _ => page.line(0, &format!("- {{provider: vault-secret, path: {path}, version: {version}}}")),
        }
    }
}

/// `externalResources`: databases, buckets, queues and users of one account.
fn cloud_resources(world: &CorpusLayout, index: usize, page: &mut DocumentWriter, random: &mut CorpusRng) {
    page.blank();
    page.line(0, "managedExternalResources: true");
    page.line(0, "externalResources:");
    page.line(0, "- provider: aws");
    page.reference(2, "provisioner", &CorpusLayout::account_path(random.below(world.census.accounts)));
    page.line(2, "resources:");
    for number in 0..random.between(1, 3) {
        let identifier = format!("ns{index}-{number}");
        match random.below(4) {
            0 => {
                page.line(2, "- provider: rds");
                page.line(4, &format!("identifier: db-{identifier}"));
                page.line(4, "defaults: /terraform/rds-defaults.yml");
                page.line(4, "overrides:");
                page.line(6, "instance_class: db.t3.medium");
                page.line(6, &format!("allocated_storage: {}", random.between(2, 50) * 10));
            }
            1 => {
                page.line(2, "- provider: s3");
                page.line(4, &format!("identifier: bucket-{identifier}"));
                page.line(4, "defaults: /terraform/s3-defaults.yml");
                page.line(4, "region: eu-central-1");
            }
            2 => {
                page.line(2, "- provider: sqs");
                page.line(4, &format!("identifier: queue-{identifier}"));
                page.line(4, "specs:");
                page.line(4, "- defaults: /terraform/sqs-defaults.yml");
                page.line(6, &format!("queues: [{{key: QUEUE, value: queue-{identifier}}}]"));
            }
            _ => {
                page.line(2, "- provider: aws-iam-service-account");
                page.line(4, &format!("identifier: account-{identifier}"));
                page.line(4, "policies: [AmazonSQSReadOnlyAccess]");
            }
        }
        page.line(4, &format!("output_resource_name: output-{identifier}"));
    }
}
