//! Documents that exist once, and external services: settings, chat, tickets, pager, forge, registry.

use super::document_writer::DocumentWriter;
use super::layout::CorpusLayout;
use super::prose;
use super::tree::CorpusTree;

pub(super) const SLACK: &str = "/dependencies/slack/workspace.yml";
pub(super) const QUAY_ORG: &str = "/dependencies/registry/organisation.yml";
pub(super) const JENKINS: &str = "/dependencies/jenkins/ci.yml";
pub(super) const JIRA: &str = "/dependencies/jira/server.yml";
pub(super) const PAGER: &str = "/dependencies/pagerduty/primary.yml";
pub(super) const PIPELINES: &str = "/pipelines/tekton.yml";
pub(super) const AUTHENTICATION: &str = "/pipelines/authentication.yml";
pub(super) const QUIET_CLUSTER: &str = "/openshift/integrations-of-quiet-clusters.yml";

/// Documents with fixed content: path, schema, and the rest of the text.
const FIXED_DOCUMENTS: [(&str, &str, &str); 12] = [
    (
        SLACK,
        "/dependencies/slack-workspace-1.yml",
        "labels: {}\nname: workspace\ndescription: where people talk\ntoken: {path: platform/slack, field: token}\nmanagedUsergroups: []\n",
    ),
    (
        "/dependencies/registry/instance.yml",
        "/dependencies/quay-instance-1.yml",
        "labels: {}\nname: registry\ndescription: all images\nurl: registry.example.com\n",
    ),
    (
        QUAY_ORG,
        "/dependencies/quay-org-1.yml",
        "labels: {}\nname: corpus\ndescription: all repositories\ninstance: {$ref: /dependencies/registry/instance.yml}\n\
         managedTeams: [push]\nmanagedRepos: true\nautomationToken: {path: platform/registry, field: token}\n",
    ),
    (
        "/dependencies/github/organisation.yml",
        "/dependencies/github-org-1.yml",
        "labels: {}\nname: corpus\ndescription: where people log in\nurl: https://github.example.com/corpus\n\
         two_factor_authentication: true\ntoken: {path: platform/github, field: token}\nmanagedTeams: []\n",
    ),
    (
        "/dependencies/gitlab/instance.yml",
        "/dependencies/gitlab-instance-1.yml",
        "labels: {}\nname: gitlab\ndescription: where code lives\nurl: https://gitlab.example.com\nmanagedGroups: []\n\
         projectRequests: []\ntoken: {path: platform/gitlab, field: token}\nsslVerify: yes\n",
    ),
    (
        JENKINS,
        "/dependencies/jenkins-instance-1.yml",
        "labels: {}\nname: ci\ndescription: builds\nserverUrl: https://ci.example.com\ntoken: {path: platform/jenkins, field: config}\n",
    ),
    (
        JIRA,
        "/dependencies/jira-server-1.yml",
        "labels: {}\nname: tickets\ndescription: tickets\nserverUrl: https://jira.example.com\nusername: bot\ntoken: {path: platform/jira, field: token}\n",
    ),
    (
        "/dependencies/jira/priorities.yml",
        "/dependencies/jira-severity-priority-mappings-1.yml",
        "labels: {}\nname: standard\ndescription: severity to priority\nmappings:\n- {severity: critical, priority: Blocker}\n- {severity: warning, priority: Normal}\n",
    ),
    (
        "/dependencies/pagerduty/instance.yml",
        "/dependencies/pagerduty-instance-1.yml",
        "labels: {}\nname: pager\ndescription: the pager\ntoken: {path: platform/pager, field: token}\n",
    ),
    (
        PAGER,
        "/dependencies/pagerduty-target-1.yml",
        "labels: {}\nname: primary\ndescription: first line\ninstance: {$ref: /dependencies/pagerduty/instance.yml}\nscheduleID: PRIMARY\n",
    ),
    (
        AUTHENTICATION,
        "/app-sre/saas-file-authentication-1.yml",
        "code: {path: platform/gitlab, field: token}\nimage: {path: platform/registry, field: all}\n",
    ),
    (
        QUIET_CLUSTER,
        "/openshift/cluster-integrations-1.yml",
        "labels: {}\nname: quiet\nintegrations:\n- openshift-routes\n- openshift-resourcequotas\n",
    ),
];

pub(super) fn write(world: &CorpusLayout, tree: &mut CorpusTree) {
    for (path, schema, rest) in FIXED_DOCUMENTS {
        tree.add(format!("data{path}"), format!("---\n$schema: {schema}\n{rest}"));
    }
    tree.add("data/settings.yml".to_owned(), settings(world));
    for (path, text) in pipelines(world) {
        tree.add(format!("data{path}"), text);
    }
    for index in 0..world.census.dependencies {
        tree.add(format!("data{}", dependency_path(index)), dependency(world, index));
    }
    for index in 0..world.census.boards {
        tree.add(format!("data{}", board_path(index)), board(world, index));
    }
    for index in 0..world.census.jenkins_configs {
        tree.add(
            format!("data/dependencies/jenkins/configs/config-{index}.yml"),
            jenkins_config(world, index),
        );
    }
}

pub(super) fn dependency_path(index: usize) -> String {
    format!("/dependencies/services/dependency-{index}.yml")
}

pub(super) fn board_path(index: usize) -> String {
    format!("/dependencies/jira/boards/board-{index}.yml")
}

