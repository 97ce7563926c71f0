//! Templates: rendered from the data alone where that is possible, and with what lies outside where it is not.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use qontract_runtime::{Data as Source, Fault, Place, Read};
use qontract_template::{
    Address, Answer, Data, Declared, Kind, Lookups, Outcome, Rendered, Request, Strictness, render,
};

use crate::item::{Template, TemplateSource};
use crate::outside::{self, Outside};
use crate::variables;

/// So often a template may ask for more.
const ROUNDS: usize = 8;

/// Queries of templates, answered by the data; what they were answered is remembered.
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

/// The first field of the answer to the query that a resource holds. The resource is itself a template.
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
        Ok(Outcome::Needs(_)) => return Err(format!("`{path}` looks outside, which a query may not")),
        Err(fault) => return Err(fault.to_string()),
    };
    let answered = data.ad_hoc(rendered.expose(), None).map_err(|error| error.to_string())?;
    match variables::of_node(&answered.data) {
        Data::Map(fields) => Ok(fields.into_iter().next().map_or(Data::Null, |(_, value)| value)),
        other => Ok(other),
    }
}

/// Look-ups, and what was asked.
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
}

/// What was looked up, but for secrets: each of them is its address.
struct WithoutSecrets<'a>(&'a BTreeMap<Address, Answer>);

impl Lookups for WithoutSecrets<'_> {
    fn answer(&self, address: &Address) -> Answer {
        if address.is_secret() {
            Answer::Known(Data::text(address.to_string()))
        } else {
            self.0.answer(address)
        }
    }
}

/// What a template is, as far as the data alone tells.
pub enum Told {
    /// The text that it renders to.
    Text(String),
    /// It looks outside: what it comes to is not settled yet.
    Unsettled(Template),
}

/// Renders a template from the data alone.
pub fn declared(path: &str, source: TemplateSource, data: &Source) -> Result<Told, Fault> {
    let queries = Queries::new(data);
    match once(path, &source, &queries) {
        Ok(Outcome::Rendered(rendered)) => Ok(Told::Text(rendered.expose().to_owned())),
        Err(fault) => Err(author(&fault)),
        Ok(Outcome::Needs(needs)) => {
            // What it comes to depends on what lies outside, in ways that cannot be told: all that it is made of is declared. With addresses in place
            // of values, it asks the queries that it asks whatever those are.
            let lookups = Recorded::new(Declared(queries));
            match once(path, &source, &lookups) {
                Ok(_) => {}
                // An address is not always what a value is: a map, a number.
                Err(fault) if matches!(fault.kind, Kind::Failed | Kind::Undefined | Kind::Raised) => {}
                Err(fault) => return Err(author(&fault)),
            }
            let mut asked = lookups.asked.into_inner();
            asked.extend(needs);
            let accounts = outside::accounts(data, &asked)?;
            let answers = lookups.lookups.0.answers.into_inner();
            let told = answers.iter().map(|(address, answer)| match answer {
                Answer::Known(data) => format!("{address} {}", shown(data)),
                Answer::Unknown | Answer::Failed(_) => address.to_string(),
            });
            let told = told.chain(accounts.iter().map(|(name, account)| format!("{name} {account:?}")));
            let told: Vec<String> = told.collect();
            let variables = shown(&Data::Map(source.variables.clone()));
            let inputs = format!("{:?} {variables} {}", source.dialect, told.join(" "));
            let source = TemplateSource { answers, accounts, ..source };
            Ok(Told::Unsettled(Template { path: path.to_owned(), text: source.text.clone(), inputs, source }))
        }
    }
}

/// Renders a template with what lies outside.
pub async fn settled(template: &Template, read: &Read, outside: &Outside) -> Result<Rendered, Fault> {
    let Template { path, source, .. } = template;
    let mut answers = source.answers.clone();
    for _ in 0..ROUNDS {
        match once(path, source, &answers) {
            Ok(Outcome::Rendered(rendered)) => return Ok(rendered),
            Ok(Outcome::Needs(needs)) => {
                let knows_secrets = answers.keys().chain(&needs).any(Address::is_secret);
                let untold = untold(template, &answers, &needs);
                let round = Round { template, read, outside, knows_secrets, untold };
                let more = round.look_up(needs).await.map_err(|fault| fault.at(Place::resource(path)))?;
                answers.extend(more);
            }
            Err(fault) => return Err(author(&fault)),
        }
    }
    Err(Fault::author(format!("`{path}` asks for more after {ROUNDS} rounds of looking up")))
}

fn once(
    path: &str,
    source: &TemplateSource,
    lookups: &dyn Lookups,
) -> Result<Outcome, qontract_template::Fault> {
    let text = qontract_template::Source::new(path, &source.text).dialect(source.dialect);
    render(&Request::new(text, &source.variables), lookups)
}

/// Of what is needed, what a template that knows no secret would not ask for: a secret may be part of such an address.
fn untold(
    template: &Template,
    answers: &BTreeMap<Address, Answer>,
    needs: &BTreeSet<Address>,
) -> BTreeSet<Address> {
    if !answers.keys().any(Address::is_secret) {
        return BTreeSet::new();
    }
    let lookups = Recorded::new(WithoutSecrets(answers));
    // However it ends: what it asked for until then, it asked for without a secret.
    let _ = once(&template.path, &template.source, &lookups);
    needs.difference(&lookups.asked.into_inner()).cloned().collect()
}

/// One round of looking up what a template needs.
struct Round<'a> {
    template: &'a Template,
    read: &'a Read,
    outside: &'a Outside,
    /// Whether the next rendering knows a secret, and tells nothing then.
    knows_secrets: bool,
    /// What a secret may be part of.
    untold: BTreeSet<Address>,
}

impl Round<'_> {
    async fn look_up(&self, needs: BTreeSet<Address>) -> Result<BTreeMap<Address, Answer>, Fault> {
        let mut answers = BTreeMap::new();
        for address in needs {
            let answer = match &address {
                Address::Secret { path, key, version, allow_not_found } => {
                    let secret = (path.as_str(), key.as_str(), version.as_deref(), *allow_not_found);
                    self.outside.secret(self.read, secret).await?
                }
                Address::Query { .. } => Answer::Failed(
                    "it depends on a secret whether it is asked: ask it where it is asked in any case"
                        .to_owned(),
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

    /// What lies at an address outside, to which no secret is sent.
    async fn outward(&self, address: &Address) -> Result<Answer, Fault> {
        let path = &self.template.path;
        if self.untold.contains(address) {
            let text = format!("`{path}` asks outside for what depends on a secret: that is not sent");
            return Err(Fault::author(text));
        }
        match self.outside.outward(self.read, address, &self.template.source.accounts).await? {
            // No secret is part of it, so that it can be told here.
            Answer::Failed(why) if self.knows_secrets => {
                Err(Fault::author(format!("`{path}`: `{address}` could not be looked up: {why}")))
            }
            answer => Ok(answer),
        }
    }
}

/// A template that is not rendered is its author's to mend; the place is its file.
fn author(fault: &qontract_template::Fault) -> Fault {
    Fault::author(fault.to_string()).at(Place::resource(&fault.path))
}

/// A value as text, for comparison alone.
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
