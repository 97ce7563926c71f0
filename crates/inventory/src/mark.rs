//! Marks: the ownership annotations of objects that we write, with the hash of the declared object.
//!
//! Marks are the same as in qontract-reconcile, so that both programs recognize each other's objects.

use qontract_bundle::Sha256;
use serde_json::{Map, Value};

use crate::names::marks_of;

/// The integration that wrote the object.
pub const INTEGRATION: &str = "qontract.integration";
/// The version of the integration that wrote the object.
pub const VERSION: &str = "qontract.integration_version";
/// The hash of the declared object.
pub const SHA256SUM: &str = "qontract.sha256sum";
/// The time of the write, in UTC.
pub const UPDATE: &str = "qontract.update";
/// The caller: a saas file, an account, an upstream.
pub const CALLER: &str = "qontract.caller_name";

/// Set if the object was rendered from a secret at any time. The values of such an object are never shown.
pub const SENSITIVE: &str = "qontract.sensitive";

/// The cause of a pending restart of the workloads that use the object.
pub const RECYCLE_PENDING: &str = "qontract.recycle_pending";

/// All marks.
pub(crate) const MARK_ANNOTATIONS: [&str; 5] = [INTEGRATION, VERSION, SHA256SUM, UPDATE, CALLER];

/// The annotation of `kubectl apply`.
pub(crate) const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Fields of `metadata` that only the API server writes.
pub(crate) const SERVER_FIELDS: [&str; 6] =
    ["creationTimestamp", "resourceVersion", "generation", "selfLink", "uid", "managedFields"];

/// The error for a version that is not of the form `1.2.3`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a version of the form `1.2.3`")]
pub struct InvalidVersion(String);

/// The owner of the objects that a run writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    integration: String,
    version: String,
    major: u64,
    caller: Option<String>,
}

impl Owner {
    /// The owner for an integration with this name in the mark and this version.
    pub fn new(
        integration: impl Into<String>,
        version: impl Into<String>,
        caller: Option<String>,
    ) -> Result<Self, InvalidVersion> {
        let version = version.into();
        let major = major(&version).ok_or_else(|| InvalidVersion(version.clone()))?;
        Ok(Self {
            integration: integration.into(),
            version,
            major,
            caller: caller.filter(|it| !it.is_empty()),
        })
    }

    /// The owner for an integration, by its command-line name; `None` if the integration does not mark
    /// objects.
    pub fn of(integration: &str, caller: Option<String>) -> Option<Self> {
        let (name, version) = marks_of(integration)?;
        Self::new(name, version, caller).ok()
    }

    /// The integration's name in the mark.
    pub fn integration(&self) -> &str {
        &self.integration
    }

    /// The integration's version.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The caller, if the integration has several.
    pub fn caller(&self) -> Option<&str> {
        self.caller.as_deref()
    }
}

/// The mark of a live object.
///
/// ```
/// use qontract_inventory::{Owner, OwnerMark, canonical, stamp};
/// # use serde_json::json;
/// let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "1"}});
/// let owner = Owner::new("groups", "0.1.0", None)?;
/// let stamped = stamp(&body, &owner, &canonical(&body)?.sha256, "2026-01-01T12:00:00");
///
/// let mark = OwnerMark::of(&stamped).expect("the body is marked");
/// assert!(mark.is_managed_by(&owner));
/// assert!(!mark.is_managed_by(&Owner::new("groups", "1.0.0", None)?), "another major version");
/// assert_eq!(canonical(&stamped)?, canonical(&body)?, "marks are not part of the canonical form");
/// assert_eq!(OwnerMark::of(&body), None);
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerMark {
    /// The integration's name. An object without this annotation is unmarked, regardless of its other
    /// annotations.
    pub integration: String,
    /// The version of the integration that wrote the object.
    pub version: Option<String>,
    /// The hash of the declared object.
    pub sha256sum: Option<String>,
    /// The time of the write.
    pub update: Option<String>,
    /// The caller.
    pub caller: Option<String>,
}

impl OwnerMark {
    /// Reads the mark of an object; an empty annotation counts as missing.
    pub fn of(object: &Value) -> Option<Self> {
        let text = |name: &str| annotation(object, name).filter(|it| !it.is_empty()).map(str::to_owned);
        Some(Self {
            integration: text(INTEGRATION)?,
            version: text(VERSION),
            sha256sum: text(SHA256SUM),
            update: text(UPDATE),
            caller: text(CALLER),
        })
    }

    /// Whether the object is managed by the integration of this owner: its mark has the same name, the same
    /// major version and a hash.
    ///
    /// The caller is not considered.
    pub fn is_managed_by(&self, owner: &Owner) -> bool {
        self.integration == owner.integration && self.sha256sum.is_some() && self.has_major_of(owner)
    }

    /// Whether the object was written by the major version of `owner`.
    pub(crate) fn has_major_of(&self, owner: &Owner) -> bool {
        self.version.as_deref().and_then(major) == Some(owner.major)
    }
}

/// Prepares a body for writing: adds the marks of `owner`, and removes previous marks and server-populated
/// fields.
///
/// `now` is UTC in seconds, as in `2024-05-01T12:00:00`.
pub fn stamp(body: &Value, owner: &Owner, sha256: &Sha256, now: &str) -> Value {
    let mut body = add_marks(body, owner, sha256);
    set_update_time(&mut body, now);
    body
}

/// Sets the time of writing of a body with marks.
pub(crate) fn set_update_time(body: &mut Value, now: &str) {
    let annotations = metadata(body).and_then(|metadata| metadata.get_mut("annotations"));
    if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
        annotations.insert(UPDATE.to_owned(), now.into());
    }
}

