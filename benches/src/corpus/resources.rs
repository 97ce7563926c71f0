//! The files of `resources/`: manifests, templates, routes and alert rules of namespaces, and a few shared
//! files.

use super::document_writer::DocumentWriter;
use super::layout::CorpusLayout;
use super::prose;
use super::random::CorpusRng;
use super::tree::CorpusTree;

/// The kind of a resource of a namespace.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ResourceKind {
    Manifest,
    Template,
    Route,
    Rule,
}

impl ResourceKind {
    /// The provider that reads it.
    pub(super) fn provider(self) -> &'static str {
        match self {
            Self::Manifest => "resource",
            Self::Template => "resource-template",
            Self::Route => "route",
            Self::Rule => "prometheus-rule",
        }
    }

    fn file_name(self, number: usize) -> String {
        match self {
            Self::Manifest => format!("config-{number}.configmap.yaml"),
            Self::Template => format!("settings-{number}.configmap.yaml.j2"),
            Self::Route => format!("public-{number}.route.yaml"),
            Self::Rule => format!("alerts-{number}.prometheusrule.yaml"),
        }
    }
}

/// Templates shared by all namespaces.
const SHARED_TEMPLATES: [&str; 4] = [
    "/shared/config.configmap.yaml.j2",
    "/shared/probe.service.yaml.j2",
    "/shared/limits.configmap.yaml.j2",
    "/shared/owner.configmap.yaml.j2",
];

/// Files with fixed content.
const FIXED_FILES: [(&str, &str); 9] = [
    (
        "/shared/ca-bundle.yaml",
        "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ca-bundle\n  labels:\n    inject: \"true\"\n",
    ),
    (
        "/shared/task.yaml.j2",
        "---\napiVersion: tekton.dev/v1\nkind: Task\nmetadata:\n  name: {{ name }}\nspec: {steps: []}\n",
    ),
    (
        "/shared/pipeline.yaml.j2",
        "---\napiVersion: tekton.dev/v1\nkind: Pipeline\nmetadata:\n  name: {{ name }}\nspec: {tasks: []}\n",
    ),
    ("/shared/jenkins-jobs.yaml", "- project:\n    name: shared\n    label: linux\n    node: worker\n"),
    (
        "/terraform/rds-defaults.yml",
        "---\n$schema: /aws/rds-defaults-1.yml\nengine: postgres\nengine_version: \"16.4\"\ninstance_class: db.t3.small\n\
         allocated_storage: 20\nauto_minor_version_upgrade: false\nstorage_encrypted: true\nstorage_type: gp3\n",
    ),
    ("/terraform/s3-defaults.yml", "---\nacl: private\nversioning: true\nforce_destroy: false\n"),
    (
        "/terraform/sqs-defaults.yml",
        "---\nvisibility_timeout_seconds: 30\nmessage_retention_seconds: 86400\n",
    ),
    (
        "/queries/namespaces.graphql",
        "{\n  namespaces_v1 {\n    name\n    cluster { name }\n    app { name }\n    environment { name }\n  }\n}\n",
    ),
    (
        "/queries/people.graphql",
        "{\n  users_v1 {\n    org_username\n    roles { name permissions { name service } }\n  }\n}\n",
    ),
];

/// One of the shared templates.
pub(super) fn shared_template(random: &mut CorpusRng) -> &'static str {
    random.pick(&SHARED_TEMPLATES)
}

/// The resources of one namespace: path and kind.
pub(super) fn of_namespace(world: &CorpusLayout, namespace: usize) -> Vec<(String, ResourceKind)> {
    let own = world.census.resources.saturating_sub(FIXED_FILES.len() + SHARED_TEMPLATES.len());
    let namespaces = world.census.namespaces;
    let count = own / namespaces + usize::from(namespace < own % namespaces);
    let mut random = world.random("resources of", namespace);
    let folder = format!(
        "/services/{}/{}",
        CorpusLayout::app_name(world.app_of(namespace)),
        world.namespace_name(namespace)
    );
    let kinds = (0..count).map(|_| match random.below(100) {
        0..50 => ResourceKind::Manifest,
        50..80 => ResourceKind::Template,
        80..91 => ResourceKind::Route,
        _ => ResourceKind::Rule,
    });
    kinds.enumerate().map(|(number, kind)| (format!("{folder}/{}", kind.file_name(number)), kind)).collect()
}

