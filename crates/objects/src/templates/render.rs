//! Renders templates: from the data alone where possible, with external look-ups where needed.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use qontract_runtime::{Data as Source, Fault, Place, Read};
use qontract_template::{
    Address, Answer, Data, Declared, Kind, Lookups, Outcome, Request, Strictness, render,
};
use serde_json::Value;

use super::outside::{self, Outside};
use super::variables;
use crate::resources::entry::{Refusal, Template, TemplateSource, WrongCause, lookup};
use crate::resources::parse;

/// Maximum number of look-up rounds of a template.
const ROUNDS: usize = 8;

/// Runs the queries of templates against the data, and records the results.
pub(crate) struct Queries<'d> {
    data: &'d Source,
    answers: RefCell<BTreeMap<Address, Answer>>,
}

impl<'d> Queries<'d> {
    pub(crate) fn new(data: &'d Source) -> Self {
        Self { data, answers: RefCell::default() }
    }
}

impl Lookups for Queries<'_> {
    fn answer(&self, address: &Address) -> Answer {
        match address {
            Address::Query { path, variables } => match query(self.data, path, variables) {
                Ok(data) => {
                    let answer = Answer::Known(data);
                    self.answers.borrow_mut().insert(address.clone(), answer.clone());
                    answer
                }
                Err(why) => Answer::Failed(why),
            },
            _ => Answer::Unknown,
        }
    }
}

/// Runs the query in a resource and returns the first field of the result. The resource is itself a template.
fn query(data: &Source, path: &str, given: &BTreeMap<String, String>) -> Result<Data, String> {
    let text = data.resource(path).map_err(|error| error.to_string())?;
    let text = text.ok_or_else(|| format!("there is no resource `{path}`"))?;
    let given: Result<Vec<(String, Data)>, String> =
        given.iter().map(|(name, json)| Ok((name.clone(), variables::json(Some(json))?))).collect();
    let given = given?;
    let source = qontract_template::Source::new(path, &text);
    let request = Request { strictness: Strictness::Lenient, ..Request::new(source, &given) };
    let rendered = match render(&request, &BTreeMap::new()) {
        Ok(Outcome::Rendered(rendered)) => rendered,
        Ok(Outcome::Needs(_)) => {
            return Err(format!("`{path}` makes external look-ups, which are not allowed in a query"));
        }
        Err(fault) => return Err(fault.to_string()),
    };
    let answered = data.ad_hoc(rendered.expose(), None).map_err(|error| error.to_string())?;
    match variables::of_node(&answered.data) {
        Data::Map(fields) => Ok(fields.into_iter().next().map_or(Data::Null, |(_, value)| value)),
        other => Ok(other),
    }
}

/// Look-ups that record the requested addresses.
struct Recorded<L> {
    lookups: L,
    asked: RefCell<BTreeSet<Address>>,
}

impl<L> Recorded<L> {
    fn new(lookups: L) -> Self {
        Self { lookups, asked: RefCell::default() }
    }
}

impl<L: Lookups> Lookups for Recorded<L> {
    fn answer(&self, address: &Address) -> Answer {
        self.asked.borrow_mut().insert(address.clone());
        self.lookups.answer(address)
    }

    fn reveals_secrets(&self) -> bool {
        self.lookups.reveals_secrets()
    }
}

/// The look-ups made so far, with each secret replaced by its address.
struct WithoutSecrets<'a>(&'a BTreeMap<Address, Answer>);

impl Lookups for WithoutSecrets<'_> {
    fn answer(&self, address: &Address) -> Answer {
        if address.is_secret() {
            Answer::Known(Data::text(address.to_string()))
        } else {
            self.0.answer(address)
        }
    }

    fn reveals_secrets(&self) -> bool {
        false
    }
}

/// Like [`WithoutSecrets`], with addresses also for look-ups that were not made because a secret decided
/// against them.
struct AddressesForSecrets<'a>(&'a BTreeMap<Address, Answer>);

impl Lookups for AddressesForSecrets<'_> {
    fn answer(&self, address: &Address) -> Answer {
        match WithoutSecrets(self.0).answer(address) {
            Answer::Unknown => Answer::Known(Data::text(address.to_string())),
            answer => answer,
        }
    }

    fn reveals_secrets(&self) -> bool {
        false
    }
}