/// The body with all marks of `owner` except the time of writing, and without previous marks and
/// server-populated fields.
pub(crate) fn add_marks(body: &Value, owner: &Owner, sha256: &Sha256) -> Value {
    let mut body = body.clone();
    let Some(metadata) = metadata(&mut body) else { return body };
    for name in SERVER_FIELDS {
        metadata.remove(name);
    }
    let annotations = metadata.entry("annotations").or_insert(Value::Null);
    if !annotations.is_object() {
        *annotations = Value::Object(Map::new());
    }
    let Some(annotations) = annotations.as_object_mut() else { return body };
    for name in MARK_ANNOTATIONS.into_iter().chain([LAST_APPLIED]) {
        annotations.remove(name);
    }
    annotations.insert(INTEGRATION.to_owned(), owner.integration.as_str().into());
    annotations.insert(VERSION.to_owned(), owner.version.as_str().into());
    annotations.insert(SHA256SUM.to_owned(), sha256.to_string().into());
    if let Some(caller) = &owner.caller {
        annotations.insert(CALLER.to_owned(), caller.as_str().into());
    }
    body
}

/// Reads an annotation of an object.
pub(crate) fn annotation<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object.get("metadata")?.get("annotations")?.get(name)?.as_str()
}

fn metadata(body: &mut Value) -> Option<&mut Map<String, Value>> {
    body.get_mut("metadata")?.as_object_mut()
}

/// The major version of a version such as `1.2.3`, which may be followed by `-` or `+` and other text.
fn major(version: &str) -> Option<u64> {
    let core = version.split(['-', '+']).next()?;
    let numbers: Vec<&str> = core.split('.').collect();
    let is_number = |text: &&str| {
        !text.is_empty()
            && text.bytes().all(|one| one.is_ascii_digit())
            && (text.len() == 1 || !text.starts_with('0'))
    };
    (numbers.len() == 3 && numbers.iter().all(is_number)).then(|| numbers[0].parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::{InvalidVersion, Owner, OwnerMark, stamp};
    use qontract_bundle::Sha256;
    use serde_json::{Value, json};

    fn owner(caller: Option<&str>) -> Owner {
        Owner::new("openshift_resources", "1.9.3", caller.map(str::to_owned)).unwrap()
    }

    /// Whether an object with these annotations is managed by `openshift_resources` 1.9.3.
    fn check(annotations: &Value, expect: Option<bool>) {
        let mark = OwnerMark::of(&json!({"metadata": {"annotations": annotations}}));
        assert_eq!(mark.map(|mark| mark.is_managed_by(&owner(None))), expect, "{annotations}");
    }

    #[test]
    fn name_major_version_and_hash_make_an_object_managed() {
        let mark = |version: &str| {
            json!({"qontract.integration": "openshift_resources", "qontract.integration_version": version,
                "qontract.sha256sum": "x"})
        };
        check(&mark("1.9.3"), Some(true));
        check(&mark("1.0.0-rc.1+2"), Some(true));
        check(&mark("2.0.0"), Some(false));
        check(&mark("1.9"), Some(false));
        check(&mark("01.9.3"), Some(false));
        check(&mark(""), Some(false));
        check(
            &json!({"qontract.integration": "openshift_resources", "qontract.integration_version": "1.9.3"}),
            Some(false),
        );
        check(
            &json!({"qontract.integration": "openshift-resources", "qontract.integration_version": "1.9.3",
            "qontract.sha256sum": "x"}),
            Some(false),
        );
    }

    #[test]
    fn without_an_integration_an_object_is_unmarked() {
        check(&Value::Null, None);
        check(&json!({"qontract.sha256sum": "x", "qontract.caller_name": "y"}), None);
        check(&json!({"qontract.integration": ""}), None);
        check(&json!({"qontract.integration": 1}), None);
        assert_eq!(OwnerMark::of(&json!("text")), None);
    }

    #[test]
    fn a_version_is_three_numbers() {
        for version in ["", "1", "1.2", "1.2.x", "1.2.3.4", "v1.2.3", "99999999999999999999.0.0"] {
            assert_eq!(Owner::new("x", version, None), Err(InvalidVersion(version.to_owned())));
        }
    }

    #[test]
    fn a_stamp_replaces_an_older_one() {
        let body = json!({"metadata": {"name": "a", "namespace": "n", "uid": "1", "managedFields": [], "annotations": {
            "a": "b", "qontract.caller_name": "old", "kubectl.kubernetes.io/last-applied-configuration": "{}"}}});
        let hash = Sha256::of(b"");
        let mut marks = json!({"a": "b", "qontract.integration": "openshift_resources",
            "qontract.integration_version": "1.9.3", "qontract.sha256sum": hash.to_string(),
            "qontract.update": "2024-05-01T12:00:00"});
        let expect =
            |marks: &Value| json!({"metadata": {"name": "a", "namespace": "n", "annotations": marks}});
        assert_eq!(stamp(&body, &owner(None), &hash, "2024-05-01T12:00:00"), expect(&marks));
        marks["qontract.caller_name"] = "me".into();
        assert_eq!(stamp(&body, &owner(Some("me")), &hash, "2024-05-01T12:00:00"), expect(&marks));
    }

    #[test]
    fn a_stamp_can_be_read_back() {
        let body = json!({"metadata": {"name": "a", "annotations": null}});
        let hash = Sha256::of(b"x");
        let mark = OwnerMark::of(&stamp(&body, &owner(Some("me")), &hash, "2024-05-01T12:00:00")).unwrap();
        assert!(mark.is_managed_by(&owner(None)));
        assert_eq!(mark.caller.as_deref(), Some("me"));
        assert_eq!(mark.sha256sum, Some(hash.to_string()));
    }
}
