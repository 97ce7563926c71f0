//! A room: an integration of any form, as it stands in the list of the binary.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::about::About;
use crate::contract::Staged;
use crate::data::Data;
use crate::erased::{AnyDeclared, Dynamic, Erased};
use crate::fault::{Fault, panicked};
use crate::function::{DynamicFunction, Function};
use crate::options::Options;
use crate::process::Process;
use qontract_telemetry::activity;

/// An integration of any form.
pub enum Room {
    /// The five questions.
    Staged(Box<dyn Dynamic>),
    /// One function.
    Function(Box<dyn DynamicFunction>),
}

impl Room {
    /// A room of the staged form.
    pub fn staged(integration: impl Staged) -> Self {
        Self::Staged(Box::new(Erased(integration)))
    }

    /// A room of the function form.
    pub fn function(integration: impl Function) -> Self {
        Self::Function(Box::new(integration))
    }

    /// A room of the process form.
    pub fn process(process: Process) -> Self {
        Self::Staged(Box::new(process))
    }

    /// What it says about itself.
    pub fn about(&self) -> &About {
        match self {
            Self::Staged(room) => room.about(),
            Self::Function(room) => room.about(),
        }
    }

    /// Whether what it needs on this machine is there; see [`Function::ready`].
    pub fn ready(&self) -> Result<(), Fault> {
        match self {
            Self::Staged(_) => Ok(()),
            Self::Function(room) => room.ready(),
        }
    }

    /// Its declared state, if it has one.
    pub fn declare(&self, data: &Data, options: &Options) -> Result<Option<Box<dyn AnyDeclared>>, Fault> {
        let _doing = activity::phase("declare", "declare");
        let declare = || match self {
            Self::Staged(room) => room.declare(data, options).map(Some),
            Self::Function(room) => {
                let state = room.state(data, options)?;
                Ok(state.map(|state| Box::new(state) as Box<dyn AnyDeclared>))
            }
        };
        catch_unwind(AssertUnwindSafe(declare)).unwrap_or_else(|panic| Err(panicked("declare", &*panic)))
    }
}

impl std::fmt::Debug for Room {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Room").field(&self.about().name).finish()
    }
}
