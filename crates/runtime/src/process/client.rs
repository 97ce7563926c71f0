//! Sends requests to a program, parses the responses and checks them.

use std::fmt::Display;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::exchange::{CancelOnDrop, Cancellation, ProgramRequest, exchange, first_line};
use super::phase::ProgramPhase;
use super::program::Program;
use super::response_memory::{MemoryReservation, ResponseMemory, check_values};
use super::wire::{ShownTexts, check_texts};
use crate::fault::Fault;

/// The version of the protocol.
const PROTOCOL: u32 = 1;

/// Maximum length of the reason that is reported for an invalid response.
const MAX_COMPLAINT_CHARS: usize = 400;

/// A program, with the memory limit for its responses.
pub struct ProgramClient {
    program: Program,
    memory: Arc<ResponseMemory>,
}

/// A parsed response, with its memory reservation.
pub struct ParsedResponse<T> {
    /// The value that was parsed from the response.
    pub value: T,
    /// The reservation for the memory of the response.
    pub reservation: MemoryReservation,
}

impl ProgramClient {
    /// Creates a client for this program.
    pub fn new(program: Program) -> Self {
        Self { program, memory: Arc::default() }
    }

    /// The program to which requests are sent.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Sends one request and blocks until the response has arrived.
    pub fn request_blocking<T: DeserializeOwned + ShownTexts>(
        &self,
        phase: ProgramPhase,
        request: &Value,
    ) -> Result<ParsedResponse<T>, Fault> {
        self.send(phase, request, &Cancellation::default())
    }

    /// Sends one request. If the run is cancelled, the executable is terminated.
    pub async fn request<T: DeserializeOwned + ShownTexts + Send + 'static>(
        self: &Arc<Self>,
        phase: ProgramPhase,
        request: Value,
    ) -> Result<ParsedResponse<T>, Fault> {
        let client = Arc::clone(self);
        // If the run is cancelled, this guard is dropped, which terminates the executable.
        let (_cancel_guard, cancellation) = CancelOnDrop::new();
        let exchange = move || client.send(phase, &request, &cancellation);
        tokio::task::spawn_blocking(exchange).await.map_err(|error| Fault::internal(error.to_string()))?
    }

    /// Sends one request and parses the response.
    fn send<T: DeserializeOwned + ShownTexts>(
        &self,
        phase: ProgramPhase,
        request: &Value,
        cancellation: &Cancellation,
    ) -> Result<ParsedResponse<T>, Fault> {
        let Self { program, memory } = self;
        let mut request = request.clone();
        request["protocol"] = PROTOCOL.into();
        let program_request = ProgramRequest { phase, request: &request, cancellation, memory };
        let response = exchange(program, program_request)?;
        // A parse error quotes the response.
        let redact = |text: &str| program.redacted(text, phase, &request);
        let refused = |why: String| invalid_response(phase, program, redact(&why));
        // The values are counted before parsing, because small values take more memory than their JSON.
        check_values(&response).map_err(refused)?;
        let held = memory.reserve(&response).map_err(refused)?;
        // serde accepts a list in place of an object, and assigns the fields in order.
        if response.bytes().trim_ascii_start().first() == Some(&b'[') {
            return Err(refused("it is not a JSON object".to_owned()));
        }
        let value = serde_json::from_slice(response.bytes()).map_err(|error| {
            if error.is_data() {
                return refused(error.to_string());
            }
            not_json(
                &program.describe_phase(phase),
                &error,
                &redact(&String::from_utf8_lossy(response.bytes())),
            )
        })?;
        check_texts(&value).map_err(refused)?;
        Ok(ParsedResponse { value, reservation: held })
    }
}

/// The fault for a response that violates the protocol.
pub fn invalid_response(phase: ProgramPhase, program: &Program, why: impl Display) -> Fault {
    let why = truncate(&why.to_string());
    Fault::operator(format!("the response to {} is invalid: {why}", program.describe_phase(phase)))
}

/// The fault for a response that is not JSON. The fault quotes the first line of the output.
fn not_json(phase: &str, error: &serde_json::Error, text: &str) -> Fault {
    let printed = match first_line(text) {
        line if line.is_empty() => "stdout is empty".to_owned(),
        line => format!("stdout begins with `{line}`"),
    };
    Fault::operator(format!("the response to {phase} is not JSON: {error}; {printed}"))
        .hint("stdout must contain only the response: print everything else to stderr")
}

/// Truncates a string to its beginning.
fn truncate(text: &str) -> String {
    match text.char_indices().nth(MAX_COMPLAINT_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
