//! The response to a request: an HTTP status and a body.

use qontract_bundle::json::JavaScriptWriter;

use crate::execute::ExecutionOutcome;
use crate::failure::Failure;
use crate::provenance::{ObjectOrigin, Provenance};
use crate::read_set::ReadSet;
use crate::sink::JsonBytes;

/// The result of an execution.
pub type Execution<S> = ExecutionOutcome<S>;

/// The response to a request.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The HTTP status: 200, or 400 for a request that could not be executed.
    pub status: u16,
    /// The JSON body, with a trailing newline: `errors` if there are any, `data` and `extensions`.
    pub body: Vec<u8>,
    /// Whether the response contains errors.
    pub has_errors: bool,
    /// `mutation` or `subscription` if the request is one; the schema supports neither.
    pub rootless: Option<&'static str>,
    /// Origins of the objects in the response, if requested. They are not part of the body; see
    /// [`Answer::with_provenance`].
    pub provenance: Option<Provenance>,
    /// The files that were read, if requested.
    pub touched: Option<ReadSet>,
}

impl Answer {
    /// The response to a request that cannot be executed.
    pub(crate) fn refused(failures: &[Failure]) -> Self {
        let mut body = vec![b'{'];
        write_failures(failures, &mut body);
        finish(&[], &mut body);
        Self { status: 400, body, has_errors: true, rootless: None, provenance: None, touched: None }
    }

    /// A response that consists of one error.
    pub(crate) fn empty(failure: &Failure, rootless: Option<&'static str>) -> Self {
        let mut body = vec![b'{'];
        write_failures(std::slice::from_ref(failure), &mut body);
        body.extend_from_slice(b"\"data\":null,");
        finish(&[], &mut body);
        Self { status: 200, body, has_errors: true, rootless, provenance: None, touched: None }
    }

    /// Creates the buffer for a response of about `size` bytes and writes the start of the body.
    pub(crate) fn begin(size: usize) -> JsonBytes {
        let mut body = Vec::with_capacity(size + 256);
        body.extend_from_slice(b"{\"data\":");
        JsonBytes(body)
    }

    /// The response of an execution that wrote into the buffer of [`Answer::begin`].
    pub(crate) fn from_execution(executed: ExecutionOutcome<JsonBytes>) -> Self {
        let ExecutionOutcome { data: JsonBytes(mut body), failures, schemas, record } = executed;
        if !failures.is_empty() {
            let data = std::mem::replace(&mut body, vec![b'{']);
            write_failures(&failures, &mut body);
            // The data without its opening brace, which the body already has.
            body.extend_from_slice(&data[1..]);
        }
        body.push(b',');
        finish(&schemas, &mut body);
        let (provenance, touched) = (record.provenance, record.touched);
        Self { status: 200, body, has_errors: !failures.is_empty(), rootless: None, provenance, touched }
    }

    /// The body with `extensions.provenance`: for each object of the response, its file, the JSON pointer
    /// into the file and, if `place` returns one, the line.
    pub fn with_provenance(&self, place: &dyn Fn(&ObjectOrigin) -> Option<String>) -> Vec<u8> {
        const END: &[u8] = b"}}\n";
        let mut body = self.body.clone();
        if let Some(provenance) = &self.provenance
            && body.ends_with(END)
        {
            body.truncate(body.len() - END.len());
            body.extend_from_slice(b",\"provenance\":");
            provenance.write(place, &mut body);
            body.extend_from_slice(END);
        }
        body
    }
}

fn write_failures(failures: &[Failure], body: &mut Vec<u8>) {
    body.extend_from_slice(b"\"errors\":[");
    for (index, failure) in failures.iter().enumerate() {
        if index > 0 {
            body.push(b',');
        }
        failure.write(body);
    }
    body.extend_from_slice(b"],");
}

fn finish(schemas: &[Box<str>], body: &mut Vec<u8>) {
    body.extend_from_slice(b"\"extensions\":{\"schemas\":[");
    for (index, schema) in schemas.iter().enumerate() {
        if index > 0 {
            body.push(b',');
        }
        JavaScriptWriter(body).str(schema);
    }
    body.extend_from_slice(b"]}}\n");
}
