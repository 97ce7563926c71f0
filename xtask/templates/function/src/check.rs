//! The checks. Pure: the same data produces the same result.

use qontract_runtime::{Data, Fault, SourceLocation};

use crate::query::Apps;

/// An app.
pub struct App {
    /// The name.
    pub name: String,
    /// The provenance.
    pub place: Option<SourceLocation>,
}

/// All apps.
pub fn apps(data: &Data) -> Result<Vec<App>, Fault> {
    let answer = data.query::<Apps>()?;
    let apps = answer.data.apps_v1.into_iter().flatten().enumerate();
    let place = |index| answer.places.of(&format!("/apps_v1/{index}"));
    Ok(apps.map(|(index, app)| App { name: app.name, place: place(index) }).collect())
}

/// Checks one app. Replace this with the real check.
pub fn problem(app: &App) -> Option<Fault> {
    let small = app.name.to_lowercase();
    if app.name == small {
        return None;
    }
    let fault = Fault::author(format!("the name `{}` is not lowercase", app.name));
    Some(fault.hint(format!("write `{small}`")).at(app.place.as_ref().map(|place| place.below("/name"))))
}
