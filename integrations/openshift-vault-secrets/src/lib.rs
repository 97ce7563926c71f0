//! Manages the Secrets of namespaces, from Vault.

use qontract_objects::resources::{NamespaceResources, ProviderGroup, ResourceProviders};

/// The providers of this integration.
pub struct SecretProviders;

impl ResourceProviders for SecretProviders {
    const PROVIDERS: ProviderGroup = ProviderGroup::Secrets;
    const DESCRIPTION: &'static str = "Manages Secrets from Vault";
}

/// The integration.
pub type OpenshiftVaultSecrets = NamespaceResources<SecretProviders>;
