//! `extensions.qontract` of a GraphQL request: the requests that clients of qontract make in addition to GraphQL. A
//! request without this extension gets the response of qontract-server. Pure.

use std::collections::{BTreeMap, BTreeSet};

use qontract_bundle::json::JavaScriptWriter;
use qontract_bundle::{Map, Value};
use qontract_graphql::{Answer, ElementSelection, Engine, Footprint, OriginKind, Provenance, Request};

/// The key of the extension.
const NAME: &str = "qontract";
/// Maximum number of elements that a request can select.
const MAX_SELECTED: usize = 20_000;
/// Maximum number of schemas on an allow-list.
const MAX_ALLOWED_SCHEMAS: usize = 2_000;
/// The error code of a query that can read a schema that is not on the allow-list.
const FORBIDDEN_SCHEMA: &str = "FORBIDDEN_SCHEMA";

/// The form of the result that a request returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResultForm {
    /// The data of the response.
    #[default]
    Data,
    /// The data, with the source location of each object in it.
    DataWithLocations,
    /// Only the schemas of the objects that the query reads. The query is executed, and the data is dropped.
    ReadSchemas,
    /// Only the schemas that the query can read. They follow from the types, so the query is not executed.
    ReachableSchemas,
}

/// The extension of a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueryExtension {
    /// The form of the result.
    pub form: ResultForm,
    /// Restricts root lists to these datafiles.
    pub only: Option<ElementSelection>,
    /// The schemas that the query may read; `None` if it may read all schemas.
    pub allowed_schemas: Option<BTreeSet<String>>,
}

impl QueryExtension {
    /// Parses the extension in `extensions`, if there is one. The error names the invalid part.
    pub fn parse(extensions: &Map) -> Result<Option<Self>, String> {
        let fields = match extensions.get(NAME) {
            None => return Ok(None),
            Some(Value::Map(fields)) => fields,
            Some(_) => return Err(format!("`extensions.{NAME}` must be an object")),
        };
        let mut parsed = Self::default();
        let (mut locations, mut check, mut reachable) = (false, false, false);
        for (key, value) in fields.iter() {
            let key: &str = key.as_ref();
            match key {
                "locations" => locations = flag(key, value)?,
                "check" => check = flag(key, value)?,
                "reachable" => reachable = flag(key, value)?,
                "only" => parsed.only = Some(selection(value)?),
                "allowedSchemas" => parsed.allowed_schemas = Some(allow_list(value)?),
                _ => {
                    return Err(format!(
                        "`extensions.{NAME}` has an unknown field; it can have `locations`, `only`, `check`, `reachable` and `allowedSchemas`"
                    ));
                }
            }
        }
        parsed.form = match (locations, check, reachable) {
            (false, false, false) => ResultForm::Data,
            (true, false, false) => ResultForm::DataWithLocations,
            (false, true, false) => ResultForm::ReadSchemas,
            (false, false, true) => ResultForm::ReachableSchemas,
            _ => {
                return Err(format!(
                    "only one of `locations`, `check` and `reachable` can be true in `extensions.{NAME}`"
                ));
            }
        };
        Ok(Some(parsed))
    }

    /// A text with all settings that affect the response, for the key of the response cache.
    pub fn cache_key(&self) -> String {
        let Self { form, only, allowed_schemas } = self;
        // `Debug` of sorted collections of strings is unambiguous.
        format!("{form:?} {only:?} {allowed_schemas:?}")
    }

    /// Executes a request with this extension.
    pub fn answer(&self, engine: &Engine, request: Request<'_>) -> Answer {
        let request = Request {
            only_elements: self.only.as_ref(),
            provenance: self.form == ResultForm::DataWithLocations,
            ..request
        };
        let needs_footprint = self.allowed_schemas.is_some() || self.form == ResultForm::ReachableSchemas;
        let footprint = needs_footprint.then(|| engine.footprint(request)).transpose();
        // If the footprint cannot be computed, the query has errors, which the response also contains.
        let Ok(footprint) = footprint else { return engine.answer(request) };
        if let (Some(allowed), Some(footprint)) = (&self.allowed_schemas, &footprint) {
            let forbidden: BTreeSet<&str> = footprint
                .datafiles()
                .map(|(schema, _)| schema)
                .filter(|schema| !allowed.contains(*schema))
                .collect();
            if !forbidden.is_empty() {
                return forbidden_answer(request.operation, footprint, &forbidden);
            }
        }
        match (self.form, footprint) {
            (ResultForm::ReachableSchemas, Some(footprint)) => reachable_answer(&footprint),
            (ResultForm::ReadSchemas, _) => match engine.check(request) {
                Ok(checked) => schemas_answer(&checked.schemas),
                Err(_) => engine.answer(request),
            },
            (ResultForm::DataWithLocations, _) => {
                let mut answer = engine.answer(request);
                let origins = answer.provenance.take().unwrap_or_default();
                extend(&mut answer, |json| write_locations(&origins, json));
                answer
            }
            (ResultForm::Data | ResultForm::ReachableSchemas, _) => {
                let mut answer = engine.answer(request);
                extend(&mut answer, |json| json.raw("{}"));
                answer
            }
        }
    }
}

