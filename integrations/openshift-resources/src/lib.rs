//! Manages the objects of namespaces, from files and templates.

use qontract_objects::resources::{NamespaceResources, ProviderGroup, ResourceProviders};

/// The providers of this integration.
pub struct FileProviders;

impl ResourceProviders for FileProviders {
    const PROVIDERS: ProviderGroup = ProviderGroup::Files;
    const DESCRIPTION: &'static str = "Manages objects in namespaces, from files and templates";
}

/// The integration.
pub type OpenshiftResources = NamespaceResources<FileProviders>;
