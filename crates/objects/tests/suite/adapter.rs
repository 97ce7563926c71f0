//! The adapter: the number of frames between runner and integration, and the queries that are sent.

use std::backtrace::Backtrace;
use std::sync::{Arc, Mutex};

use qontract_client_kubernetes::Sandbox;
use qontract_client_secrets::ConfigSecrets;
use qontract_objects::resources::{NamespaceResources, ProviderGroup, ResourceProviders};
use qontract_objects::templates::ExternalLookups;
use qontract_objects::{Declared, DeclaredObjects, ManagedObjects, ObjectIntegration};
use qontract_runtime::{Data, Fault, Integration, IntegrationMeta, ManagedKinds, Options, QueryPolicy};
use qontract_testkit::Scratch;

use crate::support::test_integration::source;

/// An integration that records its callers.
#[derive(Clone, Default)]
struct Probe(Arc<Mutex<String>>);

impl ObjectIntegration for Probe {
    type State = DeclaredObjects;

    fn meta(&self) -> IntegrationMeta {
        IntegrationMeta::new("test-objects", "Records its callers")
    }

    fn managed_kinds(&self) -> ManagedKinds {
        ManagedKinds::Fixed("ConfigMap")
    }

    fn declare(&self, _: &Data, _: &Options) -> Result<Declared<DeclaredObjects>, Fault> {
        *self.0.lock().unwrap() = Backtrace::force_capture().to_string();
        Ok(Declared::new(()))
    }
}

/// The functions of this workspace in a backtrace, innermost first; closures count as part of their function.
fn frames(backtrace: &str) -> Vec<&str> {
    let names = backtrace.lines().filter_map(|line| line.trim_start().split_once(": ").map(|(_, name)| name));
    // An inlined method is shown without its type: `declare<…>`.
    let is_ours =
        |name: &&str| ["qontract_", "<qontract_", "declare<"].iter().any(|head| name.starts_with(head));
    names.filter(|name| is_ours(name) && !name.contains("{{closure}}")).collect()
}

#[test]
fn a_declaration_passes_two_frames() {
    let (scratch, probe) = (Scratch::new(), Probe::default());
    let lookups = ExternalLookups::secrets(Arc::new(ConfigSecrets::new(toml::Table::new())));
    let kubernetes = Arc::new(Sandbox::new(scratch.path()));
    let integration = Integration::staged(ManagedObjects::new(probe.clone(), kubernetes, Arc::new(lookups)));
    let data = Data::new(source(), QueryPolicy::of(integration.meta()));
    integration.declare(&data, &Options::default()).unwrap();
    let backtrace = probe.0.lock().unwrap();
    let frames = frames(&backtrace);
    let runner = frames
        .iter()
        .position(|name| name.contains("integration::Integration") && name.ends_with("::declare"));
    let between = &frames[..runner.unwrap_or_else(|| panic!("{backtrace}"))];
    assert!(between.len() <= 2 && between[0].contains("ManagedObjects"), "{between:#?}");
}

struct Files;

impl ResourceProviders for Files {
    const PROVIDERS: ProviderGroup = ProviderGroup::Files;
    const DESCRIPTION: &'static str = "Reads the resources of namespaces";
}

#[test]
fn a_query_is_sent_with_every_fragment_that_it_needs_once() {
    let meta = NamespaceResources::<Files>::default().meta();
    let text = &meta.queries[0].text;
    let names = ["DataRepository", "DisabledIntegrations", "TemplateCluster", "VaultSecretRef"];
    for name in names {
        assert_eq!(text.matches(&format!("fragment {name} on ")).count(), 1, "{name} in {text}");
    }
    assert!(!text.contains("fragment RoleMembers"), "{text}");
}
