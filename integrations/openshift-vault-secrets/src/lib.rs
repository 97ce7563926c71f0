//! Manages the Secrets of namespaces, from Vault.

use qontract_objects::resources::{NamespaceResources, ProviderGroup, ResourceProviders};

/// The providers of this integration.
pub struct Secrets;

impl ResourceProviders for Secrets {
    const GROUP: ProviderGroup = ProviderGroup::Secrets;
    const DESCRIPTION: &'static str = "Manages Secrets from Vault";
}

/// The integration.
pub type OpenshiftVaultSecrets = NamespaceResources<Secrets>;
