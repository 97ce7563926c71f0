//! An integration of any form, as the runner and the registry hold it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::about::About;
use crate::contract::Staged;
use crate::data::Data;
use crate::declarations::{Declaration, Declarations};
use crate::erased::{AnyDeclared, Dynamic, Erased};
use crate::fault::{Fault, panicked};
use crate::function::{DynamicFunction, Function};
use crate::options::Options;
use crate::process::Process;
use qontract_telemetry::activity;

/// An integration of any form.
pub struct Room {
    form: Form,
    declarations: Declarations,
}

/// The forms of an integration.
pub enum Form {
    /// The five phases of [`Staged`].
    Staged(Box<dyn Dynamic>),
    /// One function; see [`Function`].
    Function(Box<dyn DynamicFunction>),
}

impl Room {
    fn new(form: Form) -> Self {
        Self { form, declarations: Declarations::default() }
    }

    /// An integration of the staged form.
    pub fn staged(integration: impl Staged) -> Self {
        Self::new(Form::Staged(Box::new(Erased(integration))))
    }

    /// An integration of the function form.
    pub fn function(integration: impl Function) -> Self {
        Self::new(Form::Function(Box::new(integration)))
    }

    /// An integration of the process form.
    pub fn process(process: Process) -> Self {
        Self::new(Form::Staged(Box::new(process)))
    }

    /// Its form.
    pub(crate) fn form(&self) -> &Form {
        &self.form
    }

    /// Its metadata.
    pub fn about(&self) -> &About {
        match &self.form {
            Form::Staged(integration) => integration.about(),
            Form::Function(integration) => integration.about(),
        }
    }

    /// Checks that this machine has what the integration needs; see [`Function::ready`].
    pub fn ready(&self) -> Result<(), Fault> {
        match &self.form {
            Form::Staged(_) => Ok(()),
            Form::Function(integration) => integration.ready(),
        }
    }

    /// Its declared state, if it has one. Concurrent callers with the same data and options share one state:
    /// it is declared once and cached for as long as a caller holds it.
    pub fn declare(&self, data: &Data, options: &Options) -> Result<Option<Declaration>, Fault> {
        let _doing = activity::phase("declare", "declare");
        let declare = |data: &Data| match &self.form {
            Form::Staged(integration) => {
                integration.declare(data, options).map(|state| Some(Arc::from(state)))
            }
            Form::Function(integration) => {
                let state = integration.state(data, options)?;
                Ok(state.map(|state| Arc::new(state) as Arc<dyn AnyDeclared>))
            }
        };
        self.declarations.once(data, options, |data| {
            let declared = catch_unwind(AssertUnwindSafe(|| declare(data)));
            declared.unwrap_or_else(|panic| Err(panicked("declare", &*panic)))
        })
    }
}

impl std::fmt::Debug for Room {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Integration").field(&self.about().name).finish()
    }
}
