//! Renders templates from the data alone, for validation. External values are replaced by their addresses,
//! and queries run against the data.

use qontract_graphql::Node;
use qontract_runtime::Data as Source;
use qontract_template::{Data, DeclaredLookups, RenderOutcome, RenderRequest, render};

use super::render::TemplateQueries;
use super::variables::{json, node_value};

pub use qontract_template::{Source as TemplateSource, entry_dialect as dialect};

/// The variables of a template.
pub type TemplateVariables = Vec<(String, Data)>;

/// Renders a template.
pub fn render_from_data(
    data: &Source,
    template: TemplateSource<'_>,
    variables: &TemplateVariables,
) -> Result<String, String> {
    match render(&RenderRequest::new(template, variables), &DeclaredLookups(TemplateQueries::new(data))) {
        Ok(RenderOutcome::Rendered(rendered)) => Ok(rendered.expose().to_owned()),
        Ok(RenderOutcome::Needs(_)) => Err("it makes external lookups".to_owned()),
        Err(fault) => Err(match fault.line {
            Some(line) => format!("line {line}: {}", fault.message),
            None => fault.message,
        }),
    }
}

/// The variables of an entry: its own, and `resource`, which is the entry with its namespace.
pub fn variables(own: Option<&str>, entry: &Node, namespace: &Node) -> Result<TemplateVariables, String> {
    let mut variables = match own.map(|text| json(Some(text))).transpose()? {
        Some(Data::Map(variables)) => variables,
        None | Some(Data::Null) => Vec::new(),
        Some(_) => return Err("`variables` is not a map".to_owned()),
    };
    let mut resource = fields(entry);
    resource.push(("namespace".to_owned(), namespace_value(namespace)?));
    variables.retain(|(name, _)| name != "resource");
    variables.push(("resource".to_owned(), Data::Map(resource)));
    Ok(variables)
}

/// The variable `namespace` of templates: without its resources, and with the environment parameters as a
/// map.
fn namespace_value(namespace: &Node) -> Result<Data, String> {
    let mut all = fields(namespace);
    all.retain(|(name, _)| name != "openshiftResources" && name != "sharedResources");
    for (name, value) in &mut all {
        let Data::Map(environment) = value else { continue };
        let parameters =
            environment.iter_mut().find(|(field, _)| name == "environment" && field == "parameters");
        if let Some((_, Data::Text(text))) = parameters {
            let parsed = json(Some(text.as_str()))?;
            environment.retain(|(field, _)| field != "parameters");
            environment.push(("parameters".to_owned(), parsed));
        }
    }
    Ok(Data::Map(all))
}

/// The fields of an object, without `__typename`.
fn fields(node: &Node) -> TemplateVariables {
    match node_value(node) {
        Data::Map(mut fields) => {
            fields.retain(|(name, _)| name != "__typename");
            fields
        }
        _ => Vec::new(),
    }
}
