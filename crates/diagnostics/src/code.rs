//! The table of codes, with one code for each kind of finding.
//!
//! The explanation of a code is `codes/Qnnnn.md` in this crate. A test of the binary runs the example of each
//! explanation, so that the explanations and the program agree.
//!
//! | range | findings about |
//! |---|---|
//! | Q1000–Q1999 | a single YAML file |
//! | Q2000–Q2039 | the data repo as a whole, and bundles |
//! | Q2040–Q2099 | references, uniqueness, resources and templates |
//! | Q3000–Q3099 | datafiles and their JSON Schemas |
//! | Q3100–Q3199 | JSON Schemas and GraphQL types themselves |
//! | Q4000–Q4999 | valid data that is probably a mistake |

use std::fmt;

use crate::diagnostic::Severity;

/// The number of a kind of finding, displayed as `Q1001`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code(u16);

/// A code with its severity and explanation.
#[derive(Debug)]
pub struct CodeEntry {
    /// The code itself.
    pub code: Code,
    /// The default severity of findings with this code.
    pub severity: Severity,
    /// The explanation, in Markdown; its first line is the title.
    pub text: &'static str,
}

impl CodeEntry {
    /// The first line of the explanation, without the heading mark.
    pub fn title(&self) -> &'static str {
        self.text.lines().next().unwrap_or_default().trim_start_matches("# ")
    }
}

impl Code {
    /// The table entry of this code.
    pub fn entry(self) -> &'static CodeEntry {
        let row = TABLE.binary_search_by_key(&self, |entry| entry.code);
        &TABLE[row.expect("only the table creates codes")]
    }

    /// Parses a code such as `Q1001`. `None` if the table does not have it.
    ///
    /// ```
    /// use qontract_diagnostics::Code;
    /// assert_eq!(Code::parse("q1001").map(|code| code.to_string()), Some("Q1001".to_owned()));
    /// assert_eq!(Code::parse("Q0000"), None);
    /// ```
    pub fn parse(written: &str) -> Option<Self> {
        let digits = written.strip_prefix(['Q', 'q'])?;
        let code = Code(digits.parse().ok().filter(|_| digits.len() == 4)?);
        TABLE.binary_search_by_key(&code, |entry| entry.code).ok().map(|_| code)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Q{:04}", self.0)
    }
}

