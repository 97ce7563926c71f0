//! Renders templates: from the data alone where possible, with external lookups where needed.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use qontract_runtime::{Data as Source, Fault, ReadContext, SourceLocation};
use qontract_template::{
    Data, DeclaredLookups, Kind, LookupSource, LookupState, RenderOutcome, RenderRequest, Strictness,
    TemplateLookup, render,
};
use serde_json::Value;

use super::deferred::{DeferredTemplate, TemplateSource, secret_lookup};
use super::entry_error::{EntryError, InvalidCause};
use super::lookups::{self, ExternalLookups};
use super::{parse, variables};

/// Maximum number of lookup rounds of a template.
const MAX_LOOKUP_ROUNDS: usize = 8;

/// Runs the queries of templates against the data and records the results.
pub(crate) struct TemplateQueries<'d> {
    data: &'d Source,
    answers: RefCell<BTreeMap<TemplateLookup, LookupState>>,
}

impl<'d> TemplateQueries<'d> {
    pub(crate) fn new(data: &'d Source) -> Self {
        Self { data, answers: RefCell::default() }
    }
}

impl LookupSource for TemplateQueries<'_> {
    fn answer(&self, address: &TemplateLookup) -> LookupState {
        match address {
            TemplateLookup::Query { path, variables } => match query(self.data, path, variables) {
                Ok(data) => {
                    let answer = LookupState::Ready(data);
                    self.answers.borrow_mut().insert(address.clone(), answer.clone());
                    answer
                }
                Err(why) => LookupState::Failed(why),
            },
            _ => LookupState::Pending,
        }
    }
}

/// Runs the query in a resource and returns the first field of the result. The resource is itself a template.
fn query(data: &Source, path: &str, given: &BTreeMap<String, String>) -> Result<Data, String> {
    let text = data.resource(path).map_err(|error| error.to_string())?;
    let text = text.ok_or_else(|| format!("the resource `{path}` does not exist"))?;
    let given: Result<Vec<(String, Data)>, String> =
        given.iter().map(|(name, json)| Ok((name.clone(), variables::json(Some(json))?))).collect();
    let given = given?;
    let source = qontract_template::Source::new(path, &text);
    let request = RenderRequest { strictness: Strictness::Lenient, ..RenderRequest::new(source, &given) };
    let rendered = match render(&request, &BTreeMap::new()) {
        Ok(RenderOutcome::Rendered(rendered)) => rendered,
        Ok(RenderOutcome::Needs(_)) => {
            return Err(format!("`{path}` makes external lookups, which are not allowed in a query"));
        }
        Err(fault) => return Err(fault.to_string()),
    };
    let answered = data.query_ad_hoc(rendered.expose(), None).map_err(|error| error.to_string())?;
    match variables::node_value(&answered.data) {
        Data::Map(fields) => Ok(fields.into_iter().next().map_or(Data::Null, |(_, value)| value)),
        other => Ok(other),
    }
}

/// Lookups that record the requested addresses.
struct RecordingLookups<L> {
    lookups: L,
    addresses: RefCell<BTreeSet<TemplateLookup>>,
}

impl<L> RecordingLookups<L> {
    fn new(lookups: L) -> Self {
        Self { lookups, addresses: RefCell::default() }
    }
}

impl<L: LookupSource> LookupSource for RecordingLookups<L> {
    fn answer(&self, address: &TemplateLookup) -> LookupState {
        self.addresses.borrow_mut().insert(address.clone());
        self.lookups.answer(address)
    }

    fn reveals_secrets(&self) -> bool {
        self.lookups.reveals_secrets()
    }
}

/// The lookups made so far, with each secret replaced by its address.
struct MaskedLookups<'a>(&'a BTreeMap<TemplateLookup, LookupState>);

impl LookupSource for MaskedLookups<'_> {
    fn answer(&self, address: &TemplateLookup) -> LookupState {
        if address.is_secret() {
            LookupState::Ready(Data::text(address.to_string()))
        } else {
            self.0.answer(address)
        }
    }

    fn reveals_secrets(&self) -> bool {
        false
    }
}

/// The lookups of [`MaskedLookups`], with addresses also in place of lookups that were not made because of
/// the value of a secret.
struct AddressLookups<'a>(&'a BTreeMap<TemplateLookup, LookupState>);

impl LookupSource for AddressLookups<'_> {
    fn answer(&self, address: &TemplateLookup) -> LookupState {
        match MaskedLookups(self.0).answer(address) {
            LookupState::Pending => LookupState::Ready(Data::text(address.to_string())),
            answer => answer,
        }
    }

    fn reveals_secrets(&self) -> bool {
        false
    }
}

