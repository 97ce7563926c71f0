//! Manages the Routes of namespaces, with their certificates.

use qontract_objects::resources::{NamespaceResources, ProviderGroup, ResourceProviders};

/// The providers of this integration.
pub struct RouteProviders;

impl ResourceProviders for RouteProviders {
    const PROVIDERS: ProviderGroup = ProviderGroup::Routes;
    const DESCRIPTION: &'static str = "Manages Routes and their TLS certificates";
}

/// The integration.
pub type OpenshiftRoutes = NamespaceResources<RouteProviders>;
