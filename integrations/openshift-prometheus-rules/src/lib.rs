//! Manages the `PrometheusRules` of namespaces.

use qontract_objects::resources::{NamespaceResources, ProviderGroup, ResourceProviders};

/// The providers of this integration.
pub struct RuleProviders;

impl ResourceProviders for RuleProviders {
    const PROVIDERS: ProviderGroup = ProviderGroup::Rules;
    const DESCRIPTION: &'static str = "Manages PrometheusRules from files and templates";
}

/// The integration.
pub type OpenshiftPrometheusRules = NamespaceResources<RuleProviders>;
