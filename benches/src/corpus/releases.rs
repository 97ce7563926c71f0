//! Saas files, their targets, integrations and query validations.

use super::document_writer::DocumentWriter;
use super::layout::CorpusLayout;
use super::prose;
use super::random::CorpusRng;
use super::singletons::{AUTHENTICATION, PIPELINES, QUAY_ORG, SLACK};
use super::tree::CorpusTree;

/// Names of integrations; further integrations get a number.
const INTEGRATIONS: [&str; 10] = [
    "openshift-namespaces",
    "openshift-resources",
    "openshift-vault-secrets",
    "openshift-routes",
    "openshift-rolebindings",
    "openshift-limitranges",
    "terraform-resources",
    "openshift-saas-deploy",
    "integrations-manager",
    "query-validator",
];

pub(super) fn write(world: &CorpusLayout, tree: &mut CorpusTree) {
    for index in 0..world.census.saas_files {
        tree.add(format!("data{}", world.saas_path(index)), saas_file(world, index));
    }
    for index in 0..world.census.saas_targets {
        tree.add(format!("data{}", world.target_path(index)), target_file(world, index));
    }
    for index in 0..world.census.integrations {
        let name = integration_name(index);
        tree.add(format!("data/integrations/{name}.yml"), integration(world, index, &name));
    }
    for index in 0..world.census.query_validations {
        tree.add(format!("data/queries/queries-{index}.yml"), query_validation(world, index));
    }
}

fn saas_file(world: &CorpusLayout, index: usize) -> String {
    let mut random = world.random("saas", index);
    let app = index % world.census.apps;
    let name = CorpusLayout::app_name(app);
    let mut page = DocumentWriter::new("/app-sre/saas-file-2.yml", &mut random);
    page.line(0, "labels: {}");
    page.line(0, &format!("name: saas-{index}-{}", prose::name(app)));
    page.line(0, &format!("displayName: 'Deployments of {name}'"));
    page.description(0, &mut random);
    page.reference(0, "app", &CorpusLayout::app_path(app));
    page.reference(0, "pipelinesProvider", PIPELINES);
    page.reference(0, "authentication", AUTHENTICATION);
    page.line(0, "slack:");
    page.reference(2, "workspace", SLACK);
    page.line(2, &format!("channel: deploys-{app}"));
    page.line(0, &format!("skipSuccessfulDeployNotifications: {}", random.chance(50)));
    page.list(0, "managedResourceTypes", &["Deployment", "Service", "CronJob"]);
    page.list(0, "imagePatterns", &["registry.example.com/corpus"]);
    page.line(0, "parameters: &defaults");
    page.line(2, "LOG_LEVEL: info");
    page.line(2, &format!("IMAGE: registry.example.com/corpus/{name}"));
    page.line(2, &format!("TIMEOUT: {}", random.between(10, 90)));
    page.line(2, &format!("TELEMETRY: https://telemetry.example.com/{name}"));
    page.line(2, "CPU_REQUEST: 100m");
    page.line(2, "MEMORY_LIMIT: 512Mi");
    page.line(2, &format!("TRACE_RATIO: 0.{}", random.between(1, 9)));
    page.blank();
    page.line(0, "resourceTemplates:");
    for template in 0..random.between(1, 2) {
        page.line(0, &format!("- name: template-{template}"));
        page.line(2, &format!("url: https://gitlab.example.com/tenants/{name}-{template}"));
        page.line(2, "path: /deploy/template.yml");
        page.line(2, "targets:");
        for (step, namespace) in world.namespaces_of(app).into_iter().enumerate() {
            page.line(2, &format!("- name: step-{step}"));
            page.reference(4, "namespace", &world.namespace_path(namespace));
            target(&mut page, &mut random, &format!("{index}-{template}"), step);
        }
        if template == 0 {
            for target in (index..world.census.saas_targets).step_by(world.census.saas_files) {
                page.line(2, &format!("- $ref: {}", world.target_path(target)));
            }
        }
    }
    page.finish()
}

