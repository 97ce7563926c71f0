//! Decides whether an entry of `openshiftResources` is a template.

use crate::source::Dialect;

/// The template dialect of an entry; `None` if its content is used unchanged.
pub fn entry_dialect(provider: &str, r#type: Option<&str>) -> Result<Option<Dialect>, String> {
    match (provider, r#type) {
        ("resource-template", None | Some("jinja2"))
        | ("prometheus-rule", Some("resource-template-jinja2")) => Ok(Some(Dialect::Jinja2)),
        ("resource-template", Some("extracurlyjinja2"))
        | ("prometheus-rule", Some("resource-template-extracurlyjinja2")) => Ok(Some(Dialect::ExtraCurly)),
        ("resource-template", Some(other)) => Err(format!("unknown template type `{other}`")),
        ("prometheus-rule", Some(other)) if other != "resource" => {
            Err(format!("unknown rule type `{other}`"))
        }
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::{Dialect, entry_dialect};

    fn check(provider: &str, r#type: Option<&str>, expect: Result<Option<Dialect>, &str>) {
        assert_eq!(entry_dialect(provider, r#type), expect.map_err(str::to_owned), "{provider} {type:?}");
    }

    #[test]
    fn provider_and_type_determine_the_dialect() {
        check("resource", None, Ok(None));
        check("route", None, Ok(None));
        check("resource-template", None, Ok(Some(Dialect::Jinja2)));
        check("resource-template", Some("jinja2"), Ok(Some(Dialect::Jinja2)));
        check("resource-template", Some("extracurlyjinja2"), Ok(Some(Dialect::ExtraCurly)));
        check("resource-template", Some("x"), Err("unknown template type `x`"));
        check("prometheus-rule", None, Ok(None));
        check("prometheus-rule", Some("resource"), Ok(None));
        check("prometheus-rule", Some("resource-template-jinja2"), Ok(Some(Dialect::Jinja2)));
        check("prometheus-rule", Some("resource-template-extracurlyjinja2"), Ok(Some(Dialect::ExtraCurly)));
        check("prometheus-rule", Some("jinja2"), Err("unknown rule type `jinja2`"));
    }
}
