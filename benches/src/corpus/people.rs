//! Users, bots, roles, permissions and change types.

use super::document_writer::DocumentWriter;
use super::layout::CorpusLayout;
use super::singletons::{PAGER, QUAY_ORG, SLACK};
use super::tree::CorpusTree;

pub(super) fn write(world: &CorpusLayout, tree: &mut CorpusTree) {
    for index in 0..world.census.users {
        tree.add(format!("data{}", CorpusLayout::user_path(index)), user(world, index));
    }
    for index in 0..world.census.bots {
        tree.add(format!("data/access/bots/bot-{index}.yml"), bot(world, index));
    }
    for index in 0..world.census.roles {
        tree.add(format!("data{}", CorpusLayout::role_path(index)), role(world, index));
    }
    for index in 0..world.census.permissions {
        tree.add(format!("data{}", CorpusLayout::permission_path(index)), permission(world, index));
    }
    for index in 0..world.census.change_types {
        tree.add(format!("data{}", change_type_path(index)), change_type(world, index));
    }
}

fn change_type_path(index: usize) -> String {
    format!("/change-types/change-type-{index}.yml")
}

fn user(world: &CorpusLayout, index: usize) -> String {
    let mut random = world.random("user", index);
    let mut page = DocumentWriter::new("/access/user-1.yml", &mut random);
    page.line(0, "labels: {}");
    page.blank();
    page.line(0, &format!("name: User {index}"));
    page.line(0, &format!("org_username: user-{index:05}"));
    page.line(0, &format!("github_username: user-{index:05}-gh"));
    if random.chance(40) {
        page.line(0, &format!("quay_username: user_{index:05}"));
    }
    if random.chance(15) {
        page.line(0, "tag_on_merge_requests: true");
    }
    if random.chance(12) {
        let key = [random.commit(), random.commit(), random.commit(), random.commit()];
        page.comment(0, &mut random);
        page.line(0, "public_gpg_key: |");
        for line in key {
            page.line(2, &line);
        }
    }
    page.blank();
    let wanted = random.between(1, 5);
    let roles = random.distinct(wanted, world.census.roles);
    page.references(0, "roles", &roles.into_iter().map(CorpusLayout::role_path).collect::<Vec<_>>());
    page.finish()
}

fn bot(world: &CorpusLayout, index: usize) -> String {
    let mut random = world.random("bot", index);
    let mut page = DocumentWriter::new("/access/bot-1.yml", &mut random);
    page.line(0, "labels: {}");
    page.line(0, &format!("name: bot-{index}"));
    page.description(0, &mut random);
    let namespace = world.namespace_name(random.below(world.census.namespaces));
    page.line(0, &format!("openshift_serviceaccount: {namespace}/bot-{index}"));
    page.reference(0, "owner", &CorpusLayout::user_path(random.below(world.census.users)));
    page.references(0, "roles", &[CorpusLayout::role_path(random.below(world.census.roles))]);
    page.finish()
}

fn role(world: &CorpusLayout, index: usize) -> String {
    let mut random = world.random("role", index);
    let mut page = DocumentWriter::new("/access/role-1.yml", &mut random);
    page.line(0, "labels: {}");
    page.line(0, &format!("name: {}", CorpusLayout::role_name(index)));
    page.description(0, &mut random);
    if random.chance(5) {
        page.line(0, &format!("expirationDate: '203{}-0{}-15'", random.below(10), random.between(1, 9)));
    }
    page.blank();
    let wanted = random.between(2, 5);
    let permissions = random.distinct(wanted, world.census.permissions);
    page.references(
        0,
        "permissions",
        &permissions.into_iter().map(CorpusLayout::permission_path).collect::<Vec<_>>(),
    );
    page.blank();
    page.line(0, "access:");
    let app = index % world.census.apps;
    for namespace in world.namespaces_of(app) {
        page.line(0, &format!("- role: {}", random.pick(&["view", "edit", "admin"])));
        page.reference(2, "namespace", &world.namespace_path(namespace));
    }
    if random.chance(20) {
        let cluster = random.below(world.census.clusters);
        page.line(0, &format!("- cluster: {{$ref: {}}}", CorpusLayout::cluster_path(cluster)));
        page.line(2, "group: developers");
    }
    if random.chance(20) {
        page.references(0, "aws_groups", &[world.group_path(random.below(world.census.groups))]);
    }
    if random.chance(15) {
        page.references(0, "user_policies", &[world.policy_path(random.below(world.census.policies))]);
    }
    if random.chance(60) {
        page.line(0, "self_service:");
        let change_type = random.below(world.census.change_types);
        page.line(0, &format!("- change_type: {{$ref: {}}}", change_type_path(change_type)));
        page.references(2, "datafiles", &[world.saas_path(index % world.census.saas_files)]);
    }
    page.finish()
}

fn permission(world: &CorpusLayout, index: usize) -> String {
    let mut random = world.random("permission", index);
    let mut page = DocumentWriter::new("/access/permission-1.yml", &mut random);
    page.line(0, "labels: {}");
    page.line(0, &format!("name: permission-{index}"));
    // Slack limits this description to 140 characters, so it never has the long form.
    page.line(0, &format!("description: '{}'", super::prose::sentence(&mut random)));
    // **Invariant:** escalation policies refer to user groups: every fifth permission is one.
    match index % 5 {
        0 => {
            page.line(0, "service: slack-usergroup");
            page.line(0, &format!("handle: group-{index}"));
            page.reference(0, "workspace", SLACK);
            page.list(0, "channels", &["announcements", "incidents"]);
            if random.chance(20) {
                page.references(0, "pagerduty", &[PAGER.to_owned()]);
            }
        }
        1 | 2 => {
            page.line(0, "service: github-org-team");
            page.line(0, "org: corpus");
            page.line(0, &format!("team: team-{index}"));
        }
        3 => {
            page.line(0, "service: gitlab-group-membership");
            page.line(0, &format!("group: tenants/group-{index}"));
            page.line(0, &format!("access: {}", random.pick(&["developer", "maintainer", "reporter"])));
        }
        _ => {
            page.line(0, "service: quay-membership");
            page.reference(0, "quayOrg", QUAY_ORG);
            page.line(0, "team: push");
        }
    }
    page.finish()
}

fn change_type(world: &CorpusLayout, index: usize) -> String {
    let mut random = world.random("change-type", index);
    let mut page = DocumentWriter::new("/app-interface/change-type-1.yml", &mut random);
    page.line(0, "labels: {}");
    page.line(0, &format!("name: change-type-{index}"));
    page.description(0, &mut random);
    page.line(0, "priority: medium");
    page.line(0, "contextType: datafile");
    page.line(0, "contextSchema: /app-sre/saas-file-2.yml");
    page.line(0, "changes:");
    page.line(0, "- provider: jsonPath");
    page.line(2, "jsonPathSelectors:");
    page.line(2, "- resourceTemplates[*].targets[*].ref");
    page.finish()
}