/// The rendering of a template from the data alone.
pub enum Rendering {
    /// The rendered text.
    Text(String),
    /// The template needs external lookups and is rendered later.
    Deferred(Box<DeferredTemplate>),
}

/// Renders a template from the data alone.
pub fn render_declared(path: &str, source: TemplateSource, data: &Source) -> Result<Rendering, EntryError> {
    let queries = TemplateQueries::new(data);
    match render_once(path, &source, &queries) {
        Ok(RenderOutcome::Rendered(rendered)) => Ok(Rendering::Text(rendered.expose().to_owned())),
        Err(fault) => Err(entry_error(&fault)),
        Ok(RenderOutcome::Needs(needs)) => {
            // The result depends on external values in ways that cannot be predicted, so all inputs are
            // declared. With addresses in place of values, the template runs exactly the queries that do not
            // depend on those values.
            let lookups = RecordingLookups::new(DeclaredLookups(queries));
            let object = match render_once(path, &source, &lookups) {
                Ok(RenderOutcome::Rendered(rendered)) => parse::object(path, rendered.expose(), false).ok(),
                Ok(RenderOutcome::Needs(_)) => None,
                // An address might not have the type that the template expects, such as a map or a number.
                Err(fault) if matches!(fault.kind, Kind::Failed | Kind::Undefined | Kind::Raised) => None,
                Err(fault) => return Err(entry_error(&fault)),
            };
            let mut requested = lookups.addresses.into_inner();
            requested.extend(needs);
            let accounts = lookups::accounts(data, &requested)?;
            let answers = lookups.lookups.0.answers.into_inner();
            let parts = answers.iter().map(|(address, answer)| match answer {
                LookupState::Ready(data) => format!("{address} {}", comparison_text(data)),
                LookupState::Pending | LookupState::Failed(_) => address.to_string(),
            });
            let parts = parts.chain(accounts.iter().map(|(name, account)| format!("{name} {account:?}")));
            let parts: Vec<String> = parts.collect();
            let variables = comparison_text(&Data::Map(source.variables.clone()));
            let inputs = format!("{:?} {variables} {}", source.dialect, parts.join(" "));
            let source = TemplateSource { answers, accounts, lookups: requested, declared: object, ..source };
            let (path, text) = (path.to_owned(), source.text.clone());
            Ok(Rendering::Deferred(Box::new(DeferredTemplate { path, text, inputs, source })))
        }
    }
}

/// The object that a template resolves to.
pub struct ResolvedTemplate {
    /// The object.
    pub body: Value,
    /// Whether the object depends on a secret. If so, its kind, name and namespace equal those of the object
    /// that the data alone names.
    pub is_sensitive: bool,
}

/// Renders a template with external lookups.
pub async fn resolve_template(
    template: &DeferredTemplate,
    read: &ReadContext,
    outside: &ExternalLookups,
) -> Result<ResolvedTemplate, Fault> {
    let DeferredTemplate { path, source, .. } = template;
    let mut answers = source.answers.clone();
    for _ in 0..MAX_LOOKUP_ROUNDS {
        match render_once(path, source, &answers) {
            Ok(RenderOutcome::Rendered(rendered)) if rendered.is_sensitive => {
                let object = parse::object(path, rendered.expose(), true);
                return check_identity(template, &answers, object);
            }
            Ok(RenderOutcome::Rendered(rendered)) => {
                return Ok(ResolvedTemplate {
                    body: parse::object(path, rendered.expose(), false)?,
                    is_sensitive: false,
                });
            }
            Ok(RenderOutcome::Needs(mut needs)) => {
                // All external requests follow from a rendering without secrets and are sent before a secret
                // is read, so a secret cannot influence a request.
                let is_first_secret = !answers.keys().any(TemplateLookup::is_secret);
                let secrets = answers.keys().chain(&needs).filter(|address| address.is_secret()).count();
                let (knows_secrets, other_secrets) = (secrets > 0, secrets > 1);
                if is_first_secret && knows_secrets {
                    let outward = external_needs(template, &answers);
                    needs = if outward.is_empty() { needs } else { outward };
                }
                let untold = secret_dependent_needs(template, &answers, &needs);
                let round = LookupRound {
                    template,
                    read,
                    lookups: outside,
                    has_secrets: knows_secrets,
                    has_other_secrets: other_secrets,
                    secret_dependent: untold,
                };
                let more =
                    round.look_up(needs).await.map_err(|fault| fault.at(SourceLocation::resource(path)))?;
                answers.extend(more);
            }
            Err(fault) => return Err(author_fault(&fault)),
        }
    }
    Err(Fault::author(format!("`{path}` still needs lookups after {MAX_LOOKUP_ROUNDS} rounds")))
}

