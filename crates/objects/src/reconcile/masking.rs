//! Replaces values that are not shown by fingerprints, in objects that are recorded for replays.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use qontract_client_kubernetes::RECYCLED_ANNOTATION;
use qontract_inventory::canonical;
use qontract_runtime::replay::Fingerprints;
use serde_json::{Map, Value};

/// The fields of `metadata` that identify an object, or that the API server sets.
const IDENTITY: [&str; 9] = [
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "ownerReferences",
    "finalizers",
];

/// The fields of workloads whose values are never shown, because other programs write them.
const WORKLOAD_VALUES: [&str; 4] = ["value", "command", "args", "annotations"];

/// The values of a sensitive object that may be stored.
#[derive(Clone, Copy)]
pub struct Masking<'a> {
    /// The fingerprints.
    pub fingerprints: &'a Fingerprints,
    /// The object that the data declares, without secrets. A value that is equal in this object is public.
    pub public: Option<&'a Value>,
}

/// The location of a managed field.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ManagedField {
    /// In a Secret, outside of its content.
    OfSecret,
    /// In the content of a Secret.
    SecretData,
    /// In another object.
    Other,
}

/// An object without its content.
pub fn identity_only(body: &Value) -> Value {
    let fields = ["apiVersion", "kind", "metadata"];
    fields.into_iter().map(|field| (field.to_owned(), body[field].clone())).collect::<Map<_, _>>().into()
}

