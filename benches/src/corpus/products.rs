//! Products, their environments, apps and escalation policies.

use super::document_writer::DocumentWriter;
use super::layout::{CorpusLayout, PHASES};
use super::singletons::{self, PAGER};
use super::tree::CorpusTree;

pub(super) fn write(world: &CorpusLayout, tree: &mut CorpusTree) {
    for index in 0..world.census.products {
        tree.add(format!("data{}", CorpusLayout::product_path(index)), product(world, index));
    }
    for index in 0..world.census.environments {
        tree.add(format!("data{}", world.environment_path(index)), environment(world, index));
    }
    for index in 0..world.census.escalations {
        tree.add(format!("data{}", CorpusLayout::escalation_path(index)), escalation(world, index));
    }
    for index in 0..world.census.apps {
        tree.add(format!("data{}", CorpusLayout::app_path(index)), app(world, index));
    }
}

fn product(world: &CorpusLayout, index: usize) -> String {
    let mut random = world.random("product", index);
    let mut page = DocumentWriter::new("/app-sre/product-1.yml", &mut random);
    page.labels(&mut random, "product");
    page.line(0, &format!("name: product-{index}"));
    page.description(0, &mut random);
    page.line(0, "productOwners:");
    page.line(0, &format!("- name: Owners of product {index}"));
    page.line(2, &format!("email: product-{index}@example.com"));
    page.finish()
}

fn environment(world: &CorpusLayout, index: usize) -> String {
    let mut random = world.random("environment", index);
    let (product, phase) = world.environment_parts(index);
    let mut page = DocumentWriter::new("/app-sre/environment-1.yml", &mut random);
    page.line(0, "labels:");
    page.line(2, &format!("phase: {}", PHASES[phase]));
    page.line(0, &format!("name: {}", world.environment_name(index)));
    page.description(0, &mut random);
    page.reference(0, "product", &CorpusLayout::product_path(product));
    page.line(0, &format!("servicePhase: {}", ["dev", "stage", "prod"][phase]));
    if phase > 0 {
        page.reference(0, "dependsOn", &world.environment_path(index - world.census.products));
    }
    page.line(0, "parameters:");
    page.line(2, &format!("ENVIRONMENT: {}", PHASES[phase]));
    page.line(2, &format!("REPLICAS: \"{}\"", phase * 2 + 1));
    page.line(2, "TIMEOUT: 30s");
    page.line(2, &format!("FEATURES: '{{\"search\": {}}}'", random.chance(50)));
    if random.chance(40) {
        page.line(0, "secretParameters:");
        page.line(0, "- name: API_KEY");
        page.secret(2, "secret", &format!("products/{product}/{}", PHASES[phase]), "key");
    }
    page.finish()
}

fn escalation(world: &CorpusLayout, index: usize) -> String {
    let mut random = world.random("escalation", index);
    let mut page = DocumentWriter::new("/app-sre/escalation-policy-1.yml", &mut random);
    page.line(0, "labels: {}");
    page.line(0, &format!("name: escalation-{index}"));
    page.description(0, &mut random);
    page.line(0, "channels:");
    // The first permissions are user groups in Slack, one for each policy.
    page.references(
        2,
        "slackUserGroup",
        &[CorpusLayout::permission_path(index % world.census.permissions / 5 * 5)],
    );
    page.line(2, "email:");
    page.line(2, &format!("- team-{index}@example.com"));
    if random.chance(30) {
        page.reference(2, "pagerduty", PAGER);
    }
    page.references(2, "jiraBoard", &[singletons::board_path(index % world.census.boards)]);
    if index > 0 && random.chance(60) {
        page.reference(2, "nextEscalationPolicy", &CorpusLayout::escalation_path(index / 2));
    }
    page.finish()
}

fn app(world: &CorpusLayout, index: usize) -> String {
    let mut random = world.random("app", index);
    let name = CorpusLayout::app_name(index);
    let mut page = DocumentWriter::new("/app-sre/app-1.yml", &mut random);
    page.labels(&mut random, &name);
    page.blank();
    page.line(0, &format!("name: {name}"));
    page.description(0, &mut random);
    page.reference(0, "product", &CorpusLayout::product_path(index % world.census.products));
    if index > 0 && random.chance(12) {
        page.reference(0, "parentApp", &CorpusLayout::app_path(index / 2));
    }
    let status = random.pick(&["OnBoarded", "OnBoarded", "InProgress", "BestEffort", "TransitionPeriod"]);
    page.line(0, &format!("onboardingStatus: {status}"));
    page.line(0, &format!("appCode: CODE-{index}"));
    page.blank();
    page.line(0, "serviceOwners:");
    for owner in 0..random.between(1, 3) {
        page.line(0, &format!("- name: Owner {owner} of {name}"));
        page.line(2, &format!("email: {name}-{owner}@example.com"));
    }
    page.line(0, "grafanaUrls:");
    page.line(0, &format!("- title: 'Overview: {name}'"));
    page.line(2, &format!("url: https://grafana.example.com/d/{name}"));
    page.line(0, &format!("sopsUrl: https://gitlab.example.com/tenants/{name}/-/tree/main/docs/sops"));
    page.line(
        0,
        &format!(
            "architectureDocument: https://gitlab.example.com/tenants/{name}/-/blob/main/docs/architecture.md"
        ),
    );
    page.blank();
    page.reference(0, "escalationPolicy", &CorpusLayout::escalation_path(index % world.census.escalations));
    let wanted = random.between(1, 4);
    let dependencies = random.distinct(wanted, world.census.dependencies);
    page.references(
        0,
        "dependencies",
        &dependencies.into_iter().map(singletons::dependency_path).collect::<Vec<_>>(),
    );
    code_and_images(&mut page, &mut random, &name);
    page.finish()
}

fn code_and_images(page: &mut DocumentWriter, random: &mut super::random::CorpusRng, name: &str) {
    page.line(0, "quayRepos:");
    page.line(0, &format!("- org: {{$ref: {}}}", singletons::QUAY_ORG));
    page.line(2, "items:");
    for image in 0..random.between(1, 3) {
        page.line(
            2,
            &format!("- {{name: {name}-{image}, description: image {image}, public: {}}}", random.chance(20)),
        );
    }
    page.line(0, "endPoints:");
    page.line(0, &format!("- name: {name}"));
    page.description(2, random);
    page.line(2, &format!("url: {name}.apps.example.com:443"));
    page.line(0, "codeComponents:");
    for component in 0..random.between(1, 3) {
        page.line(0, &format!("- name: {name}-{component}"));
        page.line(2, &format!("resource: {}", random.pick(&["upstream", "upstream", "gitops", "other"])));
        page.line(2, &format!("url: https://gitlab.example.com/tenants/{name}-{component}"));
        if random.chance(15) {
            page.line(2, "gitlabHousekeeping: {enabled: true, rebase: yes, days_interval: 30}");
        }
        if random.chance(10) {
            page.line(2, "blockedVersions:");
            page.line(2, &format!("- \"{}\"", random.commit()));
        }
    }
}