/// The rendering of a template from the data alone.
pub enum Told {
    /// The rendered text.
    Text(String),
    /// The template makes external look-ups: its result is not known yet.
    Unsettled(Box<Template>),
}

/// Renders a template from the data alone.
pub fn declared(path: &str, source: TemplateSource, data: &Source) -> Result<Told, Refusal> {
    let queries = Queries::new(data);
    match once(path, &source, &queries) {
        Ok(Outcome::Rendered(rendered)) => Ok(Told::Text(rendered.expose().to_owned())),
        Err(fault) => Err(refusal(&fault)),
        Ok(Outcome::Needs(needs)) => {
            // The result depends on external values in ways that cannot be predicted, so all inputs are
            // declared. With addresses in place of values, the template runs exactly the queries that do not
            // depend on those values.
            let lookups = Recorded::new(Declared(queries));
            let object = match once(path, &source, &lookups) {
                Ok(Outcome::Rendered(rendered)) => parse::object(path, rendered.expose(), false).ok(),
                Ok(Outcome::Needs(_)) => None,
                // An address may not be of the type that the template expects, such as a map or a number.
                Err(fault) if matches!(fault.kind, Kind::Failed | Kind::Undefined | Kind::Raised) => None,
                Err(fault) => return Err(refusal(&fault)),
            };
            let mut asked = lookups.asked.into_inner();
            asked.extend(needs);
            let accounts = outside::accounts(data, &asked)?;
            let answers = lookups.lookups.0.answers.into_inner();
            let parts = answers.iter().map(|(address, answer)| match answer {
                Answer::Known(data) => format!("{address} {}", shown(data)),
                Answer::Unknown | Answer::Failed(_) => address.to_string(),
            });
            let parts = parts.chain(accounts.iter().map(|(name, account)| format!("{name} {account:?}")));
            let parts: Vec<String> = parts.collect();
            let variables = shown(&Data::Map(source.variables.clone()));
            let inputs = format!("{:?} {variables} {}", source.dialect, parts.join(" "));
            let source = TemplateSource { answers, accounts, asked, declared: object, ..source };
            let (path, text) = (path.to_owned(), source.text.clone());
            Ok(Told::Unsettled(Box::new(Template { path, text, inputs, source })))
        }
    }
}

/// The object that a template resolves to.
pub struct Settled {
    /// The object.
    pub body: Value,
    /// Whether it depends on a secret. Then kind, name and namespace equal those of the object that the data
    /// alone names.
    pub is_sensitive: bool,
}

/// Renders a template with external look-ups.
pub async fn settled(template: &Template, read: &Read, outside: &Outside) -> Result<Settled, Fault> {
    let Template { path, source, .. } = template;
    let mut answers = source.answers.clone();
    for _ in 0..ROUNDS {
        match once(path, source, &answers) {
            Ok(Outcome::Rendered(rendered)) if rendered.is_sensitive => {
                let object = parse::object(path, rendered.expose(), true);
                return with_own_identity(template, &answers, object);
            }
            Ok(Outcome::Rendered(rendered)) => {
                return Ok(Settled {
                    body: parse::object(path, rendered.expose(), false)?,
                    is_sensitive: false,
                });
            }
            Ok(Outcome::Needs(mut needs)) => {
                // All external requests are made before a secret is read, from a rendering without secrets:
                // so a secret cannot influence a request.
                let is_first_secret = !answers.keys().any(Address::is_secret);
                let secrets = answers.keys().chain(&needs).filter(|address| address.is_secret()).count();
                let (knows_secrets, other_secrets) = (secrets > 0, secrets > 1);
                if is_first_secret && knows_secrets {
                    let outward = outward_needs(template, &answers);
                    needs = if outward.is_empty() { needs } else { outward };
                }
                let untold = untold(template, &answers, &needs);
                let round = Round { template, read, outside, knows_secrets, other_secrets, untold };
                let more = round.look_up(needs).await.map_err(|fault| fault.at(Place::resource(path)))?;
                answers.extend(more);
            }
            Err(fault) => return Err(author(&fault)),
        }
    }
    Err(Fault::author(format!("`{path}` still needs look-ups after {ROUNDS} rounds")))
}