impl Masking<'_> {
    /// An object with fingerprints in place of its values. The identity of the object and our annotations are
    /// kept.
    pub fn object(self, body: &Value) -> Value {
        let is_secret = body["kind"] == "Secret";
        let Value::Object(fields) = body else { return Value::Null };
        // A live Secret has only `data`, even if the data repo declares `stringData`.
        let folded = self.public.filter(|_| is_secret).and_then(|public| canonical(public).ok());
        let masked = fields.iter().map(|(name, value)| {
            let folded_data = folded.as_ref().and_then(|form| form.object.get("data"));
            let public = folded_data.filter(|_| name == "data").or_else(|| self.public_field(name));
            let value = match name.as_str() {
                "apiVersion" | "kind" => value.clone(),
                "metadata" => self.within(public).metadata(value),
                "data" | "stringData" if is_secret => self.within(public).secret_data(name, value),
                "status" => return (name.clone(), Value::Null),
                _ => self.within(public).value(value),
            };
            (name.clone(), value)
        });
        masked.collect::<Map<_, _>>().into()
    }

    fn public_field(&self, name: &str) -> Option<&Value> {
        self.public.and_then(|public| public.get(name))
    }

    fn within<'p>(&'p self, public: Option<&'p Value>) -> Masking<'p> {
        Masking { fingerprints: self.fingerprints, public }
    }

    fn metadata(self, metadata: &Value) -> Value {
        let Value::Object(fields) = metadata else { return metadata.clone() };
        let masked = fields.iter().map(|(name, value)| {
            let public = self.public_field(name);
            let value = match (name.as_str(), value) {
                (name, value) if IDENTITY.contains(&name) => value.clone(),
                ("annotations" | "labels", Value::Object(notes)) => {
                    let notes = notes.iter().map(|(name, value)| {
                        let inner = self.within(public);
                        let is_argo = name == "app.kubernetes.io/part-of" && value == "argocd";
                        let is_owner = is_argo || name.starts_with("qontract.");
                        let public = inner.public_field(name);
                        let value = if is_owner { value.clone() } else { inner.within(public).value(value) };
                        (name.clone(), value)
                    });
                    notes.collect::<Map<_, _>>().into()
                }
                (_, value) => self.within(public).value(value),
            };
            (name.clone(), value)
        });
        masked.collect::<Map<_, _>>().into()
    }

    /// The content of a Secret, with fingerprints in place of the names and of the decoded values. The
    /// fingerprints of values are encoded as base64.
    fn secret_data(self, field: &str, data: &Value) -> Value {
        let Value::Object(fields) = data else { return self.value(data) };
        let masked = fields.iter().map(|(name, value)| {
            let public = self.public_field(name);
            let key = if public.is_some() { name.clone() } else { self.fingerprints.of(name.as_bytes()) };
            let value = match value.as_str() {
                Some(text) if public != Some(value) && field == "data" => {
                    let decoded = STANDARD.decode(text).unwrap_or_else(|_| text.as_bytes().to_vec());
                    STANDARD.encode(self.fingerprints.of(&decoded)).into()
                }
                _ => self.within(public).value(value),
            };
            (key, value)
        });
        masked.collect::<Map<_, _>>().into()
    }

    /// An object that was rendered from secrets, reduced to its identity, our annotations and one fingerprint
    /// of `content`.
    pub fn opaque(self, body: &Value, content: &Value) -> Value {
        let mut identity = identity_only(body);
        if let Some(metadata) = identity["metadata"].as_object_mut() {
            metadata.retain(|name, _| IDENTITY.contains(&name.as_str()) || name == "annotations");
            if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
                annotations.retain(|name, _| name.starts_with("qontract."));
            }
        }
        let content = canonical(content).map(|form| form.text).unwrap_or_default();
        identity["content"] = self.fingerprints.of(content.as_bytes()).into();
        identity
    }

    /// A value with fingerprints in place of all strings and numbers that are not public.
    fn value(self, value: &Value) -> Value {
        if self.public == Some(value) {
            return value.clone();
        }
        match value {
            Value::Null | Value::Bool(_) => value.clone(),
            Value::Number(number) => self.fingerprints.of(number.to_string().as_bytes()).into(),
            Value::String(text) => self.fingerprints.of(text.as_bytes()).into(),
            Value::Array(items) => {
                let public = |at: usize| self.public.and_then(|public| public.get(at));
                items.iter().enumerate().map(|(at, item)| self.within(public(at)).value(item)).collect()
            }
            Value::Object(fields) => {
                let masked = fields
                    .iter()
                    .map(|(name, value)| (name.clone(), self.within(self.public_field(name)).value(value)));
                masked.collect::<Map<_, _>>().into()
            }
        }
    }

    /// A workload that is only observed, reduced to the objects that it uses and the times of its restarts.
    pub fn workload(self, value: &Value) -> Value {
        match value {
            Value::Array(items) => items.iter().map(|item| self.workload(item)).collect(),
            Value::Object(fields) => {
                let masked = fields.iter().map(|(name, value)| {
                    let value = match value {
                        Value::Object(annotations) if name == "annotations" => {
                            let kept = annotations.iter().filter(|(name, _)| *name == RECYCLED_ANNOTATION);
                            kept.map(|(name, value)| (name.clone(), value.clone()))
                                .collect::<Map<_, _>>()
                                .into()
                        }
                        value if WORKLOAD_VALUES.contains(&name.as_str()) => self.value(value),
                        value => self.workload(value),
                    };
                    (name.clone(), value)
                });
                masked.collect::<Map<_, _>>().into()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
        }
    }

    /// Managed fields with fingerprints in place of the values of sets and of the names of the fields of a
    /// Secret.
    pub fn managed_fields(self, body: &Value, json: &str) -> String {
        let Ok(fields) = serde_json::from_str::<Value>(json) else { return "[]".to_owned() };
        let field = if body["kind"] == "Secret" { ManagedField::OfSecret } else { ManagedField::Other };
        self.masked_fields(&fields, field).to_string()
    }

    fn masked_fields(self, value: &Value, parent: ManagedField) -> Value {
        match value {
            Value::Array(items) => items.iter().map(|item| self.masked_fields(item, parent)).collect(),
            Value::Object(fields) => {
                let fields = fields.iter().map(|(name, below)| {
                    let masked = |text: &str| self.fingerprints.of(text.as_bytes());
                    let name = match name.split_once(':') {
                        Some(("v", item)) => format!("v:\"{}\"", masked(item)),
                        Some(("f", field)) if parent == ManagedField::SecretData => {
                            let declares =
                                |of: &str| self.public.is_some_and(|it| it[of].get(field).is_some());
                            let is_public = declares("data") || declares("stringData");
                            if is_public { name.clone() } else { format!("f:{}", masked(field)) }
                        }
                        _ => name.clone(),
                    };
                    let inner = match parent {
                        ManagedField::OfSecret if name == "f:data" || name == "f:stringData" => {
                            ManagedField::SecretData
                        }
                        ManagedField::OfSecret => ManagedField::OfSecret,
                        ManagedField::SecretData | ManagedField::Other => ManagedField::Other,
                    };
                    (name, self.masked_fields(below, inner))
                });
                fields.collect::<Map<_, _>>().into()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
        }
    }
}
