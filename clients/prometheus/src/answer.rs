//! Responses of the query API, parsed to finite numbers. Pure.

use crate::error::PrometheusError;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;

/// The labels of a series.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(transparent)]
pub struct Labels(BTreeMap<String, String>);

impl Labels {
    /// The value of a label.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// All labels, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

impl fmt::Display for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let labels: Vec<String> = self.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
        write!(f, "{{{}}}", labels.join(", "))
    }
}

/// The value of a series at a point in time.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The labels of the series.
    pub labels: Labels,
    /// The value, which is finite.
    pub value: f64,
}

/// The values of a series, oldest first.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The labels of the series.
    pub labels: Labels,
    /// The values.
    pub points: Vec<Point>,
}

/// A value at a point in time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The time in seconds since 1970.
    pub time: f64,
    /// The value, which is finite.
    pub value: f64,
}

/// A response.
#[derive(Deserialize)]
struct Answer {
    status: String,
    #[serde(default)]
    data: Option<AnswerData>,
    #[serde(default, rename = "errorType")]
    error_type: String,
    #[serde(default)]
    error: String,
    #[serde(default)]
    warnings: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AnswerData {
    result_type: String,
    result: serde_json::Value,
}

#[derive(Deserialize)]
struct AnswerSample {
    metric: Labels,
    value: AnswerPoint,
}

#[derive(Deserialize)]
struct AnswerSeries {
    metric: Labels,
    values: Vec<AnswerPoint>,
}

/// The time, and the value as a string.
#[derive(Deserialize)]
struct AnswerPoint(f64, String);

/// The samples of the response to an instant query. A scalar is one sample without labels.
pub(crate) fn samples(body: &[u8]) -> Result<Vec<Sample>, PrometheusError> {
    let data = data(body)?;
    let read: Vec<AnswerSample> = match data.result_type.as_str() {
        "vector" => read(data.result)?,
        "scalar" => vec![AnswerSample { metric: Labels::default(), value: read(data.result)? }],
        other => return Err(PrometheusError::malformed(format!("it has a `{other}`, not a `vector`"))),
    };
    let sample = |AnswerSample { metric, value }| match value.finite(&metric) {
        Ok(point) => Ok(Sample { labels: metric, value: point.value }),
        Err(error) => Err(error),
    };
    read.into_iter().map(sample).collect()
}

/// The series of the response to a range query.
pub(crate) fn series(body: &[u8]) -> Result<Vec<Series>, PrometheusError> {
    let data = data(body)?;
    if data.result_type != "matrix" {
        let what = format!("it has a `{}`, not a `matrix`", data.result_type);
        return Err(PrometheusError::malformed(what));
    }
    let read: Vec<AnswerSeries> = read(data.result)?;
    let series = |AnswerSeries { metric, values }| {
        let points = values.into_iter().map(|value| value.finite(&metric)).collect::<Result<_, _>>()?;
        Ok(Series { labels: metric, points })
    };
    read.into_iter().map(series).collect()
}

/// The run time of each value of a label.
pub(crate) fn run_seconds<'s>(
    samples: impl IntoIterator<Item = (&'s Labels, f64)>,
    label: &str,
) -> Result<BTreeMap<String, f64>, PrometheusError> {
    let mut seconds = BTreeMap::new();
    for (labels, value) in samples {
        let Some(key) = labels.get(label) else {
            return Err(PrometheusError::MissingLabel { label: label.to_owned(), labels: labels.clone() });
        };
        if value < 0.0 {
            return Err(PrometheusError::NotDuration { labels: labels.clone(), seconds: value });
        }
        if seconds.insert(key.to_owned(), value).is_some() {
            let (label, value) = (label.to_owned(), key.to_owned());
            return Err(PrometheusError::DuplicateLabel { label, value });
        }
    }
    Ok(seconds)
}

/// The data of a response, if the server executed the query, on all of its data.
fn data(body: &[u8]) -> Result<AnswerData, PrometheusError> {
    let answer: Answer = serde_json::from_slice(body).map_err(|source| {
        let is_html = body.trim_ascii_start().starts_with(b"<");
        let what = if is_html { "it is an HTML page" } else { "it is not the JSON of the query API" };
        PrometheusError::Malformed { what: what.to_owned(), source: Some(source) }
    })?;
    match answer.status.as_str() {
        "success" => {}
        "error" => {
            return Err(PrometheusError::Rejected {
                kind: line(&answer.error_type),
                message: line(&answer.error),
            });
        }
        other => return Err(PrometheusError::malformed(format!("it has the status `{}`", line(other)))),
    }
    if let Some(warning) = answer.warnings.first() {
        return Err(PrometheusError::Incomplete(line(warning)));
    }
    answer.data.ok_or_else(|| PrometheusError::malformed("it has no data"))
}

fn read<T: serde::de::DeserializeOwned>(result: serde_json::Value) -> Result<T, PrometheusError> {
    serde_json::from_value(result).map_err(|source| PrometheusError::Malformed {
        what: "a sample does not have labels, a time and a value".to_owned(),
        source: Some(source),
    })
}

impl AnswerPoint {
    fn finite(self, labels: &Labels) -> Result<Point, PrometheusError> {
        let Self(time, text) = self;
        let Ok(value) = text.parse::<f64>() else {
            return Err(PrometheusError::malformed(format!("the value `{}` is not a number", line(&text))));
        };
        if value.is_finite() {
            Ok(Point { time, value })
        } else {
            Err(PrometheusError::NotFinite { labels: labels.clone(), value })
        }
    }
}

/// The start of a text of the server, as one line.
fn line(text: &str) -> String {
    const MAX_CHARS: usize = 300;
    let line =
        text.split(|one: char| one.is_whitespace() || one.is_control()).filter(|word| !word.is_empty());
    line.collect::<Vec<_>>().join(" ").chars().take(MAX_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::{Labels, run_seconds, samples, series};

    #[track_caller]
    fn check(body: &str, expect: &str) {
        let shown = match samples(body.as_bytes()) {
            Ok(samples) => samples
                .iter()
                .map(|one| format!("{} {}", one.labels, one.value))
                .collect::<Vec<_>>()
                .join("; "),
            Err(error) => format!("error: {error}"),
        };
        assert_eq!(shown, expect);
    }

    fn success(data: &str) -> String {
        format!(r#"{{"status": "success", "data": {data}}}"#)
    }

    #[test]
    fn a_vector_or_a_scalar_is_a_list_of_samples() {
        let sample = r#"{"metric": {"b": "x\"y", "a": "1"}, "value": [1700000000.5, "1e3"]}"#;
        check(
            &success(&format!(r#"{{"resultType": "vector", "result": [{sample}]}}"#)),
            r#"{a="1", b="x\"y"} 1000"#,
        );
        check(&success(r#"{"resultType": "vector", "result": []}"#), "");
        check(&success(r#"{"resultType": "scalar", "result": [1700000000, "-2"]}"#), "{} -2");
    }

    #[test]
    fn a_value_that_is_not_finite_is_an_error() {
        for (value, shown) in [("NaN", "NaN"), ("+Inf", "inf"), ("-Inf", "-inf")] {
            let result = format!(r#"[{{"metric": {{"a": "1"}}, "value": [1, "{value}"]}}]"#);
            let body = success(&format!(r#"{{"resultType": "vector", "result": {result}}}"#));
            check(&body, &format!(r#"error: the series {{a="1"}} has the value {shown}"#));
        }
    }

    #[test]
    fn a_response_that_is_not_a_result_is_an_error() {
        let malformed = |what: &str| format!("error: the response is not a Prometheus result: {what}");
        check("<html>login</html>", &malformed("it is an HTML page"));
        check("[]", &malformed("it is not the JSON of the query API"));
        check(r#"{"status": "ok"}"#, &malformed("it has the status `ok`"));
        check(r#"{"status": "success"}"#, &malformed("it has no data"));
        let typed =
            |kind: &str, result: &str| success(&format!(r#"{{"resultType": "{kind}", "result": {result}}}"#));
        check(&typed("matrix", "[]"), &malformed("it has a `matrix`, not a `vector`"));
        let sample = "a sample does not have labels, a time and a value";
        check(&typed("vector", r#"[{"metric": {}, "histogram": [1, {}]}]"#), &malformed(sample));
        check(&typed("vector", r#"[{"metric": {}, "value": [1, 2]}]"#), &malformed(sample));
        check(
            &typed("vector", r#"[{"metric": {}, "value": [1, "two"]}]"#),
            &malformed("the value `two` is not a number"),
        );
    }

    #[test]
    fn an_error_or_a_warning_of_the_server_is_an_error() {
        check(
            r#"{"status": "error", "errorType": "bad_data", "error": "parse error:\n unexpected"}"#,
            "error: Prometheus refused the query (bad_data): parse error: unexpected",
        );
        check(
            r#"{"status": "success", "data": {"resultType": "vector", "result": []}, "warnings": ["a store is down"]}"#,
            "error: the result of the Prometheus query is incomplete: a store is down",
        );
    }

    #[test]
    fn a_matrix_is_a_list_of_series() {
        let result = r#"[{"metric": {"a": "1"}, "values": [[1, "2"], [3, "4"]]}]"#;
        let body = success(&format!(r#"{{"resultType": "matrix", "result": {result}}}"#));
        let points: Vec<_> =
            series(body.as_bytes()).unwrap()[0].points.iter().map(|one| (one.time, one.value)).collect();
        assert_eq!(points, [(1.0, 2.0), (3.0, 4.0)]);
        let vector = success(r#"{"resultType": "vector", "result": []}"#);
        let error = series(vector.as_bytes()).unwrap_err().to_string();
        assert_eq!(error, "the response is not a Prometheus result: it has a `vector`, not a `matrix`");
    }

    #[test]
    fn run_times_need_one_series_per_value_of_the_label() {
        let labels = |pairs: &[(&str, &str)]| {
            Labels(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
        };
        let (first, second) = (labels(&[("shard_id", "0")]), labels(&[("pod", "x"), ("shard_id", "0")]));
        let check = |samples: &[(&Labels, f64)], expect: &str| {
            let shown = match run_seconds(samples.iter().copied(), "shard_id") {
                Ok(seconds) => format!("{seconds:?}"),
                Err(error) => error.to_string(),
            };
            assert_eq!(shown, expect);
        };
        check(&[(&first, 1.5)], r#"{"0": 1.5}"#);
        check(&[(&first, -1.0)], r#"the series {shard_id="0"} has the run time -1 s"#);
        check(&[(&Labels::default(), 1.0)], "the series {} has no label `shard_id`");
        check(
            &[(&first, 1.0), (&second, 1.0)],
            r#"several series have shard_id="0": aggregate the query with `sum by (shard_id)`"#,
        );
    }
}