/// Accepts an object that was rendered from secrets only if it is the one that the data alone names.
///
/// **Invariant:** a secret decides neither which object it is nor whether it exists
/// (`a_template_may_not_take_an_identity_from_a_secret`).
fn with_own_identity(
    template: &Template,
    answers: &BTreeMap<Address, Answer>,
    object: Result<Value, Fault>,
) -> Result<Settled, Fault> {
    let Template { path, source, .. } = template;
    let rendered = match once(path, source, &AddressesForSecrets(answers)) {
        Ok(Outcome::Rendered(rendered)) => parse::object(path, rendered.expose(), false).ok(),
        Ok(Outcome::Needs(_)) | Err(_) => None,
    };
    let Some(declared) = rendered else {
        // Regardless of the rendering with secrets, the one with their addresses must be an object, too.
        let text = format!(
            "`{path}` is not an object when secrets are replaced by their addresses, so it is unknown whether a secret decides which object it is"
        );
        return Err(Fault::author(text)
            .hint("render secrets as field values, without parsing a structure out of them"));
    };
    let body = object?;
    if identity(&body) != identity(&declared) {
        let text = format!(
            "`{path}` takes its `apiVersion`, `kind`, name or namespace from a secret, which is refused"
        );
        return Err(Fault::author(text).hint("write them in the template, or take them from variables"));
    }
    Ok(Settled { body, is_sensitive: true })
}

/// The fields that identify an object.
fn identity(body: &Value) -> [&Value; 5] {
    let metadata = &body["metadata"];
    [&body["apiVersion"], &body["kind"], &metadata["name"], &metadata["generateName"], &metadata["namespace"]]
}

fn once(
    path: &str,
    source: &TemplateSource,
    lookups: &dyn Lookups,
) -> Result<Outcome, qontract_template::Fault> {
    let text = qontract_template::Source::new(path, &source.text).dialect(source.dialect);
    render(&Request::new(text, &source.variables), lookups)
}

/// The needed look-ups that a secret may influence, once a template has read one: those that a rendering
/// without secrets does not request, and all external ones.
fn untold(
    template: &Template,
    answers: &BTreeMap<Address, Answer>,
    needs: &BTreeSet<Address>,
) -> BTreeSet<Address> {
    if !answers.keys().any(Address::is_secret) {
        return BTreeSet::new();
    }
    let lookups = Recorded::new(WithoutSecrets(answers));
    // The result is ignored: addresses requested until then do not depend on a secret.
    let _ = once(&template.path, &template.source, &lookups);
    let asked = lookups.asked.into_inner();
    needs.iter().filter(|address| address.is_outward() || !asked.contains(address)).cloned().collect()
}

/// The pending external look-ups of a rendering with addresses in place of secrets.
fn outward_needs(template: &Template, answers: &BTreeMap<Address, Answer>) -> BTreeSet<Address> {
    let lookups = Recorded::new(AddressesForSecrets(answers));
    // The result is ignored: a look-up that this rendering does not reach is refused once a secret is read.
    let _ = once(&template.path, &template.source, &lookups);
    let asked = lookups.asked.into_inner();
    let secrets: Vec<String> =
        asked.iter().filter(|address| address.is_secret()).map(ToString::to_string).collect();
    // An address that would contain a secret is skipped; it is refused once the secret is read.
    let has_secret = |address: &Address| {
        let text = address.to_string();
        secrets.iter().any(|secret| text.contains(secret))
    };
    let is_new =
        |address: &&Address| address.is_outward() && !answers.contains_key(*address) && !has_secret(address);
    asked.iter().filter(is_new).cloned().collect()
}

/// One round of look-ups for a template.
struct Round<'a> {
    template: &'a Template,
    read: &'a Read,
    outside: &'a Outside,
    /// Whether the next rendering contains a secret. Its errors are then not quoted.
    knows_secrets: bool,
    /// Whether it contains more than one secret.
    other_secrets: bool,
    /// Addresses that a secret may influence.
    untold: BTreeSet<Address>,
}

