//! An integration for object programs that are not available. It can only replay recorded plans.

use qontract_runtime::{Data, Fault, IntegrationMeta, ManagedKinds, Options};

use crate::integration::ObjectIntegration;
use crate::{Declared, DeclaredObjects};

/// The objects of a program that is not available.
#[derive(Clone, Debug)]
pub struct RecordedObjects {
    name: String,
}

impl RecordedObjects {
    /// The objects of this integration.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into() }
    }
}

impl ObjectIntegration for RecordedObjects {
    type State = DeclaredObjects;

    fn meta(&self) -> IntegrationMeta {
        IntegrationMeta::new(self.name.clone(), "A process integration")
    }

    fn managed_kinds(&self) -> ManagedKinds {
        ManagedKinds::Declared
    }

    fn declare(&self, _: &Data, _: &Options) -> Result<Declared<DeclaredObjects>, Fault> {
        Err(Fault::operator(format!("the program of `{}` is not available", self.name)))
    }
}