macro_rules! table {
    ($($(#[$doc:meta])+ $name:ident = $number:literal $severity:ident;)+) => {
        $($(#[$doc])+ pub const $name: Code = Code($number);)+

        /// Every code, by number.
        pub static TABLE: &[CodeEntry] = &[
            $(CodeEntry {
                code: $name,
                severity: Severity::$severity,
                text: include_str!(concat!("../codes/Q", $number, ".md")),
            },)+
        ];
    };
}

table! {
    /// The file is not valid YAML.
    YAML_SYNTAX = 1001 Error;
    /// The file contains characters that YAML does not allow.
    YAML_ENCODING = 1002 Error;
    /// The file is too large.
    YAML_SIZE = 1003 Error;
    /// The values are nested too deeply.
    YAML_DEPTH = 1004 Error;
    /// The aliases expand to too much data.
    YAML_EXPANSION = 1005 Error;
    /// The file contains more than one document.
    YAML_DOCUMENTS = 1006 Error;
    /// An unquoted date.
    YAML_DATE = 1007 Error;
    /// A YAML tag.
    YAML_TAG = 1008 Error;
    /// A key that is not a string.
    YAML_KEY = 1009 Error;
    /// A duplicate key.
    YAML_DUPLICATE_KEY = 1010 Warning;
    /// A number that has no value.
    YAML_NUMBER = 1011 Error;
    /// An alias inside the value to which it refers.
    YAML_CYCLE = 1012 Error;
    /// An anchor defined twice.
    YAML_DUPLICATE_ANCHOR = 1013 Error;
    /// A merge key that cannot merge.
    YAML_MERGE = 1014 Error;
    /// A construct on which YAML parsers disagree.
    YAML_AMBIGUOUS = 1015 Error;
    /// Infinity or NaN, which JSON cannot represent.
    YAML_NOT_FINITE = 1016 Error;
    /// A file whose top level is not a map.
    NOT_A_MAP = 2001 Error;
    /// An empty file. Bundling alone reports it as a warning.
    EMPTY_FILE = 2002 Error;
    /// A symbolic link that leaves the data repo.
    LINK_OUTSIDE = 2003 Error;
    /// A symbolic link that is broken, or to a directory.
    LINK_BROKEN = 2004 Error;
    /// A resource that is not UTF-8 text.
    RESOURCE_ENCODING = 2005 Error;
    /// A resource that is too large.
    RESOURCE_SIZE = 2006 Error;
    /// A file that cannot be read.
    UNREADABLE = 2007 Error;
    /// A schema that does not name its own schema.
    SCHEMA_WITHOUT_SCHEMA = 2008 Error;
    /// A malformed GraphQL schema file.
    GRAPHQL_FORM = 2009 Error;
    /// A datafile extension that is not in lower case.
    NAME_IGNORED = 2010 Warning;
    /// A schema without `properties`.
    SCHEMA_WITHOUT_PROPERTIES = 2011 Error;
    /// A directory that is nested too deeply.
    FOLDER_DEPTH = 2012 Error;
    /// A reference to a datafile that does not exist.
    DANGLING_REFERENCE = 2041 Error;
    /// A reference to a resource that does not exist.
    MISSING_RESOURCE = 2042 Error;
    /// A reference to a datafile whose schema is not the expected one.
    OTHER_SCHEMA = 2043 Error;
    /// A reference to a datafile that does not match the inline `$schemaRef`.
    UNFIT_TARGET = 2044 Error;
    /// A value that must be unique but is not.
    NOT_UNIQUE = 2045 Error;
    /// Two items of a list with the same identity.
    NOT_UNIQUE_IN_LIST = 2046 Error;
    /// A namespace that is declared more than once.
    DUPLICATE_NAMESPACE = 2047 Error;
    /// Two clusters with the same server.
    SAME_SERVER = 2048 Error;
    /// A resource that names a schema and cannot be read.
    RESOURCE_NOT_CHECKED = 2050 Warning;
    /// A template that cannot be parsed.
    TEMPLATE_SYNTAX = 2060 Error;
    /// A template that cannot be rendered.
    TEMPLATE_FAILS = 2061 Error;
    /// A resource that is not a Kubernetes object.
    NOT_AN_OBJECT = 2062 Error;
    /// A Kubernetes object of a kind that its namespace does not manage.
    UNMANAGED_KIND = 2063 Error;
    /// An expiration date that is not a date.
    EXPIRATION_DATE = 2064 Error;
    /// A label of a namespace that Kubernetes does not accept.
    NAMESPACE_LABEL = 2065 Error;
    /// A name of a namespace that Kubernetes does not accept.
    NAMESPACE_NAME = 2066 Error;
    /// An object that several entries of a namespace declare, or a quota that a file declares twice.
    DUPLICATE_OBJECT = 2067 Error;
    /// A name of an object that Kubernetes does not accept.
    OBJECT_NAME = 2068 Error;
    /// A value of an object that Kubernetes does not accept.
    OBJECT_VALUE = 2069 Error;
    /// A value of the wrong type.
    WRONG_TYPE = 3001 Error;
    /// A field that the schema does not define.
    UNKNOWN_FIELD = 3002 Error;
    /// A required field that is missing.
    MISSING_FIELD = 3003 Error;
    /// A value that is not among the allowed values.
    NOT_ALLOWED = 3004 Error;
    /// A string that does not match its `pattern`.
    PATTERN = 3005 Error;
    /// A pattern that takes too long.
    COSTLY_PATTERN = 3006 Error;
    /// A string that does not match its `format`.
    FORMAT = 3007 Error;
    /// A number out of range.
    RANGE = 3008 Error;
    /// A string that is too long or too short.
    LENGTH = 3009 Error;
    /// Too many or too few items or fields.
    COUNT = 3010 Error;
    /// A duplicate list item.
    REPEATED_ITEM = 3011 Error;
    /// A value that matches none of the alternatives.
    NO_ALTERNATIVE = 3012 Error;
    /// A value that matches more than one alternative.
    MANY_ALTERNATIVES = 3013 Error;
    /// A field whose name is not allowed.
    FIELD_NAME = 3014 Error;
    /// A value that the schema forbids.
    FORBIDDEN = 3015 Error;
    /// A file that takes too long to check.
    TOO_COMPLEX = 3016 Error;
    /// A datafile without a schema.
    NO_SCHEMA = 3020 Error;
    /// A schema that does not exist.
    UNKNOWN_SCHEMA = 3021 Error;
    /// A `$schema` that is a URL, which is never fetched.
    SCHEMA_ADDRESS = 3022 Error;
    /// A `$schema` without its leading slash.
    SCHEMA_WITHOUT_SLASH = 3023 Warning;
    /// A schema keyword with an invalid value.
    SCHEMA_FORM = 3101 Error;
    /// A schema whose own schema does not exist.
    UNKNOWN_METASCHEMA = 3102 Error;
    /// A `$ref` of a schema that points to nothing, or back to itself.
    SCHEMA_REFERENCE = 3103 Error;
    /// A `$schemaRef` to a schema that does not exist.
    SCHEMA_REF_UNKNOWN = 3104 Error;
    /// A pattern that is not a regular expression.
    BAD_PATTERN = 3105 Error;
    /// A pattern that probably does not match the intended values.
    ODD_PATTERN = 3106 Warning;
    /// An unknown, probably misspelt schema keyword.
    UNKNOWN_KEYWORD = 3107 Warning;
    /// The schema of a field next to `properties` instead of in it.
    MISPLACED_SCHEMA = 3108 Warning;
    /// A value that an enum lists twice.
    REPEATED_ENUM = 3109 Warning;
    /// A GraphQL type that is not defined.
    GRAPHQL_TYPE = 3120 Error;
    /// A GraphQL interface that is not defined.
    GRAPHQL_INTERFACE = 3121 Error;
    /// A GraphQL type for a datafile schema that does not exist.
    GRAPHQL_SCHEMA = 3122 Error;
    /// A GraphQL type or field that is defined twice.
    GRAPHQL_TWICE = 3123 Warning;
    /// A field that GraphQL requires and the schema does not.
    REQUIRED_BUT_OPTIONAL = 3124 Warning;
    /// A GraphQL field that no datafile can have.
    FIELD_WITHOUT_SCHEMA = 3125 Warning;
    /// A synthetic field that can never have a value.
    SYNTHETIC = 3126 Warning;
    /// A unique field of a type without datafiles.
    UNIQUE_BELOW = 3127 Error;
    /// A unique field that is not a scalar.
    UNIQUE_COMPLEX = 3128 Error;
    /// Types that are not a GraphQL schema.
    GRAPHQL_SCHEMA_FORM = 3129 Error;
    /// A scalar on which YAML 1.1 and 1.2 disagree.
    SCALAR_DIALECT = 4001 Warning;
    /// A resource without references.
    UNUSED_RESOURCE = 4002 Warning;
    /// Two paths that differ only by case.
    PATHS_BY_CASE = 4003 Warning;
    /// An approval that has expired.
    APPROVAL_EXPIRED = 4010 Warning;
    /// An approval for an integration that the data does not define.
    APPROVAL_INTEGRATION = 4011 Warning;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_documented_once_and_in_order() {
        assert!(TABLE.is_sorted_by(|a, b| a.code < b.code), "the table is sorted and has no code twice");
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/codes");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .expect("the directory of explanations")
            .map(|file| file.expect("a file").file_name().to_string_lossy().into_owned())
            .collect();
        files.sort();
        let expected: Vec<String> = TABLE.iter().map(|entry| format!("{}.md", entry.code)).collect();
        assert_eq!(files, expected);
    }

    #[test]
    fn every_explanation_has_a_title_an_example_and_a_fix() {
        for CodeEntry { code, text, .. } in TABLE {
            let lines: Vec<&str> = text.lines().collect();
            assert!(lines[0].starts_with("# ") && !lines[0].ends_with('.'), "{code}: title");
            assert!(lines.contains(&"## Example"), "{code}: example");
            assert!(lines.contains(&"## What to do"), "{code}: what to do");
        }
    }
}