/// Accepts an object that was rendered from secrets only if it is the object that the data alone names.
///
/// **Invariant:** a secret determines neither the identity of the object nor whether it exists
/// (`a_template_may_not_take_an_identity_from_a_secret`).
fn check_identity(
    template: &DeferredTemplate,
    answers: &BTreeMap<TemplateLookup, LookupState>,
    object: Result<Value, Fault>,
) -> Result<ResolvedTemplate, Fault> {
    let DeferredTemplate { path, source, .. } = template;
    let rendered = match render_once(path, source, &AddressLookups(answers)) {
        Ok(RenderOutcome::Rendered(rendered)) => parse::object(path, rendered.expose(), false).ok(),
        Ok(RenderOutcome::Needs(_)) | Err(_) => None,
    };
    let Some(declared) = rendered else {
        // The rendering with addresses in place of secrets must also be an object, whatever the rendering
        // with secrets is.
        let text = format!(
            "`{path}` is not an object when secrets are replaced by their addresses, so a secret may decide which object it is"
        );
        return Err(Fault::author(text)
            .hint("render secrets as field values, without parsing a structure out of them"));
    };
    let body = object?;
    if identity(&body) != identity(&declared) {
        let text = format!(
            "`{path}` takes its `apiVersion`, `kind`, name or namespace from a secret, which is not allowed"
        );
        return Err(Fault::author(text).hint("write them in the template, or take them from variables"));
    }
    Ok(ResolvedTemplate { body, is_sensitive: true })
}

/// The fields that identify an object.
fn identity(body: &Value) -> [&Value; 5] {
    let metadata = &body["metadata"];
    [&body["apiVersion"], &body["kind"], &metadata["name"], &metadata["generateName"], &metadata["namespace"]]
}

fn render_once(
    path: &str,
    source: &TemplateSource,
    lookups: &dyn LookupSource,
) -> Result<RenderOutcome, qontract_template::TemplateFault> {
    let text = qontract_template::Source::new(path, &source.text).dialect(source.dialect);
    render(&RenderRequest::new(text, &source.variables), lookups)
}

/// The needed lookups that a secret may influence, once a template has read a secret: the lookups that a
/// rendering without secrets does not request, and all external lookups.
fn secret_dependent_needs(
    template: &DeferredTemplate,
    answers: &BTreeMap<TemplateLookup, LookupState>,
    needs: &BTreeSet<TemplateLookup>,
) -> BTreeSet<TemplateLookup> {
    if !answers.keys().any(TemplateLookup::is_secret) {
        return BTreeSet::new();
    }
    let lookups = RecordingLookups::new(MaskedLookups(answers));
    // The result is ignored: the addresses that were requested up to a failure do not depend on a secret.
    let _ = render_once(&template.path, &template.source, &lookups);
    let requested = lookups.addresses.into_inner();
    needs.iter().filter(|address| address.is_external() || !requested.contains(address)).cloned().collect()
}

/// The pending external lookups of a rendering with addresses in place of secrets.
fn external_needs(
    template: &DeferredTemplate,
    answers: &BTreeMap<TemplateLookup, LookupState>,
) -> BTreeSet<TemplateLookup> {
    let lookups = RecordingLookups::new(AddressLookups(answers));
    // The result is ignored: a lookup that this rendering does not reach is refused once a secret is read.
    let _ = render_once(&template.path, &template.source, &lookups);
    let requested = lookups.addresses.into_inner();
    let secrets: Vec<String> =
        requested.iter().filter(|address| address.is_secret()).map(ToString::to_string).collect();
    // An address that would contain a secret is skipped; it is refused once the secret is read.
    let has_secret = |address: &TemplateLookup| {
        let text = address.to_string();
        secrets.iter().any(|secret| text.contains(secret))
    };
    let is_new = |address: &&TemplateLookup| {
        address.is_external() && !answers.contains_key(*address) && !has_secret(address)
    };
    requested.iter().filter(is_new).cloned().collect()
}

/// One round of lookups for a template.
struct LookupRound<'a> {
    template: &'a DeferredTemplate,
    read: &'a ReadContext,
    lookups: &'a ExternalLookups,
    /// Whether the next rendering contains a secret. If so, errors of the rendering are not quoted.
    has_secrets: bool,
    /// Whether the next rendering contains more than one secret.
    has_other_secrets: bool,
    /// Addresses that a secret may influence.
    secret_dependent: BTreeSet<TemplateLookup>,
}