fn settings(world: &CorpusLayout) -> String {
    let mut random = world.random("settings", 0);
    let mut page = DocumentWriter::new("/app-interface/app-interface-settings-1.yml", &mut random);
    page.line(0, "labels: {}");
    page.line(0, "name: corpus");
    page.description(0, &mut random);
    page.line(0, "repoUrl: https://gitlab.example.com/platform/app-interface");
    page.line(0, "vault: true");
    page.line(0, "kubeBinary: oc");
    page.line(0, "saasDeployJobTemplate: openshift-saas-deploy");
    page.line(0, "hashLength: 7");
    page.line(0, "jiraWatcher: {readTimeout: 60, connectTimeout: 10}");
    page.line(0, "ldap: {serverUrl: 'ldaps://directory.example.com', baseDn: 'dc=example'}");
    page.reference(0, "pushGatewayCluster", &CorpusLayout::cluster_path(0));
    page.finish()
}

fn pipelines(world: &CorpusLayout) -> [(&'static str, String); 2] {
    let defaults = "/pipelines/tekton-defaults.yml";
    let mut random = world.random("pipelines", 0);
    let mut provider = DocumentWriter::new("/app-sre/pipelines-provider-1.yml", &mut random);
    provider.line(0, "labels: {}");
    provider.line(0, "name: tekton");
    provider.description(0, &mut random);
    provider.line(0, "provider: tekton");
    provider.reference(0, "namespace", &world.namespace_path(0));
    provider.reference(0, "defaults", defaults);

    let mut page = DocumentWriter::new("/app-sre/tekton-provider-defaults-1.yml", &mut random);
    page.line(0, "labels: {}");
    page.line(0, "name: tekton-defaults");
    page.description(0, &mut random);
    page.line(0, "taskTemplates:");
    page.line(0, "- {name: saas-deploy, type: onePerSaasFile, path: /shared/task.yaml.j2}");
    page.line(0, "pipelineTemplates:");
    page.line(
        2,
        "openshiftSaasDeploy: {name: saas-deploy, type: onePerSaasFile, path: /shared/pipeline.yaml.j2}",
    );
    [(PIPELINES, provider.finish()), (defaults, page.finish())]
}

fn dependency(world: &CorpusLayout, index: usize) -> String {
    let mut random = world.random("dependency", index);
    let mut page = DocumentWriter::new("/dependencies/dependency-1.yml", &mut random);
    page.line(0, "labels: {}");
    page.line(0, &format!("name: {}", prose::name(index)));
    page.description(0, &mut random);
    page.line(0, &format!("statefulness: {}", random.pick(&["Durable", "Cache", "Stateless"])));
    page.line(0, &format!("opsModel: {}", random.pick(&["Hosted", "External", "Internal"])));
    page.line(0, &format!("SLA: {}", random.pick(&["99", "99.5", "99.9", "99.95"])));
    page.line(
        0,
        &format!(
            "dependencyFailureImpact: {}",
            random.pick(&["No Impact", "Partial Outage", "Major Outage"])
        ),
    );
    page.line(0, "monitoring:");
    if random.chance(50) {
        page.line(2, &format!("url: https://status.example.com/{index}"));
    } else {
        let namespace = random.below(world.census.namespaces);
        page.reference(2, "namespace", &world.namespace_path(namespace));
    }
    page.finish()
}

fn board(world: &CorpusLayout, index: usize) -> String {
    let mut random = world.random("board", index);
    let mut page = DocumentWriter::new("/dependencies/jira-board-1.yml", &mut random);
    page.line(0, "labels: {}");
    page.line(0, &format!("name: BOARD{index}"));
    page.description(0, &mut random);
    page.reference(0, "server", JIRA);
    page.reference(0, "severityPriorityMappings", "/dependencies/jira/priorities.yml");
    if random.chance(50) {
        page.line(0, "slack:");
        page.reference(2, "workspace", SLACK);
        page.line(2, &format!("channel: team-{index}"));
    }
    page.finish()
}

fn jenkins_config(world: &CorpusLayout, index: usize) -> String {
    let mut random = world.random("jenkins", index);
    let app = random.below(world.census.apps);
    let mut page = DocumentWriter::new("/dependencies/jenkins-config-1.yml", &mut random);
    page.line(0, "labels: {}");
    page.line(0, &format!("name: jobs-{index}"));
    page.description(0, &mut random);
    page.reference(0, "app", &CorpusLayout::app_path(app));
    page.reference(0, "instance", JENKINS);
    page.line(0, "type: jobs");
    if random.chance(30) {
        page.line(0, "config_path: /shared/jenkins-jobs.yaml");
        return page.finish();
    }
    page.line(0, "config:");
    for job in 0..random.between(1, 3) {
        page.line(0, "- project:");
        page.line(4, &format!("name: {}-{job}", CorpusLayout::app_name(app)));
        page.line(4, "label: linux");
        page.line(4, "node: worker");
        page.line(4, "gl_group: tenants");
        page.line(4, &format!("gl_project: {}", CorpusLayout::app_name(app)));
        page.line(4, "jobs:");
        page.line(4, "- 'gl-pr-check':");
        page.line(8, "display_name: pr check");
        page.line(8, &format!("timeout_minutes: {}", random.between(1, 12) * 10));
    }
    page.finish()
}