impl Round<'_> {
    async fn look_up(&self, needs: BTreeSet<Address>) -> Result<BTreeMap<Address, Answer>, Fault> {
        let mut answers = BTreeMap::new();
        for address in needs {
            let answer = match &address {
                Address::Secret { allow_not_found, .. } => self.secret(&address, *allow_not_found).await?,
                Address::Query { .. } => Answer::Failed(
                    "whether this query runs depends on a secret: move it to where it always runs".to_owned(),
                ),
                Address::Yesterday => match self.read.today.yesterday() {
                    Ok(date) => Answer::Known(Data::text(date.to_string())),
                    Err(_) => Answer::Failed("there is no day before today".to_owned()),
                },
                Address::GithubFile { .. }
                | Address::Url { .. }
                | Address::S3Object { .. }
                | Address::S3List { .. } => self.outward(&address).await?,
            };
            answers.insert(address, answer);
        }
        Ok(answers)
    }

    /// Looks up a secret. An address that depends on another secret is not quoted.
    async fn secret(&self, address: &Address, allow_not_found: bool) -> Result<Answer, Fault> {
        let Some(lookup) = lookup(address) else { return Ok(Answer::Unknown) };
        let path = &self.template.path;
        let answer = self.outside.secret(self.read, &lookup, allow_not_found).await;
        if self.untold.contains(address) {
            return answer.map_err(|fault| {
                let text = format!(
                    "`{path}` needs a secret whose address depends on another secret, and it could not be read"
                );
                Fault { text, ..fault }
            });
        }
        match answer? {
            // Reported here, since the error of a rendering with another secret does not name the missing
            // one.
            Answer::Failed(why) if self.other_secrets => {
                Err(Fault::author(format!("`{path}`: `{address}` could not be looked up: {why}")))
            }
            answer => Ok(answer),
        }
    }

    /// Looks up an external address. Secrets are never part of the request.
    async fn outward(&self, address: &Address) -> Result<Answer, Fault> {
        let path = &self.template.path;
        if self.untold.contains(address) {
            let text = format!(
                "`{path}` makes an external look-up that depends on a secret: the request is not sent"
            );
            return Err(Fault::author(text));
        }
        match self.outside.outward(self.read, address, &self.template.source.accounts).await? {
            // The address contains no secret, so the error can be reported here.
            Answer::Failed(why) if self.knows_secrets => {
                Err(Fault::author(format!("`{path}`: `{address}` could not be looked up: {why}")))
            }
            answer => Ok(answer),
        }
    }
}

/// The reason why a template cannot be rendered from the data. Features of Jinja2 that are not supported are
/// not the author's mistake, and syntax is checked without the data.
fn refusal(fault: &qontract_template::Fault) -> Refusal {
    let cause = match fault.kind {
        Kind::Undefined | Kind::Failed | Kind::Raised | Kind::LookUp => {
            WrongCause::Template { line: fault.line, message: fault.message.clone() }
        }
        Kind::Syntax | Kind::Refused | Kind::Limit => WrongCause::Other,
    };
    Refusal::new(author(fault), cause)
}

/// The fault for a template that does not render: its author has to act. The provenance is its file.
fn author(fault: &qontract_template::Fault) -> Fault {
    let qontract_template::Fault { path, line, message, .. } = fault;
    let line = line.map(|line| format!(", line {line}")).unwrap_or_default();
    Fault::author(format!("cannot render `{path}`{line}: {message}")).at(Place::resource(path))
}

/// A value as text, for comparison only.
fn shown(data: &Data) -> String {
    match data {
        Data::Null => "null".to_owned(),
        Data::Bool(value) => value.to_string(),
        Data::Int(value) => value.to_string(),
        Data::Float(value) => format!("{value:?}"),
        Data::Text(text) => format!("{text:?}"),
        Data::List(items) => format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(",")),
        Data::Map(entries) => {
            let entries: Vec<String> =
                entries.iter().map(|(key, value)| format!("{key:?}:{}", shown(value))).collect();
            format!("{{{}}}", entries.join(","))
        }
    }
}