pub(super) fn write(world: &CorpusLayout, tree: &mut CorpusTree) {
    for (path, content) in FIXED_FILES {
        tree.add(format!("resources{path}"), content.to_owned());
    }
    for path in SHARED_TEMPLATES {
        tree.add(format!("resources{path}"), shared(path));
    }
    for namespace in 0..world.census.namespaces {
        let mut random = world.random("content of", namespace);
        let name = CorpusLayout::app_name(world.app_of(namespace));
        for (path, kind) in of_namespace(world, namespace) {
            let content = match kind {
                ResourceKind::Manifest => manifest(&name, &mut random),
                ResourceKind::Template => template(&name, &mut random),
                ResourceKind::Route => route(&name, namespace),
                ResourceKind::Rule => rule(&name, namespace, &mut random),
            };
            tree.add(format!("resources{path}"), content);
        }
    }
}

fn shared(path: &str) -> String {
    let kind = if path.contains("service") { "Service" } else { "ConfigMap" };
    format!(
        "---\napiVersion: v1\nkind: {kind}\nmetadata:\n  name: {{{{ service }}}}-shared\n  labels:\n    environment: {{{{ \
         resource.namespace.environment.name }}}}\n{{% if debug %}}  annotations: {{debug: \"true\"}}\n{{% endif %}}"
    )
}

fn manifest(name: &str, random: &mut CorpusRng) -> String {
    let mut page = DocumentWriter::raw(format!(
        "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}-config\n  labels:\n    app: {name}\ndata:\n"
    ));
    for number in 0..random.between(2, 4) {
        page.line(2, &format!("KEY_{number}: \"{}\"", prose::sentence(random)));
    }
    page.line(2, "config.json: |");
    page.line(4, "{");
    for number in 0..random.between(2, 4) {
        let (enabled, weight) = (random.chance(50), random.below(100));
        page.line(6, &format!("\"field-{number}\": {{\"enabled\": {enabled}, \"weight\": {weight}}},"));
    }
    page.line(6, "\"end\": null");
    page.line(4, "}");
    page.finish()
}

fn template(name: &str, random: &mut CorpusRng) -> String {
    let mut page = DocumentWriter::raw(format!(
        "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}-settings\ndata:\n  port: \"{{{{{{ port }}}}}}\"\n"
    ));
    page.line(2, "settings.toml: |");
    for section in 0..random.between(1, 2) {
        page.line(4, &format!("[section-{section}]"));
        page.comment(4, random);
        page.line(4, &format!("threshold = {}", random.below(1000)));
        page.line(4, "{{% if debug is defined and debug %}}");
        page.line(4, "level = \"debug\"");
        page.line(4, "{{% endif %}}");
    }
    page.finish()
}

fn route(name: &str, namespace: usize) -> String {
    format!(
        "---\napiVersion: route.openshift.io/v1\nkind: Route\nmetadata:\n  name: {name}\n  annotations:\n    \
         haproxy.router.openshift.io/timeout: 60s\nspec:\n  host: {name}-{namespace}.apps.example.com\n  to:\n    kind: Service\n    \
         name: {name}\n  port:\n    targetPort: http\n  tls:\n    termination: edge\n    insecureEdgeTerminationPolicy: Redirect\n"
    )
}

fn rule(name: &str, namespace: usize, random: &mut CorpusRng) -> String {
    let mut page = DocumentWriter::raw(format!(
        "---\n$schema: /openshift/prometheus-rule-1.yml\n\napiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata:\n  \
         name: {name}-{namespace}\n  labels:\n    prometheus: app-sre\n    role: alert-rules\nspec:\n"
    ));
    page.line(2, "groups:");
    page.line(2, &format!("- name: {name}"));
    page.line(4, "rules:");
    for number in 0..random.between(1, 2) {
        page.line(4, &format!("- alert: Errors{number}"));
        page.line(6, "expr: |");
        page.line(8, &format!("sum(rate(http_requests_total{{service=\"{name}\",code=~\"5..\"}}[5m]))"));
        let threshold = random.between(1, 50);
        page.line(
            8,
            &format!("/ sum(rate(http_requests_total{{service=\"{name}\"}}[5m])) > 0.{threshold:02}"),
        );
        page.line(6, &format!("for: {}m", random.between(1, 30)));
        page.line(6, "labels:");
        page.line(8, &format!("severity: {}", random.pick(&["critical", "high", "warning", "info"])));
        page.line(8, &format!("service: {name}"));
        page.line(6, "annotations:");
        page.line(8, &format!("message: \"{}\"", prose::sentence(random)));
        page.line(
            8,
            &format!("runbook: https://gitlab.example.com/tenants/{name}/-/blob/main/docs/sops/errors.md"),
        );
    }
    page.finish()
}
