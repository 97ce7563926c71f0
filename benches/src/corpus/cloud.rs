//! AWS accounts, groups, policies and Terraform states.

use super::document_writer::DocumentWriter;
use super::layout::CorpusLayout;
use super::tree::CorpusTree;

pub(super) fn write(world: &CorpusLayout, tree: &mut CorpusTree) {
    for index in 0..world.census.accounts {
        tree.add(format!("data{}", CorpusLayout::account_path(index)), account(world, index));
        tree.add(format!("data{}", state_path(index)), state(world, index));
    }
    for index in 0..world.census.groups {
        tree.add(format!("data{}", world.group_path(index)), group(world, index));
    }
    for index in 0..world.census.policies {
        tree.add(format!("data{}", world.policy_path(index)), policy(world, index));
    }
}

fn state_path(account: usize) -> String {
    format!("/aws/{}/terraform-state.yml", CorpusLayout::account_name(account))
}

fn account(world: &CorpusLayout, index: usize) -> String {
    let mut random = world.random("account", index);
    let name = CorpusLayout::account_name(index);
    let uid = 100_000_000_000_usize + index;
    let mut page = DocumentWriter::new("/aws/account-1.yml", &mut random);
    page.labels(&mut random, "aws");
    page.line(0, &format!("name: {name}"));
    page.description(0, &mut random);
    page.line(0, &format!("consoleUrl: https://{uid}.signin.aws.example.com/console"));
    page.line(0, &format!("uid: \"{uid}\""));
    page.line(
        0,
        &format!("resourcesDefaultRegion: {}", random.pick(&["eu-central-1", "us-east-1", "ap-south-1"])),
    );
    page.line(0, "providerVersion: 5.98.0");
    page.line(0, "accountOwners:");
    page.line(0, "- {name: Platform team, email: platform@example.com}");
    page.secret(0, "automationToken", &format!("platform/aws/{name}"), "all");
    page.line(0, &format!("premiumSupport: {}", random.pick(&["yes", "no", "true", "false"])));
    page.line(0, &format!("enableDeletion: {}", random.chance(20)));
    if random.chance(30) {
        page.line(0, "deletionApprovals:");
        page.line(0, "- type: aws_db_instance");
        page.line(2, &format!("name: old-{index}"));
        page.line(2, "expiration: '2031-12-31'");
    }
    if random.chance(20) && index > 0 {
        page.line(0, "sharing:");
        page.line(0, "- provider: ami");
        page.reference(2, "account", &CorpusLayout::account_path(index - 1));
        page.line(2, "regex: '^worker-[0-9]+\\.[0-9]+$'");
    }
    page.reference(0, "terraformState", &state_path(index));
    page.finish()
}

fn state(world: &CorpusLayout, index: usize) -> String {
    let mut random = world.random("state", index);
    let mut page = DocumentWriter::new("/dependencies/terraform-state-1.yml", &mut random);
    page.line(0, "provider: s3");
    page.line(0, &format!("bucket: terraform-{}", CorpusLayout::account_name(index)));
    page.line(0, "region: eu-central-1");
    page.line(0, "integrations:");
    page.line(0, "- integration: terraform-resources");
    page.line(2, "key: qontract-terraform-resources.tfstate");
    page.finish()
}

fn group(world: &CorpusLayout, index: usize) -> String {
    let mut random = world.random("group", index);
    let mut page = DocumentWriter::new("/aws/group-1.yml", &mut random);
    page.line(0, "labels: {}");
    page.reference(0, "account", &CorpusLayout::account_path(index % world.census.accounts));
    page.line(0, &format!("name: group-{index}"));
    page.description(0, &mut random);
    page.list(0, "policies", &["ReadOnlyAccess", "IAMUserChangePassword"]);
    page.finish()
}

fn policy(world: &CorpusLayout, index: usize) -> String {
    let mut random = world.random("policy", index);
    let mut page = DocumentWriter::new("/aws/policy-1.yml", &mut random);
    page.line(0, "labels: {}");
    page.reference(0, "account", &CorpusLayout::account_path(index % world.census.accounts));
    page.line(0, &format!("name: policy-{index}"));
    page.description(0, &mut random);
    page.line(0, "policy:");
    page.line(2, "Version: '2012-10-17'");
    page.line(2, "Statement:");
    for statement in 0..random.between(1, 3) {
        page.line(2, &format!("- Sid: Statement{statement}"));
        page.line(4, "Effect: Allow");
        page.line(4, "Action:");
        page.line(
            4,
            &format!("- \"{}\"", random.pick(&["s3:GetObject", "sqs:SendMessage", "dynamodb:Query"])),
        );
        page.line(4, "- 's3:ListBucket'");
        page.line(4, &format!("Resource: [\"arn:aws:s3:::bucket-{index}-{statement}/*\"]"));
    }
    page.finish()
}