fn flag(key: &str, value: &Value) -> Result<bool, String> {
    match value {
        Value::Bool(flag) => Ok(*flag),
        _ => Err(format!("`extensions.{NAME}.{key}` must be a boolean")),
    }
}

fn selection(value: &Value) -> Result<ElementSelection, String> {
    let wrong = || format!("`extensions.{NAME}.only` must be an object of lists of paths");
    let mut selection = ElementSelection::new();
    let mut count = 0;
    for (list, paths) in value.as_map().ok_or_else(wrong)?.iter() {
        let paths = paths.as_list().ok_or_else(wrong)?;
        count += paths.len();
        if count > MAX_SELECTED {
            return Err(format!("`extensions.{NAME}.only` selects more than {MAX_SELECTED} elements"));
        }
        let paths = paths.iter().map(|path| path.as_str().map(Box::from).ok_or_else(wrong));
        let list: &str = list.as_ref();
        selection.insert(list.into(), paths.collect::<Result<_, _>>()?);
    }
    Ok(selection)
}

fn allow_list(value: &Value) -> Result<BTreeSet<String>, String> {
    let wrong = || format!("`extensions.{NAME}.allowedSchemas` must be a list of schemas");
    let schemas = value.as_list().ok_or_else(wrong)?;
    if schemas.len() > MAX_ALLOWED_SCHEMAS {
        return Err(format!(
            "`extensions.{NAME}.allowedSchemas` has more than {MAX_ALLOWED_SCHEMAS} schemas"
        ));
    }
    schemas.iter().map(|schema| schema.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
}

/// Adds the result of the extension to a response. An empty result is also added, because it shows clients that the
/// server supports the extension.
fn extend(answer: &mut Answer, write: impl FnOnce(&mut JavaScriptWriter<'_>)) {
    const END: &[u8] = b"}}\n";
    if !answer.body.ends_with(END) {
        return;
    }
    answer.body.truncate(answer.body.len() - END.len());
    let mut json = JavaScriptWriter(&mut answer.body);
    json.raw(",\"qontract\":");
    write(&mut json);
    json.raw("}}\n");
}

/// Writes the locations, grouped by file: `{"locations":{"datafiles":{FILE:{AT:POINTER}},"resources":{…}}}`.
fn write_locations(origins: &Provenance, json: &mut JavaScriptWriter<'_>) {
    let (mut datafiles, mut resources) = (BTreeMap::<&str, Vec<_>>::new(), BTreeMap::<&str, Vec<_>>::new());
    for origin in origins.origins() {
        let files = match origin.kind {
            OriginKind::Datafile => &mut datafiles,
            OriginKind::Resource => &mut resources,
        };
        files.entry(&origin.path).or_default().push(origin);
    }
    json.raw("{\"locations\":");
    for (kind, files) in [("{\"datafiles\":{", &datafiles), ("},\"resources\":{", &resources)] {
        json.raw(kind);
        for (number, (path, objects)) in files.iter().enumerate() {
            json.raw(if number > 0 { "," } else { "" });
            json.str(path);
            json.raw(":{");
            for (number, origin) in objects.iter().enumerate() {
                json.raw(if number > 0 { "," } else { "" });
                json.str(&origin.at);
                json.raw(":");
                json.str(&origin.pointer);
            }
            json.raw("}");
        }
    }
    json.raw("}}}");
}

fn answer_of(status: u16, body: Vec<u8>) -> Answer {
    let has_errors = status != 200;
    Answer { status, body, has_errors, rootless: None, provenance: None, touched: None }
}

fn write_list<'s>(json: &mut JavaScriptWriter<'_>, texts: impl IntoIterator<Item = &'s str>) {
    json.raw("[");
    for (number, text) in texts.into_iter().enumerate() {
        json.raw(if number > 0 { "," } else { "" });
        json.str(text);
    }
    json.raw("]");
}

fn schemas_answer(schemas: &[Box<str>]) -> Answer {
    let mut body = Vec::new();
    let mut json = JavaScriptWriter(&mut body);
    json.raw("{\"data\":{},\"extensions\":{\"schemas\":");
    write_list(&mut json, schemas.iter().map(|schema| &**schema));
    json.raw(",\"qontract\":{}}}\n");
    answer_of(200, body)
}

/// The schemas that a query can read, each with the GraphQL field through which the query reaches the schema.
fn reachable_answer(footprint: &Footprint) -> Answer {
    let mut body = Vec::new();
    let mut json = JavaScriptWriter(&mut body);
    json.raw("{\"data\":{},\"extensions\":{\"schemas\":[],\"qontract\":{\"reachable\":{");
    for (number, (schema, _)) in footprint.datafiles().enumerate() {
        json.raw(if number > 0 { "," } else { "" });
        json.str(schema);
        json.raw(":");
        json.str(&field_to(footprint, schema));
    }
    json.raw("}}}}\n");
    answer_of(200, body)
}

/// The field through which a query reaches a schema: `Type.field`.
fn field_to(footprint: &Footprint, schema: &str) -> String {
    footprint.first_field_to(schema).map(|(type_, field)| format!("{type_}.{field}")).unwrap_or_default()
}

/// The refusal of a query that can read schemas that are not on the allow-list. The message equals that of a run on a
/// bundle in the process of the run.
fn forbidden_answer(operation: Option<&str>, footprint: &Footprint, forbidden: &BTreeSet<&str>) -> Answer {
    let query = operation.map_or_else(|| "the query".to_owned(), |name| format!("the query `{name}`"));
    let violations: Vec<String> = forbidden
        .iter()
        .map(|schema| {
            let field = field_to(footprint, schema);
            format!("{query} can read `{schema}` through `{field}`, which is not listed")
        })
        .collect();
    let mut body = Vec::new();
    let mut json = JavaScriptWriter(&mut body);
    json.raw("{\"errors\":[{\"message\":");
    json.str(&violations.join("; "));
    json.raw(",\"extensions\":{\"code\":");
    json.str(FORBIDDEN_SCHEMA);
    json.raw(",\"schemas\":");
    write_list(&mut json, forbidden.iter().copied());
    json.raw("}}],\"extensions\":{\"schemas\":[],\"qontract\":{}}}\n");
    answer_of(400, body)
}

#[cfg(test)]
mod tests {
    use qontract_bundle::json::JsonParser;

    use super::*;

    fn check(extension: &str, expect: Result<QueryExtension, &str>) {
        let text = format!("{{\"qontract\":{extension}}}");
        let Value::Map(extensions) = JsonParser::new(&text).parse().expect("JSON") else { panic!("{text}") };
        let parsed = QueryExtension::parse(&extensions);
        assert_eq!(parsed, expect.map(Some).map_err(str::to_owned), "{extension}");
    }

    #[test]
    fn an_extension_selects_elements_and_the_form_of_the_result() {
        check("{}", Ok(QueryExtension::default()));
        let located = QueryExtension { form: ResultForm::DataWithLocations, ..QueryExtension::default() };
        check(r#"{"locations": true, "check": false}"#, Ok(located));
        let only = ElementSelection::from([("apps".into(), ["/a.yml".into()].into())]);
        let selected = QueryExtension { only: Some(only), ..QueryExtension::default() };
        check(r#"{"only": {"apps": ["/a.yml", "/a.yml"]}}"#, Ok(selected));
        let allowed = Some(["/a".to_owned()].into());
        let listed = QueryExtension { allowed_schemas: allowed, ..QueryExtension::default() };
        check(r#"{"allowedSchemas": ["/a"]}"#, Ok(listed));
    }

    #[test]
    fn a_wrong_extension_is_refused_with_the_name_of_the_part() {
        check("1", Err("`extensions.qontract` must be an object"));
        check("null", Err("`extensions.qontract` must be an object"));
        check(r#"{"locations": 1}"#, Err("`extensions.qontract.locations` must be a boolean"));
        check(
            r#"{"\u001b[31m": 1}"#,
            Err(
                "`extensions.qontract` has an unknown field; it can have `locations`, `only`, `check`, `reachable` and `allowedSchemas`",
            ),
        );
        check(
            r#"{"check": true, "locations": true}"#,
            Err("only one of `locations`, `check` and `reachable` can be true in `extensions.qontract`"),
        );
        for wrong in [r#"{"only": []}"#, r#"{"only": {"a": 1}}"#, r#"{"only": {"a": [1]}}"#] {
            check(wrong, Err("`extensions.qontract.only` must be an object of lists of paths"));
        }
        check(
            r#"{"allowedSchemas": {}}"#,
            Err("`extensions.qontract.allowedSchemas` must be a list of schemas"),
        );
        let many = vec!["\"/a\""; MAX_SELECTED + 1].join(",");
        check(
            &format!("{{\"only\": {{\"a\": [{many}]}}}}"),
            Err("`extensions.qontract.only` selects more than 20000 elements"),
        );
    }

    #[test]
    fn requests_with_different_results_have_different_keys() {
        let key = |form, only: Option<&[(&str, &str)]>| {
            let only = only.map(|only| {
                only.iter().map(|(list, path)| ((*list).into(), [(*path).into()].into())).collect()
            });
            QueryExtension { form, only, allowed_schemas: None }.cache_key()
        };
        let keys = [
            key(ResultForm::Data, None),
            key(ResultForm::DataWithLocations, None),
            key(ResultForm::Data, Some(&[])),
            key(ResultForm::Data, Some(&[("a", "b")])),
            key(ResultForm::Data, Some(&[("a", "b\", \"c")])),
        ];
        assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), keys.len(), "{keys:?}");
    }
}