/// The ref of a target and its promotion: the first step follows the branch, each later step subscribes to
/// the previous one.
fn target(page: &mut DocumentWriter, random: &mut CorpusRng, channel: &str, step: usize) {
    if step == 0 {
        page.line(4, "ref: main");
    } else {
        page.line(4, &format!("ref: '{}'", random.commit()));
    }
    page.line(4, "promotion:");
    if step > 0 {
        page.line(6, &format!("auto: {}", random.chance(70)));
        page.line(6, &format!("subscribe: [deployed-{channel}-{}]", step - 1));
    }
    page.line(6, "publish:");
    page.line(6, &format!("- deployed-{channel}-{step}"));
    page.line(4, "parameters:");
    page.line(6, "<<: *defaults");
    page.line(6, &format!("REPLICAS: {}", random.between(1, 6)));
    if random.chance(30) {
        page.line(4, "images:");
        page.line(4, &format!("- {{org: {{$ref: {QUAY_ORG}}}, name: image}}"));
    }
}

fn target_file(world: &CorpusLayout, index: usize) -> String {
    let mut random = world.random("target", index);
    let app = index % world.census.saas_files % world.census.apps;
    let namespaces = world.namespaces_of(app);
    let mut page = DocumentWriter::new("/app-sre/saas-file-target-1.yml", &mut random);
    page.line(0, &format!("name: own-file-{index}"));
    page.reference(0, "namespace", &world.namespace_path(namespaces[random.below(namespaces.len())]));
    page.line(0, &format!("ref: '{}'", random.commit()));
    page.line(0, "promotion:");
    page.line(2, &format!("soakDays: {}", random.below(5)));
    page.line(2, &format!("subscribe: [deployed-{}-0-0]", index % world.census.saas_files));
    page.line(0, "parameters:");
    page.line(2, &format!("REPLICAS: {}", random.between(1, 6)));
    page.line(2, "MODE: \"strict\"");
    page.finish()
}

fn integration_name(index: usize) -> String {
    let name = INTEGRATIONS[index % INTEGRATIONS.len()];
    match index / INTEGRATIONS.len() {
        0 => name.to_owned(),
        more => format!("{name}-{more}"),
    }
}

fn integration(world: &CorpusLayout, index: usize, name: &str) -> String {
    let mut random = world.random("integration", index);
    let mut page = DocumentWriter::new("/app-sre/integration-1.yml", &mut random);
    page.line(0, "labels: {}");
    page.line(0, &format!("name: {name}"));
    page.description(0, &mut random);
    page.line(0, "upstream: https://gitlab.example.com/platform/qontract");
    page.line(0, "schemas:");
    for schema in [
        "/app-interface/app-interface-settings-1.yml",
        "/app-sre/integration-1.yml",
        "/openshift/namespace-1.yml",
        "/openshift/cluster-1.yml",
        "/app-sre/app-1.yml",
        "/app-sre/environment-1.yml",
    ] {
        page.line(0, &format!("- {schema}"));
    }
    page.line(0, "pr_check:");
    page.line(2, &format!("cmd: {name}"));
    page.line(2, &format!("early_exit: {}", random.chance(60)));
    page.line(0, "managed:");
    page.line(0, &format!("- namespace: {{$ref: {}}}", world.namespace_path(0)));
    page.line(2, "spec:");
    page.line(4, "resources:");
    page.line(6, "requests: {cpu: 100m, memory: 200Mi}");
    page.line(6, "limits: {memory: 400Mi}");
    page.line(2, "sharding:");
    match random.below(3) {
        0 => {
            page.line(4, "strategy: static");
            page.line(4, &format!("shards: {}", random.between(1, 5)));
        }
        1 => page.line(4, "strategy: per-openshift-cluster"),
        _ => page.line(4, "strategy: per-aws-account"),
    }
    page.finish()
}

fn query_validation(world: &CorpusLayout, index: usize) -> String {
    let mut random = world.random("query", index);
    let mut page = DocumentWriter::new("/app-interface/query-validation-1.yml", &mut random);
    page.line(0, "labels: {}");
    page.line(0, &format!("name: queries-{index}"));
    page.description(0, &mut random);
    page.reference(0, "escalationPolicy", &CorpusLayout::escalation_path(index % world.census.escalations));
    page.line(0, "queries:");
    page.line(0, "- path: /queries/namespaces.graphql");
    page.line(0, "- path: /queries/people.graphql");
    page.finish()
}