impl LookupRound<'_> {
    async fn look_up(
        &self,
        needs: BTreeSet<TemplateLookup>,
    ) -> Result<BTreeMap<TemplateLookup, LookupState>, Fault> {
        let mut answers = BTreeMap::new();
        for address in needs {
            let answer = match &address {
                TemplateLookup::Secret { allow_not_found, .. } => {
                    self.secret(&address, *allow_not_found).await?
                }
                TemplateLookup::Query { .. } => LookupState::Failed(
                    "whether this query runs depends on a secret: move it to where it always runs".to_owned(),
                ),
                TemplateLookup::Yesterday => match self.read.today().yesterday() {
                    Ok(date) => LookupState::Ready(Data::text(date.to_string())),
                    Err(_) => LookupState::Failed("cannot compute the day before today".to_owned()),
                },
                TemplateLookup::GithubFile { .. }
                | TemplateLookup::Url { .. }
                | TemplateLookup::S3Object { .. }
                | TemplateLookup::S3List { .. } => self.external(&address).await?,
            };
            answers.insert(address, answer);
        }
        Ok(answers)
    }

    /// Looks up a secret. An address that depends on another secret is not quoted.
    async fn secret(&self, address: &TemplateLookup, allow_not_found: bool) -> Result<LookupState, Fault> {
        let Some(lookup) = secret_lookup(address) else { return Ok(LookupState::Pending) };
        let path = &self.template.path;
        let answer = self.lookups.secret(self.read, &lookup, allow_not_found).await;
        if self.secret_dependent.contains(address) {
            return answer.map_err(|fault| {
                let text = format!(
                    "`{path}` needs a secret whose address depends on another secret, and it could not be read"
                );
                Fault { text, ..fault }
            });
        }
        match answer? {
            // The missing secret is reported here, because the error of a rendering with another secret does
            // not name it.
            LookupState::Failed(why) if self.has_other_secrets => {
                Err(Fault::author(format!("`{path}`: `{address}` could not be looked up: {why}")))
            }
            answer => Ok(answer),
        }
    }

    /// Looks up an external address. Secrets are never part of the request.
    async fn external(&self, address: &TemplateLookup) -> Result<LookupState, Fault> {
        let path = &self.template.path;
        if self.secret_dependent.contains(address) {
            let text = format!(
                "`{path}` makes an external lookup that depends on a secret: the request is not sent"
            );
            return Err(Fault::author(text));
        }
        match self.lookups.look_up(self.read, address, &self.template.source.accounts).await? {
            // The address contains no secret, so the error can be reported here.
            LookupState::Failed(why) if self.has_secrets => {
                Err(Fault::author(format!("`{path}`: `{address}` could not be looked up: {why}")))
            }
            answer => Ok(answer),
        }
    }
}

/// The reason why a template cannot be rendered from the data. An unsupported feature of Jinja2 is not a
/// mistake of the author, and the syntax is checked separately, without the data.
fn entry_error(fault: &qontract_template::TemplateFault) -> EntryError {
    let cause = match fault.kind {
        Kind::Undefined | Kind::Failed | Kind::Raised | Kind::Lookup => {
            InvalidCause::Template { line: fault.line, message: fault.message.clone() }
        }
        Kind::Syntax | Kind::Refused | Kind::Limit => InvalidCause::Other,
    };
    EntryError::new(author_fault(fault), cause)
}

/// The fault for a template that cannot be rendered, for its author to fix. The provenance of the fault is
/// the file of the template.
fn author_fault(fault: &qontract_template::TemplateFault) -> Fault {
    let qontract_template::TemplateFault { path, line, message, .. } = fault;
    let line = line.map(|line| format!(", line {line}")).unwrap_or_default();
    Fault::author(format!("cannot render `{path}`{line}: {message}")).at(SourceLocation::resource(path))
}

/// A value as a string, for comparison only.
fn comparison_text(data: &Data) -> String {
    match data {
        Data::Null => "null".to_owned(),
        Data::Bool(value) => value.to_string(),
        Data::Int(value) => value.to_string(),
        Data::Float(value) => format!("{value:?}"),
        Data::Text(text) => format!("{text:?}"),
        Data::List(items) => format!("[{}]", items.iter().map(comparison_text).collect::<Vec<_>>().join(",")),
        Data::Map(entries) => {
            let entries: Vec<String> =
                entries.iter().map(|(key, value)| format!("{key:?}:{}", comparison_text(value))).collect();
            format!("{{{}}}", entries.join(","))
        }
    }
}
